"""Rows that are asked for before they are needed: memory is slow to answer where no cache holds a matrix."""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_LINE = 64  # bytes that memory gives at a time
_INDEX, _INT, _BYTES = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
_TO_READ, _OFTEN, _DATA = _INT(0), _INT(3), _INT(1)


@intrinsic
def _fetch_row(_context, matrix, row):  # type: ignore[no-untyped-def]
    """Have a row of a contiguous matrix fetched, without waiting for it; nothing is computed."""
    signature = types.void(matrix, row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], signature.args[1], types.int64)
        columns = builder.extract_value(array.shape, 1)
        start = builder.bitcast(builder.gep(array.data, [builder.mul(place, columns)]), _BYTES)
        length = builder.mul(columns, array.itemsize)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT, _INT, _INT])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        with cgutils.for_range_slice(builder, _INDEX(0), length, _INDEX(_LINE)) as (at, _):
            builder.call(fetch, [builder.gep(start, [at]), _TO_READ, _OFTEN, _DATA])
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True)
def fetch_rows(matrix, indices, first, count):  # type: ignore[no-untyped-def]
    """Have the rows of some entries fetched, as far as there are any."""
    for k in range(first, min(first + count, indices.shape[0])):
        _fetch_row(matrix, indices[k])
