"""Measure who serves each kernel fastest on this machine."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

import torch
from torch import Tensor

from fastglt.kernels import _numba, _plain, _torch
from fastglt.kernels.csr import CSR
from fastglt.kernels.table import Steps, Table

_ROWS, _FEATURES, _WIDTH, _DEGREE = 3000, 500, 512, 5  # a graph of the size that the papers use
_REPEATS = 5
_MARGIN = 0.9  # who comes with fastglt serves on, unless another takes less than this share of its time

Runs = dict[str, Callable[[], object]]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """How long each server took for one size of a kernel."""

    kernel: str
    size: float  # the largest that this measurement decides
    milliseconds: dict[str, float]
    chosen: str


def measure() -> Iterator[Measured]:
    """Each kernel at a few sizes, all servers in turn; about ten seconds."""
    defaults = Table()
    for kernel, size, runs in _cases():
        times = _interleaved(runs)
        usual = defaults.choose(kernel, size)
        best = min(times, key=lambda server: times[server])
        chosen = best if times[best] < _MARGIN * times[usual] else usual
        yield Measured(kernel=kernel, size=size, milliseconds=times, chosen=chosen)


def to_table(results: list[Measured]) -> Table:
    """The table that the measurements amount to; the last size of a kernel stands for all larger ones."""
    steps: dict[str, Steps] = {}
    for kernel, found in groupby(results, key=lambda result: result.kernel):
        runs = [list(run) for _, run in groupby(found, key=lambda result: result.chosen)]
        limits = [(run[-1].size, run[-1].chosen) for run in runs]
        steps[kernel] = (*limits[:-1], (math.inf, limits[-1][1]))
    return Table(**steps)


def _cases() -> Iterator[tuple[str, float, Runs]]:
    graph = _pattern(_ROWS, _ROWS, _DEGREE / _ROWS)
    values = torch.ones(graph.num_entries, 1)
    backends: dict[str, Any] = {"numba": _numba, "torch": _torch, "plain": _plain}
    for width in (8, 64, 512):
        dense = torch.ones(_ROWS, width)
        yield "spmm", width, {name: _call(b.spmm, graph, values, dense) for name, b in backends.items()}
    for width in (8, 64, 512):
        dense = torch.ones(_ROWS, width)
        yield "sddmm", width, {name: _call(b.sddmm, graph, dense, dense, 1) for name, b in backends.items()}
    x = torch.ones(_ROWS, _WIDTH)
    for columns in (2, 4, 8, 16, 32):
        weight = torch.ones(_WIDTH, columns)
        yield "matmul", columns, {name: _call(backends[name].matmul, x, weight) for name in ("numba", "torch")}
    weight, grad = torch.ones(_FEATURES, _WIDTH), torch.ones(_ROWS, _WIDTH)
    for density in (0.05, 0.1, 0.15, 0.2, 0.3, 1.0):
        yield "features", density, _feature_products(density, weight, grad)


def _feature_products(density: float, weight: Tensor, grad: Tensor) -> Runs:
    """A product forward and backward, with and without the zeros."""
    csr = _pattern(_ROWS, _FEATURES, density)
    values = torch.ones(csr.num_entries, 1)
    dense = torch.zeros(_ROWS, _FEATURES)
    dense[csr.rows, csr.indices] = 1

    def sparse() -> None:
        _numba.spmm(csr, values, weight)
        _numba.spmm(csr.transposed, values, grad)

    return {"sparse": sparse, "dense": lambda: (dense @ weight, dense.t() @ grad)}


def _pattern(rows: int, columns: int, density: float) -> CSR:
    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(rows, columns, generator=generator) < density
    filled, places = kept.nonzero().unbind(1)
    return CSR.from_entries(filled, places, (rows, columns))[0]


def _call(function: Callable[..., object], *arguments: Any) -> Callable[[], object]:
    return lambda: function(*arguments)


def _interleaved(runs: Runs) -> dict[str, float]:
    """The median milliseconds of each, taken in turn so that noise meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()  # compiles, and warms up
    for _ in range(_REPEATS):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - began))
    return {name: median(taken) for name, taken in times.items()}
