"""PyTorch's process-wide state changes no ticket, and threads do not change each other's."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from fastglt import InputError, Ticket, evaluate
from fastglt.system.modes import ordinary_mode
from tests.toy_data import USER_MODELS, quick_ticket, seeded, toy_data


def equal(one: Ticket, other: Ticket) -> bool:
    same = one.masks == other.masks and one.scores == other.scores
    return same and all(torch.equal(value, other.weights[name]) for name, value in one.weights.items())


@contextmanager
def default(read: Any, write: Any, value: Any) -> Iterator[None]:
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


def test_threads_wait_for_each_other_and_get_the_tickets_they_would_get_alone() -> None:
    model = seeded(USER_MODELS["GAT"])

    def search(seed: int) -> Ticket:
        return quick_ticket(model, seed=seed)

    torch.manual_seed(5)
    drawn = torch.random.get_rng_state()
    alone = [search(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(search, range(4)))
    assert all(map(equal, together, alone))
    assert not equal(alone[0], alone[1])
    assert torch.equal(torch.random.get_rng_state(), drawn)


def test_another_thread_waits() -> None:
    order: list[str] = []

    def other() -> None:
        with ordinary_mode():
            order.append("other")

    with ordinary_mode(), ordinary_mode():  # the same thread does not wait for itself
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_reduced_precision_is_put_aside(precision: str) -> None:
    read, write = torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    model = seeded(USER_MODELS["GraphSAGE"])
    expected = quick_ticket(model)
    with default(read, write, precision):
        with ordinary_mode():
            assert read() == "highest"
        found = quick_ticket(model)
        assert evaluate(found, model, toy_data(), seeds=[0]).ticket_scores == (expected.scores["isolated_test"],)
        with pytest.raises(InputError):
            quick_ticket(model, weight_sparsity=2)
        assert read() == precision
    assert equal(found, expected)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("model", ["gcn", "GraphSAGE"])
def test_a_half_default_is_refused(kind: torch.dtype, model: str) -> None:
    built = seeded(USER_MODELS[model]) if model in USER_MODELS else model
    data = toy_data()
    with (
        default(torch.get_default_dtype, torch.set_default_dtype, kind),
        pytest.raises(InputError, match=rf"default dtype must be float32 or float64 \(got {kind}\)"),
    ):
        quick_ticket(built, data)


def test_a_double_default_changes_nothing() -> None:
    model, data = seeded(USER_MODELS["GraphSAGE"]), toy_data()
    expected = quick_ticket(model, data)
    with default(torch.get_default_dtype, torch.set_default_dtype, torch.float64):
        assert equal(quick_ticket(model, data), expected)


def test_a_default_device_without_numbers_is_refused() -> None:
    model, data = seeded(USER_MODELS["GraphSAGE"]), toy_data()
    with torch.device("meta"), pytest.raises(InputError, match=r"default device must hold numbers \(got meta\)"):
        quick_ticket(model, data)
