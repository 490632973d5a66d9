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
from fastglt.models.links import LinkNetwork


def link_scores(a: Mapping[str, NDArray[Any]], pairs: NDArray[Any]) -> Any:
    """A number for each pair, above 0 for a likely link, from the arrays of an exported ticket for links."""
    h = scores(a)
    both, layers = h[pairs[:, 0]] * h[pairs[:, 1]], sum(name.startswith("decoder_weight") for name in a)
    for i in range(1, layers + 1):
        both = both @ a[f"decoder_weight{i}"] + a[f"decoder_bias{i}"]
        both = np.maximum(both, 0) if i < layers else both
    return both if layers else both.sum(1, keepdims=True)


def scores(a: Mapping[str, NDArray[Any]]) -> Any:
    """Class scores of every node from the arrays of an exported ticket; for links, what pairs are decoded from."""
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
    arrays |= _decoder(predictor)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return {"ticket.npz": file.getvalue()}


def _decoder(predictor: Predictor) -> dict[str, NDArray[Any]]:
    """The matrices and biases of a ticket for links."""
    if not isinstance(predictor.network, LinkNetwork):
        return {}
    learnt = [part.detach().cpu().numpy() for part in predictor.network.decoder.learnt]
    names = [f"decoder_{kind}{i + 1}" for kind in ("weight", "bias") for i in range(len(learnt) // 2)]
    return dict(zip(names, learnt, strict=True))


def read(path: Path, x: Tensor, pairs: Tensor | None = None) -> Tensor:
    """Class scores, or those of pairs, from the file; it has features of its own."""
    with np.load(path, allow_pickle=False) as file:
        found = dict(file)
    return torch.from_numpy(scores(found) if pairs is None else link_scores(found, pairs.numpy()))
