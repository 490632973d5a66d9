"""Checks of what a link task is made from: the pairs to predict, given or split off at random."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.inputs import check_edges
from fastglt.tasks.pairs import pair_numbers, random_link_split

if TYPE_CHECKING:
    from torch_geometric.data import Data

GIVEN = ("val_pos_edge_index", "val_neg_edge_index", "test_pos_edge_index", "test_neg_edge_index")  # PyG's names


def pairs_of(data: Any, seed: int) -> tuple[dict[str, Tensor], Tensor | None]:
    """The pairs to predict, by PyG's names, and which columns of edge_index stay; None: all of them."""
    given = {name: getattr(data, name, None) for name in GIVEN}
    if given[GIVEN[0]] is None:
        for name in GIVEN[1:]:
            if given[name] is not None:
                raise InputError(f"data.{name} must come with data.{GIVEN[0]} (got it alone)")
        check_edges(data.edge_index, int(data.num_nodes))
        proper = data.edge_index[0] != data.edge_index[1]
        stays, pairs = random_link_split(data.edge_index[:, proper].T, int(data.num_nodes), seed)
        kept = torch.ones_like(proper)
        kept[proper] = stays.to(proper.device)
        return pairs, kept
    none = torch.empty(2, 0, dtype=torch.int64)
    return {name: none if value is None else value for name, value in given.items()}, None


def without_pairs(data: "Data", kept: Tensor | None) -> "Data":
    """A copy with these columns of edge_index alone (None: all), without the pairs to predict."""
    found = data.clone() if kept is None else data.edge_subgraph(kept)
    for name in GIVEN:
        if name in found:
            del found[name]
    if found.x is None:
        found.num_nodes = data.num_nodes
    return found


def checked_pairs(pairs: object, name: str, num_nodes: int) -> Tensor:
    """Pairs, a row each, from PyG's two rows."""
    if not isinstance(pairs, Tensor) or pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.dtype != torch.int64:
        got = f"{pairs.dtype}, shape {tuple(pairs.shape)}" if isinstance(pairs, Tensor) else type(pairs).__name__
        raise InputError(f"data.{name} must be an int64 tensor of shape [2, pairs] (got {got})")
    if pairs.numel() and (int(pairs.min()) < 0 or int(pairs.max()) >= num_nodes):
        got = f"{int(pairs.min())} to {int(pairs.max())}"
        raise InputError(f"node ids in {name} must lie in 0 … {num_nodes - 1} (got {got})")
    return pairs.detach().T.contiguous()


class LeakWarning(UserWarning):
    """The links to predict are edges of the graph, along which messages go."""


def warn_of_leak(parts: Mapping[str, Tensor], edges: Tensor, num_nodes: int) -> None:
    """Tell where every link of a part is an edge of the graph: some may be, as old collaborators meet again."""
    known = pair_numbers(edges, num_nodes)
    for name, title in (("val", "validation"), ("test", "test")):
        links = parts[name]
        if len(links) and bool(np.isin(pair_numbers(links, num_nodes), known).all()):
            warnings.warn(
                f"every one of {len(links):,} {title} links is an edge of the graph, along which messages go: the "
                "network is told what it is to predict; take these edges out of edge_index",
                LeakWarning,
                stacklevel=5,
            )


def check_enough(parts: Mapping[str, Tensor], metric: str) -> None:
    """Validation links are needed, and enough negatives for what is counted."""
    if not len(parts["val"]):
        raise InputError("link prediction needs validation links to choose the best epoch by (got none)")
    least = int(metric.partition("@")[2] or 1)
    for name in ("val", "test"):
        links, others = len(parts[name]), len(parts[f"{name}_negatives"])
        if links and others < least:
            remedy = "choose another metric" if others else "bring some"
            raise InputError(f"{metric} needs {least} {name} pairs that are no link (got {others}); {remedy}")
