"""Named tensors and JSON metadata as the bytes of one safetensors file. Nothing is ever pickled."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

_KEY = "fastglt"  # the one key of safetensors' own metadata: several would come in any order


def to_bytes(tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> bytes:
    """The same tensors and metadata always give the same bytes; no two tensors may share memory."""
    return save(dict(tensors), {_KEY: json.dumps(meta, default=_plain)})


def _plain(number: Any) -> Any:
    """A number of NumPy's, which a caller's seed or sparsity may be, as Python's own."""
    if isinstance(number, np.generic):
        return number.item()
    raise TypeError(f"metadata holds plain values (got {type(number).__name__})")


def nan_as_null(value: Any) -> Any:
    """Plain JSON values; a score that is not a number, for want of test nodes, becomes null."""
    if isinstance(value, Mapping):
        return {name: nan_as_null(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def own_copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous copies on the CPU that share no memory, as `to_bytes` needs them."""
    copies = {name: torch.empty(value.shape, dtype=value.dtype) for name, value in tensors.items()}
    return {name: copy.copy_(tensors[name].detach()) for name, copy in copies.items()}


def read_meta(content: bytes) -> dict[str, Any]:
    """The metadata alone; ValueError for anything else than such a file."""
    try:
        length = int.from_bytes(content[:8], "little")  # safetensors keeps its header's length there
        return dict(json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no metadata of fastglt ({error})") from None


def read_tensors(content: bytes) -> dict[str, Tensor]:
    """The tensors; their order is not kept."""
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(str(error)) from None
