"""The back ends among themselves: same numbers, same bits for any number of threads, and who is asked."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError, set_threads
from fastglt.kernels import (
    Table,
    _numba,
    _plain,
    _torch,
    adam,
    aggregate,
    attention,
    backend,
    dropout,
    head_dots,
    matmul,
    spmm,
    table,
    use_table,
    zero_outside,
)
from tests.conftest import BACKENDS
from tests.helpers import randn, values_and_gradients
from tests.kernels.references import PATTERNS, csr_of, dense_product
from tests.processes import run

MODULES = {"numba": _numba, "torch": _torch, "plain": _plain}
GRAPH = csr_of(randn(300, 300, seed=1) > 1.5)


def changed_in_place(function: Callable[..., None], *tensors: Tensor) -> list[Tensor]:
    copies = [tensor.clone() for tensor in tensors]
    function(*copies)
    return copies


def everything(width: int) -> dict[str, list[Tensor]]:
    """The results and gradients of every kernel."""
    values, dense, bias = randn(GRAPH.num_entries, 2), randn(300, width, seed=2), randn(width, seed=3)
    halves, x = (randn(300, 2, seed=4), randn(300, 2, seed=5)), randn(300, 64, seed=6)
    rows = [randn(60, width, seed=seed) for seed in (7, 8, 9)]
    torch.manual_seed(0)
    results = {
        "spmm": values_and_gradients(partial(spmm, GRAPH), values, dense),
        "attention": values_and_gradients(lambda t, s: attention(GRAPH, t, s, 0.2), *halves),
        "head_dots": values_and_gradients(head_dots, dense, randn(2, 2, width // 2, seed=10)),
        "matmul": [matmul(x, randn(64, width, seed=11))],  # its gradients are PyTorch's own dense products
        "dropout": values_and_gradients(lambda d: dropout(d, 0.5, training=True), dense),
        "zero_outside": changed_in_place(zero_outside, rows[0], rows[1] > 0),
        "adam": changed_in_place(
            lambda *parts: adam(*parts[:4], step=3, lr=0.01, weight_decay=0.1, kept=rows[1] > 0, total=parts[4]),
            *(*rows, rows[0].square() + rows[1].square(), rows[2].abs()),
        ),
    }
    for activation in ("none", "relu", "elu"):
        fused = partial(aggregate, GRAPH, activation=activation, p=0.5, training=True)
        results[f"aggregate {activation}"] = values_and_gradients(fused, values, dense, bias)
    return results


@pytest.mark.parametrize("width", [2, 16, 64])
def test_all_give_the_same_numbers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    results = {}
    for name in BACKENDS:
        monkeypatch.setenv("FASTGLT_BACKEND", name)
        results[name] = everything(width)
    for other in ("torch", "plain"):
        for kernel, ours in results["numba"].items():
            torch.testing.assert_close(results[other][kernel], ours, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("width", [2, 64])
def test_results_do_not_depend_on_the_thread_count(width: int) -> None:
    results = []
    for threads in (1, 2):
        set_threads(threads)
        results.append(everything(width))
    for kernel, ours in results[0].items():
        for one, two in zip(ours, results[1][kernel], strict=True):
            assert torch.equal(one, two), kernel


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes who is asked for what, from now on."""
    asked: list[str] = []

    def counted(name: str, kernel: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            asked.append(f"{name} {kernel}")
            return function(*arguments)

        return call

    for name, module in MODULES.items():
        for kernel in ("aggregate", "spmm", "sddmm", "matmul"):
            monkeypatch.setattr(module, kernel, counted(name, kernel, getattr(module, kernel)))
    return asked


CHOICES = {name: Table(spmm=((torch.inf, name),), sddmm=((torch.inf, name),)) for name in BACKENDS}


@pytest.mark.parametrize("name", BACKENDS)
def test_the_table_decides_who_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    csr = csr_of(PATTERNS["hub"])
    inputs = randn(csr.num_entries, 1, seed=1), randn(9, 5, seed=2)
    expected = values_and_gradients(partial(dense_product, PATTERNS["hub"]), *inputs)
    asked = count_calls(monkeypatch)
    with use_table(CHOICES[name]):
        ours = values_and_gradients(partial(spmm, csr), *inputs)
    torch.testing.assert_close(ours, expected)
    assert set(asked) == {f"{name} {kernel}" for kernel in ("aggregate", "sddmm", "spmm")}


def test_the_size_decides_along_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_calls(monkeypatch)
    with use_table(Table(matmul=((3, "torch"), (6, "numba"), (torch.inf, "torch")))):
        for columns in (1, 3, 4, 6, 7, 100):
            matmul(randn(2, 2), randn(2, columns))
    assert asked == [f"{name} matmul" for name in ("torch", "torch", "numba", "numba", "torch", "torch")]


@pytest.mark.parametrize("name", BACKENDS)
def test_the_environment_overrules_the_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    csr = csr_of(PATTERNS["hub"])
    monkeypatch.setenv("FASTGLT_BACKEND", name)
    asked = count_calls(monkeypatch)
    with use_table(CHOICES["plain" if name == "torch" else "torch"]):
        spmm(csr, torch.ones(csr.num_entries), randn(9, 2))
    assert asked[0] == f"{name} aggregate"


def test_tables_nest_and_the_machines_is_below() -> None:
    assert table() is Table.of_machine()
    with use_table(CHOICES["plain"]):
        with use_table(CHOICES["torch"]):
            assert table() is CHOICES["torch"]
        assert table() is CHOICES["plain"]
        with pytest.raises(ValueError, match="stop"), use_table(CHOICES["torch"]):
            raise ValueError("stop")
        assert table() is CHOICES["plain"]
    assert table() is Table.of_machine()


def test_an_unknown_back_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "numbar")
    csr = csr_of(PATTERNS["one node"])
    with pytest.raises(InputError, match=r"FASTGLT_BACKEND \(got 'numbar'\); did you mean 'numba'\?"):
        spmm(csr, torch.ones(1), torch.ones(1, 1))


def test_without_a_wish_the_table_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTGLT_BACKEND", raising=False)
    assert backend() == "auto"


@pytest.mark.parametrize(
    "then",
    [
        "fastglt.set_threads(1)",
        "torch.set_num_threads(1); fastglt.find_ticket('gcn', data, hidden=4, budget=budget, isolated=False)",
    ],
)
def test_torch_keeps_to_its_threads_when_numbas_are_made(then: str) -> None:
    """In a process of its own, which has computed something before."""
    code = f"""
import torch, fastglt
from tests.toy_data import toy_data
budget, data = fastglt.Budget(oneshot_epochs=1, denoise_epochs=1, interval=1), toy_data()
torch.ones(500, 500) @ torch.ones(500, 500)
{then}
print(torch.get_num_threads())
"""
    done = run("-c", code)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_set_threads_is_seen_by_both_libraries() -> None:
    import numba

    set_threads(1)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    set_threads(10_000)  # numba takes no more than the machine has
    assert numba.get_num_threads() <= max(2, os.cpu_count() or 1)
