"""Sums that stay in vector registers, written in the compiler's own language.

A compiled loop that adds into an array loads and stores it for every few rows, and asks each time whether it
overlaps with what it reads. Here the running sums of a few columns are vectors that are stored once, at the end.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from fastglt.kernels._loops import _FAST, _ROW, ELU, LOG2_E, LOWEST, NONE, POWERS_OF_2, RELU
from fastglt.kernels.frozen import LANES, NARROW

_WIDE = 16 if "+avx512f" in get_host_cpu_features() else 8  # numbers of a vector of which many are used at once
_LONGEST = 16  # of a vector; the compiler splits one that is too long for the machine
_INDEX = ir.IntType(64)


@intrinsic(prefer_literal=True)
def sum_columns(_context, indices, values, head, dense, begin, end, column, out, place, width, fresh):  # type: ignore[no-untyped-def]
    """Add Σ_k values[k, head] · dense[indices[k], column + j], begin ≤ k < end, to out[place + j] for j < width.

    The width is a literal: 8, or a multiple of 16; so is `fresh`: 1 takes no notice of what is in out before. All
    arrays are contiguous.
    """
    signature = types.void(indices, values, head, dense, begin, end, column, out, place, width, fresh)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _Given(context, builder, signature.args, arguments)
        vector = ir.VectorType(context.get_value_type(dense.dtype), min(width.literal_value, _LONGEST))
        targets = _vectors(builder, builder.gep(given.data(7), [given.number(8)]), vector, width.literal_value)
        initial = ir.Constant(vector, None)
        sums = [
            cgutils.alloca_once_value(builder, initial if fresh.literal_value else _load(builder, target))
            for target in targets
        ]
        _add_rows(builder, given, sums, vector, width.literal_value)
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def project_row(_context, indices, values, head, dense, begin, end, first, bias, activation, columns, out, width):  # type: ignore[no-untyped-def]
    """Add ⟨activation(Σ_k values[k, head] · dense[indices[k]] + bias), columns[j]⟩ to out[j]; begin ≤ k < end.

    The numbers from a first column on are summed, as many as the width says, STRIP or NARROW: a literal, as the
    activation is. A multiple of LANES products is taken; the precision is single. Of a NARROW strip the columns are
    given as rows, one for each of its numbers. Call it from a function that may contract but not reorder: an
    exponential depends on it.
    """
    signature = types.void(indices, values, head, dense, begin, end, first, bias, activation, columns, out, width)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = _Given(context, builder, signature.args, arguments)
        vector, lanes = (ir.VectorType(ir.FloatType(), width) for width in (_WIDE, LANES))
        strip = width.literal_value
        starts = _vectors(builder, given.data(7), vector, strip)
        sums = [cgutils.alloca_once_value(builder, _load(builder, start)) for start in starts]
        _add_rows(builder, given, sums, vector, strip)
        hidden = [_ACTIVATE[activation.literal_value](builder, builder.load(total)) for total in sums]
        with cgutils.for_range_slice(builder, _INDEX(0), given.shape(10, 0), _INDEX(LANES)) as (j, _):
            (target,) = _vectors(builder, builder.gep(given.data(10), [j]), lanes, LANES)
            if strip == NARROW:
                _add_spread(builder, hidden, given.data(9), given.shape(10, 0), j, target)
            else:
                _add_dots(builder, hidden, builder.gep(given.data(9), [builder.mul(j, _INDEX(strip))]), target)
        return context.get_dummy_value()

    return signature, generate


@njit(**_ROW)
def sum_rows(indices, values, head, dense, begin, end, column, total):  # type: ignore[no-untyped-def]
    """Add Σ_k values[k, head] · dense[indices[k]], begin ≤ k < end, from a column on, to a row."""
    c = 0
    while c + 64 <= total.shape[0]:
        sum_columns(indices, values, head, dense, begin, end, column + c, total, c, 64, 0)
        c += 64
    if c + 32 <= total.shape[0]:
        sum_columns(indices, values, head, dense, begin, end, column + c, total, c, 32, 0)
        c += 32
    if c + 16 <= total.shape[0]:
        sum_columns(indices, values, head, dense, begin, end, column + c, total, c, 16, 0)
        c += 16
    if c + 8 <= total.shape[0]:
        sum_columns(indices, values, head, dense, begin, end, column + c, total, c, 8, 0)
        c += 8
    while c < total.shape[0]:
        for k in range(begin, end):
            total[c] += values[k, head] * dense[indices[k], column + c]
        c += 1


class _Given:
    """The arguments of a call by their places: arrays' data and shapes, and numbers as indices."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any) -> None:
        self._context, self._builder, self._kinds, self._arguments = context, builder, kinds, arguments

    def data(self, place: int) -> Any:
        """Where an array's numbers begin."""
        return self._array(place).data

    def shape(self, place: int, dim: int) -> Any:
        """How long an array is."""
        return self._builder.extract_value(self._array(place).shape, dim)

    def number(self, place: int) -> Any:
        """A number."""
        return self._context.cast(self._builder, self._arguments[place], self._kinds[place], types.int64)

    def _array(self, place: int) -> Any:
        make = self._context.make_array(self._kinds[place])
        return make(self._context, self._builder, self._arguments[place])


def _add_rows(builder: Any, given: _Given, sums: list[Any], vector: Any, width: int) -> None:
    """Add what `sum_columns` is about to sums; the arguments up to the first column are the same."""
    heads, columns = given.shape(1, 1), given.shape(3, 1)
    first = builder.gep(given.data(3), [given.number(6)])
    with cgutils.for_range_slice(builder, given.number(4), given.number(5), _INDEX(1)) as (k, _):
        place = builder.add(builder.mul(k, heads), given.number(2))
        factor = _spread(builder, builder.load(builder.gep(given.data(1), [place])), vector)
        row = builder.zext(builder.load(builder.gep(given.data(0), [k])), _INDEX)
        parts = _vectors(builder, builder.gep(first, [builder.mul(row, columns)]), vector, width)
        for total, part in zip(sums, parts, strict=True):
            _add_product(builder, total, factor, _load(builder, part))


def _vectors(builder: Any, start: Any, vector: Any, width: int) -> list[Any]:
    """Where the vectors begin that hold so many numbers from a place on."""
    place = builder.bitcast(start, vector.as_pointer())
    return [builder.gep(place, [_INDEX(j)]) for j in range(width // vector.count)]


def _load(builder: Any, place: Any) -> Any:
    return builder.load(place, align=1)


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None))


def _add_product(builder: Any, total: Any, left: Any, right: Any) -> None:
    product = builder.fmul(left, right, flags=tuple(_FAST))
    builder.store(builder.fadd(builder.load(total), product, flags=tuple(_FAST)), total)


def _relu(builder: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", y, _all(y, 0.0)), _all(y, 0.0), y)  # NaN stays


def _elu(builder: Any, y: Any) -> Any:
    """e^y − 1 for y ≤ 0 as `_loops._exp` has it, except for how n is found.

    t is added to a number so large that its last bit is worth one: that rounds it to n, whose bits are the last.
    """
    whole = ir.VectorType(ir.IntType(32), y.type.count)
    t = builder.fmul(y, _all(y, LOG2_E))
    t = builder.select(builder.fcmp_ordered(">", t, _all(y, LOWEST)), t, _all(y, LOWEST))
    large = builder.fadd(t, _all(y, 3 * 2.0**22 + 127))
    f = builder.fsub(t, builder.fsub(large, _all(y, 3 * 2.0**22 + 127)))
    e = _all(y, POWERS_OF_2[0])
    for coefficient in POWERS_OF_2[1:]:
        e = builder.fadd(builder.fmul(e, f), _all(y, coefficient))
    scale = builder.shl(builder.bitcast(large, whole), ir.Constant(whole, [23] * y.type.count))
    below = builder.fsub(builder.fmul(e, builder.bitcast(scale, y.type)), _all(y, 1.0))
    return builder.select(builder.fcmp_ordered("<=", y, _all(y, 0.0)), below, y)  # NaN stays


_ACTIVATE: dict[int, Callable[[Any, Any], Any]] = {NONE: lambda _, y: y, RELU: _relu, ELU: _elu}


def _all(like: Any, number: Any) -> Any:
    """A vector of one constant."""
    return ir.Constant(like.type, [float(np.float32(number))] * like.type.count)


def _dot(builder: Any, left: list[Any], right: list[Any]) -> Any:
    """A vector whose numbers add up to the product of two; the right one is loaded."""
    products = [builder.fmul(x, _load(builder, y), flags=("contract",)) for x, y in zip(left, right, strict=True)]
    return reduce(lambda x, y: builder.fadd(x, y, flags=("contract",)), products)


def _add_dots(builder: Any, left: list[Any], rows: Any, target: Any) -> None:
    """Add the product of some vectors with each of LANES rows that are as long to a target."""
    vector, strip = left[0].type, len(left) * left[0].type.count
    starts = [builder.gep(rows, [_INDEX(lane * strip)]) for lane in range(LANES)]
    dots = [_dot(builder, left, _vectors(builder, start, vector, strip)) for start in starts]
    builder.store(builder.fadd(_load(builder, target), _across(builder, dots)), target, align=1)


def _add_spread(builder: Any, left: list[Any], rows: Any, width: Any, first: Any, target: Any) -> None:
    """Add each number of some vectors times LANES numbers of its own row, from a first on, to a target.

    Four sums are added up side by side: none waits for the one before.
    """
    lanes = target.type.pointee
    totals = [_load(builder, target), *[ir.Constant(lanes, None)] * 3]
    numbers = [(vector, place) for vector in left for place in range(vector.type.count)]
    for row, (vector, place) in enumerate(numbers):
        number = builder.extract_element(vector, ir.IntType(32)(place))
        start = builder.gep(rows, [builder.add(builder.mul(_INDEX(row), width), first)])
        weights = _load(builder, builder.bitcast(start, lanes.as_pointer()))
        product = builder.fmul(_spread(builder, number, lanes), weights, flags=("contract",))
        totals[row % 4] = builder.fadd(totals[row % 4], product, flags=("contract",))
    builder.store(reduce(builder.fadd, totals), target, align=1)


def _across(builder: Any, vectors: list[Any]) -> Any:
    """The sum of each of LANES vectors' numbers: two vectors at a time, within the quarters of registers."""
    while vectors[0].type.count > LANES:
        count = vectors[0].type.count // 2
        vectors = [
            builder.fadd(*(_picked(builder, each, each, range(low, low + count)) for low in (0, count)))
            for each in vectors
        ]
    evens, odds = (0, 2, 8, 10, 4, 6, 12, 14), (1, 3, 9, 11, 5, 7, 13, 15)
    for places in ((evens, odds), (evens, odds), ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))):
        vectors = [
            builder.fadd(*(_picked(builder, left, right, part) for part in places))
            for left, right in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def _picked(builder: Any, left: Any, right: Any, places: Iterable[int]) -> Any:
    """A vector of some of the numbers of two."""
    numbers = [ir.IntType(32)(place) for place in places]
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers))
