"""Who computes answers, and the requests that wait for it.

The graph does not change while it is served, so the outputs of its own nodes are computed once and looked up. New
nodes are computed, one request after the other: they change their neighbours' degrees, and other requests must not
notice. One thread does it, because its kernels use all cores by themselves: a second would wait for the same cores,
and compiled loops must not be entered from two threads at once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.kernels import set_threads
from fastglt.serve.metrics import Metrics
from fastglt.serve.pairs import PairPrediction, PairRequest, answer_pairs
from fastglt.serve.requests import PredictRequest
from fastglt.tasks import Task

_DIGITS = 6  # of a probability
_FEW = 1000  # nodes


@dataclass(frozen=True)
class Prediction:
    """What is predicted for some nodes."""

    nodes: list[int]
    answers: list[Any]  # classes, or whatever the task predicts
    probabilities: list[list[float]] | None

    @staticmethod
    def of(task: type[Task], nodes: list[int], outputs: Tensor, *, probabilities: bool) -> "Prediction":
        """From a row of outputs for each node."""
        shares = task.probabilities(outputs.double()) if probabilities else None
        rounded = None if shares is None else shares.round(decimals=_DIGITS).tolist()
        return Prediction(nodes, task.listed(task.decide(outputs)), rounded)

    def __len__(self) -> int:
        return len(self.nodes)


Request = PredictRequest | PairRequest
Answer = Prediction | PairPrediction


@dataclass(frozen=True, eq=False)
class _Job:
    request: Request
    found: "asyncio.Future[Answer]"


class Worker:
    """Answers requests in the order they came; only inside `running`."""

    def __init__(self, predictor: Predictor, metrics: Metrics, *, threads: int) -> None:
        self.outputs = predictor.logits().cpu()  # of all nodes; of a ticket for links, what pairs are decoded from
        if not bool(torch.isfinite(self.outputs).all()):
            raise InputError("a ticket that is served must give finite outputs (got NaN or infinity)")
        self._predictor, self._metrics, self._threads = predictor, metrics, threads
        self._waiting: deque[_Job] = deque()
        self._filled = asyncio.Event()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def task(self) -> type[Task]:
        """What is predicted."""
        return self._predictor.task

    @property
    def ready(self) -> bool:
        """Whether requests are answered now."""
        return self._task is not None and not self._task.done()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests until the end of this context."""
        thread = ThreadPoolExecutor(1, "predictor", initializer=set_threads, initargs=(self._threads,))
        with thread:  # the number of threads belongs to the thread that sets it
            self._task = asyncio.create_task(self._run(thread))
            try:
                yield
            finally:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task

    async def ask(self, request: Request, timeout: float) -> Answer:
        """The answer, or TimeoutError; nobody computes what nobody waits for any more."""
        found: Answer
        if isinstance(request, PredictRequest) and request.new_nodes is None:
            found = await self._look_up(request)
        else:
            job = _Job(request, asyncio.get_running_loop().create_future())
            self._waiting.append(job)
            self._tell()
            async with asyncio.timeout(timeout):
                found = await job.found
        self._metrics.nodes.inc(len(found))
        return found

    async def _look_up(self, request: PredictRequest) -> Prediction:
        """Few nodes at once; of requests for many, one in each turn of the event loop."""
        if len(request.nodes) <= _FEW:
            return self._found(request)
        async with self._turn:
            found = self._found(request)
            await asyncio.sleep(0)
        return found

    def _found(self, request: PredictRequest) -> Prediction:
        outputs = self.outputs[request.nodes]
        return Prediction.of(self.task, request.nodes, outputs, probabilities=request.probabilities)

    async def _run(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while await self._filled.wait():
            job = self._waiting.popleft()
            self._tell()
            if job.found.done():  # given up
                continue
            try:
                found = await loop.run_in_executor(thread, self._answer, job.request)
            except Exception as error:  # its own: the next ones are answered
                if not job.found.done():
                    job.found.set_exception(error)
            else:
                if not job.found.done():
                    job.found.set_result(found)

    def _answer(self, request: Request) -> Answer:
        if isinstance(request, PairRequest):
            return answer_pairs(self._predictor, self.outputs.to(self._predictor.x.device), request)
        return answer(self._predictor, request)

    def _tell(self) -> None:
        self._metrics.waiting.set(len(self._waiting))
        if self._waiting:
            self._filled.set()
        else:
            self._filled.clear()


def answer(predictor: Predictor, request: PredictRequest) -> Prediction:
    """The classes of the nodes that were asked for, then of the new ones, all on the grown graph."""
    assert request.new_nodes is not None
    grown = predictor.with_nodes(*request.new_nodes.tensors(predictor.x.num_features))
    nodes = [*request.nodes, *range(predictor.graph.num_nodes, grown.graph.num_nodes)]
    outputs = grown.logits(torch.tensor(nodes)).detach().cpu()
    if not bool(torch.isfinite(outputs).all()):
        raise InputError("the features of new nodes must give finite outputs (got infinity); use smaller ones")
    return Prediction.of(predictor.task, nodes, outputs, probabilities=request.probabilities)
