"""A graph as a numpy archive that `--dataset` reads."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from fastglt.data.npz_file import MASKS, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


def npz_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """A dataset's tensors as the bytes of an archive; features are written out dense, and compressed.

    Edge features of several columns have no place in it and are left out.
    """
    arrays = {name: tensors[name].cpu().numpy() for name in ("edge_index", "y", *MASKS) if name in tensors}
    arrays["x"] = tensors["x"].to_dense().cpu().numpy()
    arrays |= {
        name: tensors[name].cpu().numpy() for name in WEIGHTS if name in tensors and tensors[name].dim() == 1
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
