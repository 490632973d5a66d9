"""How the features and the first weights are stored, and what is summed up first.

Both are measured on this machine, on these very numbers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch
from torch import Tensor

from fastglt.errors import InputError, unknown_name
from fastglt.graphs.features import Features
from fastglt.graphs.messages import Hop
from fastglt.kernels import CSR
from fastglt.kernels.frozen import Product, StoredMatrix, StoredRows
from fastglt.models.programs import Program

WHOLE_ROWS, STRIPS, DENSE = "whole rows", "strips", "dense"
SUMS_FIRST = "sums first"  # dense features that a program sums up before they are multiplied
_REPEATS, _MOST_REPEATS = 5, 50
_LONG = 0.02  # seconds that trials of one layout may take for more than the fewest: short ones are easily disturbed
_DENSE_FROM = 0.02  # share of non-zeros among the features from which dense rows are worth a trial


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredDenseRows:
    """The columns that the matrix has weights for, zeros written out."""

    x: Tensor
    weight: Tensor | None  # None: these very columns are the product
    used: Tensor  # which columns of the features these are

    @staticmethod
    def of(x: Features, weight: Tensor) -> "StoredDenseRows":
        """Features that are to be multiplied with a matrix."""
        used = weight.any(1).nonzero().squeeze(1)
        left = weight[used].contiguous()
        one_each = left.shape[0] == left.shape[1] and torch.equal(left, torch.eye(left.shape[0]).to(left))
        return StoredDenseRows(x=x.dense[:, used].contiguous(), weight=None if one_each else left, used=used)

    def take(self, rows: Tensor) -> "StoredDenseRows":
        """Some of the rows."""
        return replace(self, x=self.x[rows])

    def append(self, csr: CSR, values: Tensor) -> "StoredDenseRows":
        """These rows, then more."""
        more = values.new_zeros(csr.num_rows, csr.num_columns)
        more[csr.rows, csr.indices.long()] = values
        return replace(self, x=torch.cat([self.x, more[:, self.used]]))

    def product(self) -> Product:
        """Times the matrix."""
        return self.x if self.weight is None else self.x @ self.weight


Rows = StoredDenseRows | StoredRows  # the features of some nodes, ready to be multiplied


def store(x: Features, weight: Tensor, layout: str, strip: int) -> Rows:
    """Features and a weight matrix in a layout; features that no weight reads are left out in all of them.

    "sums first" is dense for the matrix of a program in that order, see `in_order`.
    """
    if layout in (DENSE, SUMS_FIRST):
        return StoredDenseRows.of(x, weight)
    return StoredMatrix.of(weight, strip=strip if layout == STRIPS else None).prepare(x.csr, x.values)


def restore(rows: Rows, x: Features) -> Rows:
    """Other features in the place of these, for the same matrix."""
    if isinstance(rows, StoredDenseRows):
        return replace(rows, x=x.dense[:, rows.used].contiguous())
    return rows.matrix.prepare(x.csr, x.values)


def for_each(program: Program, layout: str) -> tuple[str, ...]:
    """A layout for all matrices; one whose product is needed whole is stored in whole rows instead of strips."""
    whole = program.needed_whole if layout == STRIPS else 0
    return (WHOLE_ROWS,) * whole + (layout,) * (len(program.matrices) - whole)


def in_order(program: Program, layouts: Sequence[str]) -> Program:
    """The program in the order that the layouts of its matrices name, which are checked."""
    for layout in layouts:
        if layout not in (WHOLE_ROWS, STRIPS, DENSE, SUMS_FIRST):
            raise unknown_name("layout", layout, (WHOLE_ROWS, STRIPS, DENSE, SUMS_FIRST))
    if STRIPS in layouts[: program.needed_whole]:
        raise InputError(f"'{STRIPS}' is no layout for a gat's first matrix, or a resgcn's, which is needed whole")
    if SUMS_FIRST not in layouts:
        return program
    found = program.summing_first()
    if found is None:
        rule = f"the layout '{SUMS_FIRST}' is for gcn and gin"
        raise InputError(f"{rule} (got a network whose messages depend on products); choose another")
    return found


def fastest(
    program: Program, x: Features, hops: Sequence[Hop], score: Tensor | None
) -> tuple[tuple[str, ...], dict[str, float]]:
    """The layouts with which all nodes' class scores come soonest, and the milliseconds of those that were tried.

    Sums first are tried with dense features of which fewer are read than there are live units: there is less to be
    summed up for new features too.
    """
    names = [STRIPS, WHOLE_ROWS] if program.needed_whole < len(program.matrices) else [WHOLE_ROWS]
    if x.num_nonzero >= _DENSE_FROM * x.num_nodes * x.num_features:
        names.append(DENSE)
        other = program.summing_first()
        if other is not None and other.matrices[0].shape[1] < program.live_units:
            names.append(SUMS_FIRST)
    name, spent = race(
        {name: _answer(program, for_each(program, name), x, hops, score) for name in names}, x.device
    )
    return for_each(program, name), spent


def _answer(
    program: Program, layouts: Sequence[str], x: Features, hops: Sequence[Hop], score: Tensor | None
) -> Callable[[], Tensor]:
    """What computes the class scores."""
    program = in_order(program, layouts)
    pairs = zip(program.matrices, layouts, strict=True)
    rows = [store(x, matrix, layout, program.strip) for matrix, layout in pairs]
    if hops[0].senders is not None:
        rows = [each.take(hops[0].senders) for each in rows]
    finish = program.prepare(hops, score)
    return lambda: finish([each.product for each in rows])


def race(works: Mapping[str, Callable[[], Tensor]], device: torch.device) -> tuple[str, dict[str, float]]:
    """The quickest by the median of a few interleaved trials, and each one's milliseconds."""
    for work in works.values():
        work()  # compiled and in the cache
    slowest = max(_seconds(work, device) for work in works.values())
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(min(_MOST_REPEATS, max(_REPEATS, int(_LONG / slowest)))):
        for name, work in works.items():
            spent[name].append(_seconds(work, device))
    medians = {name: 1000 * median(found) for name, found in spent.items()}
    return min(medians, key=lambda name: medians[name]), medians


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began
