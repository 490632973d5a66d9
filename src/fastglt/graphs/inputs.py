"""What a graph is made from: checks of edge_index and its values, direction, and whatever else a `Data` has."""

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fastglt.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_OURS = ("x", "edge_index", "edge_attr", "edge_weight", "num_nodes")  # what has a place of its own
LABELS = ("y", "train_mask", "val_mask", "test_mask")  # what would tell a model the answers


def check_edges(edge_index: Tensor, num_nodes: int, **values: Tensor | None) -> None:
    """Refuse what is not two rows of node numbers, and values that are not finite numbers for each column."""
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype != torch.int64:
        got = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
        raise InputError(f"edge_index must be an int64 tensor of shape [2, edges] (got {got})")
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes):
        got = f"{int(edge_index.min())} to {int(edge_index.max())}"
        raise InputError(f"node ids in edge_index must lie in 0 … {num_nodes - 1} (got {got})")

    for name, value in values.items():
        if value is not None and value.shape[:1] != edge_index.shape[1:]:
            rule = f"{name} must have one row for each of {edge_index.shape[1]} columns of edge_index"
            raise InputError(f"{rule} (got shape {tuple(value.shape)})")
        if value is not None and not bool(torch.isfinite(value).all()):
            raise InputError(f"{name} must be finite (got NaN or infinity)")


def more_fields(data: "Data") -> tuple[dict[str, Tensor], dict[str, Tensor], frozenset[str]]:
    """What else a `Data` has of its columns and of its nodes, and the names of all that no model is given."""
    columns, nodes, withheld = dict[str, Tensor](), dict[str, Tensor](), set[str]()
    for name, value in data.to_dict().items():
        if name in _OURS:
            continue
        plain = isinstance(value, Tensor) and value.layout == torch.strided and name not in LABELS
        if plain and data.is_edge_attr(name):
            columns[name] = value.detach()
        elif plain and data.is_node_attr(name):
            nodes[name] = value.detach()
        else:
            withheld.add(name)
    return columns, nodes, frozenset(withheld)


class DirectedWarning(UserWarning):
    """A graph counts as directed although most of its edges go both ways."""


def warn_of_few_one_way(edge_index: Tensor, num_nodes: int, edge_attr: Tensor | None) -> None:
    """Tell what makes a graph directed, if few of its columns do."""
    source, target = edge_index
    forward, reverse, columns = source * num_nodes + target, target * num_nodes + source, edge_index.shape[1]
    one_way = int((~torch.isin(reverse, forward)).sum())
    if 2 * one_way > columns:  # directed indeed
        return
    if one_way:
        reason = f"{one_way:,} of {columns:,} columns of edge_index have no reverse"
    elif (surplus := _surplus(forward, reverse)) or edge_attr is None:
        reason = f"{surplus:,} of {columns:,} columns of edge_index are repeated in one direction only"
    else:
        values = edge_attr.reshape(columns, -1)
        differ = (values[forward.argsort(stable=True)] != values[reverse.argsort(stable=True)]).any(dim=1)
        reason = f"edge_attr of {int(differ.sum()):,} of {columns:,} columns differs from that of the reverse"
    warnings.warn(
        f"the graph counts as directed: {reason}; pass directed=False to prune both directions of an edge "
        "together, directed=True to prune each on its own",
        DirectedWarning,
        stacklevel=4,
    )


def _surplus(forward: Tensor, reverse: Tensor) -> int:
    """How many columns there are more in one direction than in the other; every column has a reverse."""
    pairs, counts = torch.unique(forward, return_counts=True)
    _, back = torch.unique(reverse, return_counts=True)  # the same pairs
    assert pairs.numel() == back.numel()
    return int((counts - back).clamp(min=0).sum())
