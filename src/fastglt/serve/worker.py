"""The one thread that runs the predictor, and the requests that wait for it.

One, because its kernels use all cores by themselves: a second would wait for the same cores, and compiled loops
must not be entered from two threads at once. Small requests that wait together are predicted together, in one
neighbourhood.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.kernels import set_threads
from fastglt.serve.metrics import Metrics
from fastglt.serve.questions import Question

_DIGITS = 6  # of a probability


@dataclass(frozen=True)
class Found:
    """The classes of some nodes."""

    nodes: list[int]
    classes: list[int]
    probabilities: list[list[float]] | None


@dataclass(frozen=True, eq=False)
class _Job:
    question: Question
    found: "asyncio.Future[Found]"


class Worker:
    """Answers questions in the order they came; only inside `running`."""

    def __init__(self, predictor: Predictor, metrics: Metrics, *, most: int, threads: int) -> None:
        self._predictor, self._metrics, self._threads = predictor, metrics, threads
        self._most = most  # nodes that are predicted together
        self._waiting: deque[_Job] = deque()
        self._filled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether questions are answered now."""
        return self._task is not None and not self._task.done()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer questions until the end of this context."""
        thread = ThreadPoolExecutor(1, "predictor", initializer=set_threads, initargs=(self._threads,))
        with thread:  # the number of threads belongs to the thread that sets it
            self._task = asyncio.create_task(self._run(thread))
            try:
                yield
            finally:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task

    async def ask(self, question: Question, timeout: float) -> Found:
        """The answer, or TimeoutError; nobody computes what nobody waits for any more."""
        job = _Job(question, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._tell()
        async with asyncio.timeout(timeout):
            return await job.found

    async def _run(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while await self._filled.wait():
            jobs = self._next()
            self._tell()
            if not jobs:
                continue
            questions = [job.question for job in jobs]
            try:
                found = await loop.run_in_executor(thread, answer, self._predictor, questions)
            except Exception as error:  # theirs alone: the next ones are answered
                for job in jobs:
                    if not job.found.done():
                        job.found.set_exception(error)
                continue
            self._metrics.together.observe(len(jobs))
            self._metrics.nodes.inc(sum(len(one.nodes) for one in found))
            for job, one in zip(jobs, found, strict=True):
                if not job.found.done():
                    job.found.set_result(one)

    def _next(self) -> list[_Job]:
        """The first that waits; with it those behind it that fit, as long as none has new nodes."""
        jobs: list[_Job] = []
        size = 0
        while self._waiting:
            question = self._waiting[0].question
            size += len(question.nodes)
            if jobs and (size > self._most or question.new_nodes or jobs[0].question.new_nodes):
                break
            job = self._waiting.popleft()
            if not job.found.done():
                jobs.append(job)
        return jobs

    def _tell(self) -> None:
        self._metrics.waiting.set(len(self._waiting))
        if self._waiting:
            self._filled.set()
        else:
            self._filled.clear()


def answer(predictor: Predictor, questions: Sequence[Question]) -> list[Found]:
    """The classes for one question with new nodes, or for any number without: new nodes change their
    neighbours' degrees, and other questions must not notice.
    """
    new = questions[0].new_nodes
    nodes = [question.nodes for question in questions]
    if new is not None:
        assert len(questions) == 1
        before = predictor.graph.num_nodes
        predictor = predictor.with_nodes(*new.tensors(predictor.x.num_features))
        nodes = [[*nodes[0], *range(before, predictor.graph.num_nodes)]]
    asked = torch.tensor([node for some in nodes for node in some], dtype=torch.int64)
    scores = predictor.logits(asked).detach().cpu()
    if not bool(torch.isfinite(scores).all()):
        raise InputError("the features of new nodes must give finite scores (got infinity); use smaller ones")
    parts = torch.split(scores, [len(some) for some in nodes])
    return [_found(*one) for one in zip(questions, nodes, parts, strict=True)]


def _found(question: Question, nodes: list[int], scores: Tensor) -> Found:
    probabilities = None
    if question.probabilities:
        probabilities = scores.double().softmax(1).round(decimals=_DIGITS).tolist()
    return Found(nodes, scores.argmax(1).tolist(), probabilities)
