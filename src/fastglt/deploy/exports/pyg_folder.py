"""An ordinary PyG model and its `Data`: a folder with both in safetensors and the code that puts them together."""

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError
from fastglt.graphs.messages import Hop
from fastglt.models import GAT, GCN, GIN, Backbone

FIRST = "model.safetensors"  # to be written
FILES = {FIRST, "data.safetensors", "model.py"}
_CODE = Path(__file__).with_name("pyg_model.py")


@torch.no_grad()
def make(predictor: Predictor) -> dict[str, bytes]:
    """The three files."""
    network, (hop, _) = predictor.network, predictor.graph.hops(None, depth=2)
    if not isinstance(network, Backbone):
        raise InputError(
            "pyg is for fastglt's own backbones (got a user's model, which is a PyG model already); "
            "load ticket.weights into it and use ticket.prune(data)"
        )
    kind, arguments, state = _model(network)
    about = {"kind": kind, "arguments": json.dumps(arguments)}
    data = {"x": predictor.x.dense, **_messages(network, hop, predictor.score)}
    return {
        FIRST: save({name: _own(value) for name, value in state.items()}, metadata=about),
        "data.safetensors": save({name: _own(value) for name, value in data.items()}),
        "model.py": _CODE.read_bytes(),
    }


def read(path: Path, x: Tensor) -> Tensor:
    """Class scores from the folder, by the code that is in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's import warns
        from fastglt.deploy.exports.pyg_model import load

    model, data = load(path)
    with torch.no_grad():
        found: Tensor = model(data.x, data.edge_index, data.edge_weight)
    return found


def _model(network: Backbone) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """A model of `pyg_model`: its kind, its arguments and its state."""
    state = dict(network.state_dict())
    shape = {"features": network.in_channels, "hidden": network.hidden, "classes": network.out_channels}
    layers = (("layer1", "conv1"), ("layer2", "conv2"))
    found: dict[str, Tensor] = {}
    if isinstance(network, GCN):
        for ours, theirs in layers:
            found |= {f"{theirs}.lin.weight": state[f"{ours}.weight"].T, f"{theirs}.bias": state[f"{ours}.bias"]}
        return "gcn", shape, found
    if isinstance(network, GAT):
        for ours, theirs in layers:
            found |= {f"{theirs}.lin.weight": state[f"{ours}.weight"].T, f"{theirs}.bias": state[f"{ours}.bias"]}
            found[f"{theirs}.att_src"] = state[f"{ours}.attention_source"].unsqueeze(0)
            found[f"{theirs}.att_dst"] = state[f"{ours}.attention_target"].unsqueeze(0)
        return "gat", {**shape, "heads": network.heads, "slope": network.slope}, found
    assert isinstance(network, GIN)
    for (ours, theirs), layer in zip(layers, (network.layer1, network.layer2), strict=True):
        found[f"{theirs}.eps"] = state[f"{ours}.eps"]
        weights, biases = [layer.weight, *layer.weights], [layer.bias, *layer.biases]
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            found |= {f"{theirs}.nn.{2 * i}.weight": weight.T, f"{theirs}.nn.{2 * i}.bias": bias}
    found |= {"readout.weight": state["weight_readout"].T, "readout.bias": state["bias_readout"]}
    return "gin", {**shape, "depth": network.depth}, found


def _messages(network: Backbone, hop: Hop, score: Tensor | None) -> dict[str, Tensor]:
    """Who sends to whom, and what multiplies each message besides attention and GIN's own row."""
    index = torch.stack([hop.csr.indices.long(), hop.csr.rows.long()])
    values = torch.ones_like(hop.is_loop) if score is None else hop.spread(score)
    if isinstance(network, GCN):
        values = values * hop.symmetric_norm
    elif isinstance(network, GIN):
        values = values * (hop.mean_norm if network.aggregation == "mean" else hop.sum_norm)
        given = hop.sum_norm.bool()  # not the self-loops that only our hops have
        index, values = index[:, given], values[given]
    return {"edge_index": index, "edge_weight": values}


def _own(value: Tensor) -> Tensor:
    return value.detach().cpu().clone(memory_format=torch.contiguous_format)
