"""A search's history in a ticket file: one array for each column that changes, in the smallest type that is exact.

A column is a tensor with as many entries as epochs or, where all are equal, with one. Stages are numbers, and their
names stand in the metadata. There are no times in it, so equal runs still give equal bytes. A ticket of whole units
is so small that its history would be a large part of it: there all columns are one compressed tensor.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from fastglt.system.container import read_tensors, to_bytes
from fastglt.training.records import EpochRecord

PREFIX = "history/"
COMPRESSED = "history"
STAGES = "history_stages"  # the metadata's key, there if a ticket has a history
_STAGE = "stage"
_COLUMNS = {field.name: field.type for field in fields(EpochRecord)}
_INTEGERS = (torch.uint8, torch.int16, torch.int32, torch.int64)
_REALS = (torch.float32, torch.float64)
_MOST_EPOCHS = 100_000  # a longer history is not kept: whoever reads a ticket must not need memory without bound
_MOST_BYTES = _MOST_EPOCHS * 8 * len(_COLUMNS) + 10_000  # of all columns and their names


def to_tensors(history: Sequence[EpochRecord]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The columns, and what stands in the metadata; nothing at all for no history, or one without end."""
    if not 0 < len(history) <= _MOST_EPOCHS:
        return {}, {}
    stages = list(dict.fromkeys(record.stage for record in history))
    columns = {name: [getattr(record, name) for record in history] for name in _COLUMNS}
    columns[_STAGE] = [stages.index(stage) for stage in columns[_STAGE]]
    found = {f"{PREFIX}{name}": _packed(values, real=_COLUMNS[name] is float) for name, values in columns.items()}
    return found, {STAGES: stages}


def compressed(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Columns as one tensor of bytes; none stay none."""
    if not columns:
        return {}
    packed = zlib.compress(to_bytes(columns, {}), level=9)
    return {COMPRESSED: torch.frombuffer(bytearray(packed), dtype=torch.uint8)}


def from_tensors(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> tuple[EpochRecord, ...]:
    """The inverse; ValueError for what no ticket has. A ticket of before has no history."""
    stages = header.get(STAGES)
    if stages is None:
        return ()
    if not (isinstance(stages, list) and all(isinstance(stage, str) for stage in stages)):
        raise ValueError("the names of a history's stages expected")
    if COMPRESSED in tensors:
        tensors = _expanded(tensors[COMPRESSED])
    stored = {name: tensors[f"{PREFIX}{name}"] for name in _COLUMNS}
    epochs = max(column.numel() for column in stored.values())
    if epochs > _MOST_EPOCHS or any(column.shape not in ((1,), (epochs,)) for column in stored.values()):
        raise ValueError("columns of a history must be as long as each other")
    columns: dict[str, list[Any]] = {}
    for name, column in stored.items():
        if column.dtype not in (_REALS if _COLUMNS[name] is float else _INTEGERS):
            raise ValueError(f"'{PREFIX}{name}' must hold other numbers (got {column.dtype})")
        columns[name] = column.expand(epochs).tolist()
    if not all(0 <= number < len(stages) for number in columns[_STAGE]):
        raise ValueError("a history's stages must have names")
    columns[_STAGE] = [stages[number] for number in columns[_STAGE]]
    return tuple(EpochRecord(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _expanded(packed: Tensor) -> dict[str, Tensor]:
    """The columns again; ValueError for more than a history can have."""
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(bytes(packed.numpy().data), _MOST_BYTES)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"the history is damaged ({error})") from None
    if not reader.eof:
        raise ValueError("the history is too long, or cut off")
    return read_tensors(content)


def _packed(values: Sequence[float], *, real: bool) -> Tensor:
    whole = torch.tensor(values, dtype=torch.float64 if real else torch.int64)
    if len(values) > 1 and bool((whole == whole[0]).all()):
        whole = whole[:1]
    for dtype in _REALS if real else _INTEGERS:
        small = whole.to(dtype)
        if torch.equal(small.to(whole.dtype).nan_to_num(), whole.nan_to_num()):
            return small
    return whole
