"""Who is predicted with whom."""

import asyncio
from typing import Any

import pytest
from torch import Tensor

from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.serve.metrics import Metrics
from fastglt.serve.questions import NewNodes, Question
from fastglt.serve.worker import Found, Worker

from .servers import ENOUGH, slow_predictor, small_predictor


def ask_all(predictor: Predictor, *questions: Question, most: int = 10) -> list[Any]:
    """The answers or errors to questions that come at once, after a first one that keeps the thread busy."""

    async def run() -> list[Any]:
        worker = Worker(predictor, Metrics(), most=most, threads=1)
        ready = [worker.ready]
        async with worker.running():
            ready.append(worker.ready)
            first = asyncio.create_task(worker.ask(Question(nodes=[6]), ENOUGH))
            await asyncio.sleep(0.05)  # it is being predicted
            found = await asyncio.gather(*(worker.ask(one, ENOUGH) for one in questions), return_exceptions=True)
            await first
        assert [*ready, worker.ready] == [False, True, False]
        return found

    return asyncio.run(run())


def test_small_questions_are_predicted_together() -> None:
    slow = slow_predictor(0.2)
    found = ask_all(slow, Question(nodes=[0, 1]), Question(nodes=[1], probabilities=True), Question(nodes=[5]))
    assert slow.asked == [[6], [0, 1, 1, 5]]
    classes = small_predictor().predict().tolist()
    assert [one.nodes for one in found] == [[0, 1], [1], [5]]
    assert [one.classes for one in found] == [[classes[0], classes[1]], [classes[1]], [classes[5]]]
    assert [one.probabilities is None for one in found] == [True, False, True]


def test_no_more_nodes_together_than_one_question_may_have() -> None:
    slow = slow_predictor(0.2)
    ask_all(slow, Question(nodes=[0, 1]), Question(nodes=[2, 3]), Question(nodes=[4]), most=4)
    assert slow.asked == [[6], [0, 1, 2, 3], [4]]


def test_new_nodes_are_never_seen_by_others() -> None:
    slow, new = slow_predictor(0.1), NewNodes(features=[[1.0, 2.0, 3.0, 4.0]], edges=[[7, 0]])
    joined = Question(nodes=[0], new_nodes=new)
    found = ask_all(slow, Question(nodes=[0]), joined, joined, Question(nodes=[0]), Question(nodes=[1]))
    assert slow.asked == [[6], [0], [0, 7], [0, 7], [0, 1]]
    assert found[0] == found[3]
    assert found[1] == found[2]


def test_a_wrong_question_is_its_own_affair() -> None:
    new = NewNodes(features=[[1.0] * 4], edges=[[0, 1]])
    wrong, right = ask_all(slow_predictor(0.1), Question(new_nodes=new), Question(nodes=[2]))
    assert isinstance(wrong, InputError)
    assert isinstance(right, Found)


def test_who_has_stopped_waiting_is_passed_over() -> None:
    slow = slow_predictor(0.2)

    async def run() -> None:
        worker = Worker(slow, Metrics(), most=1, threads=1)
        async with worker.running():
            first = asyncio.create_task(worker.ask(Question(nodes=[6]), ENOUGH))
            await asyncio.sleep(0.05)
            with pytest.raises(TimeoutError):
                await worker.ask(Question(nodes=[0]), 0.01)
            await worker.ask(Question(nodes=[1]), ENOUGH)
            await first

    asyncio.run(run())
    assert slow.asked == [[6], [1]]


def test_the_thread_has_as_many_threads_as_it_is_told() -> None:
    import numba

    seen: list[int] = []

    class Looks(Predictor):
        def logits(self, nodes: Any = None) -> Tensor:
            seen.append(numba.get_num_threads())
            return super().logits(nodes)

    async def run() -> None:
        worker = Worker(Looks(**vars(small_predictor())), Metrics(), most=1, threads=2)
        async with worker.running():
            await worker.ask(Question(nodes=[6]), ENOUGH)

    asyncio.run(run())
    assert seen == [min(2, numba.config.NUMBA_NUM_THREADS)]
