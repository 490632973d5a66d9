"""What is looked up, what is computed, and in which order."""

import asyncio
from typing import Any

import pytest
from torch import Tensor

from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.serve.metrics import Metrics
from fastglt.serve.requests import NewNodes, PredictRequest
from fastglt.serve.worker import Prediction, Worker

from .servers import ENOUGH, slow_predictor, small_predictor


def new(*nodes: int, edge: tuple[int, int] = (7, 0)) -> PredictRequest:
    """A question about a new node and some old ones."""
    return PredictRequest(
        nodes=list(nodes), new_nodes=NewNodes(features=[[1.0, 2.0, 3.0, 4.0]], edges=[list(edge)])
    )


def ask_all(predictor: Predictor, *questions: PredictRequest, timeout: float = ENOUGH) -> list[Any]:
    """The answers or errors to questions that come at once."""

    async def run() -> list[Any]:
        worker = Worker(predictor, Metrics(), threads=1)
        ready = [worker.ready]
        async with worker.running():
            ready.append(worker.ready)
            asked = (worker.ask(question, timeout) for question in questions)
            found = await asyncio.gather(*asked, return_exceptions=True)
        assert [*ready, worker.ready] == [False, True, False]
        return found

    return asyncio.run(run())


def test_nodes_of_the_graph_are_looked_up() -> None:
    slow, classes = slow_predictor(0), small_predictor().predict().tolist()
    assert ask_all(slow, PredictRequest(nodes=[5, 1, 1])) == [
        Prediction([5, 1, 1], [classes[5], classes[1], classes[1]], None)
    ]
    assert slow.asked == []


def test_new_nodes_are_computed_one_request_after_the_other() -> None:
    slow = slow_predictor(0.01)
    found = ask_all(slow, new(0), PredictRequest(nodes=[0], probabilities=True), new(), new(0))
    assert slow.asked == [[0, 7], [7], [0, 7]]
    assert found[0] == found[3]
    assert found[1] == ask_all(small_predictor(), PredictRequest(nodes=[0], probabilities=True))[0]


def test_a_wrong_question_is_its_own_affair() -> None:
    wrong, right = ask_all(small_predictor(), new(edge=(0, 1)), new())
    assert isinstance(wrong, InputError)
    assert isinstance(right, Prediction)


def test_who_has_stopped_waiting_is_passed_over() -> None:
    slow = slow_predictor(0.3)
    found = ask_all(slow, new(6), new(1), new(2), timeout=0.1)
    assert [type(one) for one in found] == [TimeoutError] * 3
    assert slow.asked == [[6, 7]]


def test_the_thread_has_as_many_threads_as_it_is_told() -> None:
    numba = pytest.importorskip("numba")
    seen: list[int] = []

    class Looks(Predictor):
        def logits(self, nodes: Any = None) -> Tensor:
            seen.append(numba.get_num_threads())
            return super().logits(nodes)

    async def run() -> None:
        worker = Worker(Looks(**vars(small_predictor())), Metrics(), threads=2)
        async with worker.running():
            await worker.ask(new(), ENOUGH)

    asyncio.run(run())
    assert seen == [1, min(2, numba.config.NUMBA_NUM_THREADS)]
