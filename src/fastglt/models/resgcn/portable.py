"""ResGCN in a form that needs no fastglt: a PyG model."""

from pathlib import Path

from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.models.portable import PyGForm, messages_of
from fastglt.models.resgcn.network import ResGCN


def pyg_form(network: ResGCN, graph: Graph, soft_edge_mask: Tensor | None) -> PyGForm | None:
    """What multiplies the softmax's weights is in edge_weight; None with edge features."""
    if network.edge_channels:
        return None
    hop = graph.hops(None, depth=1)[0]
    index, values = messages_of(hop, None if soft_edge_mask is None else soft_edge_mask.abs())
    if not network.self_loops:
        given = hop.sum_norm.bool()  # not the self-loops that only our hops have
        index, values = index[:, given], values[given]
    return PyGForm(
        code=Path(__file__).with_name("pyg_model.py"),
        kind="ResGCN",
        arguments={
            "features": network.in_channels,
            "hidden": network.hidden,
            "classes": network.out_channels,
            "temperatures": network.all_temperatures,
            "norm": network.norm.replace("renorm", "batch"),  # they differ in training alone
            "mlp_layers": network.mlp_layers,
        },
        state=_state(network),
        edge_index=index,
        edge_weight=values,
    )


def _state(network: ResGCN) -> dict[str, Tensor]:
    """Under the names of `pyg_model`; matrices are transposed there."""
    last, found = network.num_layers - 1, dict[str, Tensor]()
    for name, value in network.state_dict().items():
        parts = name.split(".")
        if name == "temperatures":
            continue
        if parts[0] == "last_norm":
            place = f"norms.{last}.{parts[1]}"
        elif parts[0] != "layers":
            kind, _, part = name.partition("_")
            place = f"{part}.{kind}"
        elif parts[2] == "norm":
            place = f"norms.{int(parts[1]) - 1}.{parts[3]}"
        else:  # linear, norm, ReLU
            kind = {"weights": "0.weight", "biases": "0.bias", "norms": f"1.{parts[-1]}"}[parts[2]]
            offset, _, own = kind.partition(".")
            place = f"convs.{parts[1]}.mlp.{3 * int(parts[3]) + int(offset)}.{own}"
        found[place] = value.T if value.dim() == 2 else value
    return found
