"""Plain arrays: a `.npz` file, and all that is needed to compute class scores from it."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError


def scores(a: Mapping[str, NDArray[Any]]) -> Any:
    """Class scores of every node from the arrays of an exported ticket."""
    source, target, x = a["source"], a["target"], a["x"]
    first = np.flatnonzero(np.diff(target, prepend=-1))  # where each node's messages begin

    def attention(halves: NDArray[Any]) -> Any:
        sender, receiver = np.split(halves, 2, axis=1)
        logits = sender[source] + receiver[target]
        logits = np.where(logits > 0, logits, a["slope"] * logits)
        share = np.exp(logits - np.maximum.reduceat(logits, first)[target])
        return a["score"] * share / np.add.reduceat(share, first)[target]

    gat = "looks1" in a
    values = attention(x @ a["looks1"])[:, a["heads"]] if gat else a["values1"]
    h = np.add.reduceat(values * (x @ a["weight1"])[source], first) + a["bias1"]
    h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)) if gat else 0)
    y = h @ a["weight2"] + a["shift"]
    values = attention(y @ a["looks2"]) if gat else a["values2"]
    out = np.add.reduceat(values * y[source], first) + a["bias2"]
    return out + h @ a["readout"] if "readout" in a else out


def make(predictor: Predictor) -> dict[str, bytes]:
    """The buffers of the network's form in arrays under their own names, and the features that it reads."""
    with torch.no_grad():
        form = predictor.network.array_form(predictor.graph, predictor.score)
    if form is None:
        rule = "compact arrays are there for gcn, gat and gin with depth 1"
        raise InputError(f"{rule} (got {predictor.network.described}); try another format")
    arrays = {name: value.numpy() for name, value in form.arrays(predictor.x.dense.cpu()).items()}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return {"ticket.npz": file.getvalue()}


def read(path: Path, x: Tensor) -> Tensor:
    """Class scores from the file; it has features of its own."""
    with np.load(path, allow_pickle=False) as file:
        return torch.from_numpy(scores(dict(file)))
