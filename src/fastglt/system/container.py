"""Named tensors and JSON metadata as the bytes of one safetensors file. Nothing is ever pickled.

A sealed file has a digest of all that follows before it: whatever is changed in it is noticed.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from fastglt.system import plain_json
from fastglt.system.process import is_out_of_memory

_MOST_META = 1 << 23  # bytes of a header; ours have some thousands
_SEAL = b"fastglt\xfb"  # as the length of a header, which stands there without a seal, it is more than any file has
_DIGEST = 32  # bytes
_KEY = "fastglt"  # the one key of safetensors' own metadata: several would come in any order


def to_bytes(tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> bytes:
    """A file's bytes, equal for equal tensors and metadata; no two tensors may share memory."""
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


def seal(content: bytes) -> bytes:
    """A file's bytes with their digest before them."""
    return b"".join((_SEAL, hashlib.sha256(content).digest(), content))


def unseal(content: bytes) -> bytes:
    """What was sealed; what has no seal, as all files of before, comes back as it is. ValueError if it was changed.

    >>> unseal(seal(b"weights")), unseal(b"weights")
    (b'weights', b'weights')
    """
    start = len(_SEAL) + _DIGEST
    if content[: len(_SEAL)] != _SEAL:
        return content
    inner = content[start:]
    if hashlib.sha256(inner).digest() != content[len(_SEAL) : start]:
        raise ValueError("its checksum does not match")
    return inner


def read_meta(content: bytes) -> dict[str, Any]:
    """The metadata alone; ValueError for anything else than such a file."""
    length = int.from_bytes(content[:8], "little")  # safetensors keeps its header's length there
    if not 0 < length <= min(_MOST_META, len(content) - 8):
        raise ValueError("no metadata of fastglt (its length is wrong)")
    try:
        found = plain_json.loads(plain_json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no metadata of fastglt ({error})") from None
    if not isinstance(found, dict):
        raise ValueError("no metadata of fastglt (it is no mapping)")
    return found


def read_tensors(content: bytes) -> dict[str, Tensor]:
    """The tensors; their order is not kept. ValueError for a damaged file, or numbers of a kind PyTorch lacks."""
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    except (KeyError, AssertionError, TypeError, OverflowError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise ValueError(f"{type(error).__name__}: {error}") from None
