"""Masks as bits: a matrix's own, one for each entry, or those of its rows and columns and of where they meet.

The latter is small where whole units were pruned. It makes a large mask from few bytes, so whoever reads one that
may come from anybody is protected by a bound, and what is beyond it is stored in the other way.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from fastglt.masks import Mask

_MOST = 256  # entries of a mask for each byte that is stored of it and of what it keeps


def pack(mask: Mask) -> Tensor:
    """A bit for each entry."""
    return torch.from_numpy(np.packbits(mask.kept.cpu().numpy().ravel()))


def unpack(packed: Tensor, shape: list[int]) -> Mask:
    """The inverse; ValueError for other bits than so many."""
    count = math.prod(shape)
    if packed.dtype != torch.uint8 or packed.shape != (math.ceil(count / 8),):
        raise ValueError(f"a mask of {count} bits expected")
    return Mask(torch.from_numpy(np.unpackbits(packed.numpy(), count=count).view(np.bool_).reshape(shape)))


def pack_named(name: str, mask: Mask) -> dict[str, Tensor]:
    """`pack`, as a tensor of a file."""
    return {name: pack(mask)}


def unpack_named(tensors: Mapping[str, Tensor], name: str, shape: list[int]) -> Mask:
    """The inverse."""
    return unpack(tensors[name], shape)


def pack_units(name: str, mask: Mask) -> dict[str, Tensor]:
    """Which rows and columns of a matrix are not empty, and what is kept where they meet."""
    kept = mask.kept.cpu().reshape(mask.shape[0], -1)
    rows, columns = kept.any(1), kept.any(0)
    parts = {"rows": rows, "columns": columns, "inside": kept[rows][:, columns]}
    return {f"{name}/{part}": pack(Mask(bits)) for part, bits in parts.items()}


def unpack_units(tensors: Mapping[str, Tensor], name: str, shape: list[int]) -> Mask:
    """The inverse; ValueError also for a mask that is too large for what is stored of it."""
    height, width = shape[0], math.prod(shape[1:])
    parts = {part: tensors[f"{name}/{part}"] for part in ("rows", "columns", "inside")}
    kept_bytes = tensors[name.removeprefix("mask/")].nbytes
    _check_size(height * width, kept_bytes + sum(part.nbytes for part in parts.values()))
    rows, columns = unpack(parts["rows"], [height]).kept, unpack(parts["columns"], [width]).kept
    inside = unpack(parts["inside"], [int(rows.sum()), int(columns.sum())]).kept
    kept = torch.zeros(height, width, dtype=torch.bool)
    kept[rows.nonzero(), columns.nonzero().squeeze(1)] = inside
    return Mask(kept.reshape(shape))


def fits_units(mask: Mask, weight: Tensor) -> bool:
    """Whether the mask of a weight may be stored by rows and columns."""
    kept_bytes = mask.count * weight.element_size()
    try:
        _check_size(mask.size, kept_bytes + sum(part.nbytes for part in pack_units("", mask).values()))
    except ValueError:
        return False
    return True


def _check_size(entries: int, stored: int) -> None:
    if entries > _MOST * stored:
        raise ValueError(f"at most {_MOST * stored} entries of a mask expected for {stored} bytes (got {entries})")
