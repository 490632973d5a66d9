"""A graph lottery ticket: what is kept, where it started, where the search took it."""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graph import Graph
from fastglt.masks import Masks
from fastglt.task import Task

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fastglt.training import EpochRecord


class OtherFeaturesWarning(UserWarning):
    """The features are not those the ticket was found on."""


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """Binary masks over a graph's edges and a network's weights, with all that is needed to use them again.

    `find_ticket` makes one; `save` and `load` keep it in a small file.
    """

    masks: Masks
    weights: Mapping[str, Tensor]  # the search's trained state; pruned weights are zero
    edge_scores: Tensor | None  # of the kept edges, in edge order
    model: Mapping[str, Any]  # the network's spec
    config: Mapping[str, Any]  # method, its options, targets and budget
    seed: int
    scores: Mapping[str, float]  # fractions: search_val, search_test, …
    graph_fingerprint: str
    feature_fingerprint: str
    initial_hash: str
    initial_from: (
        str  # "recipe": the model's spec gives Θ0 back; "file": init.safetensors beside the ticket holds it
    )
    versions: Mapping[str, str]
    load_initial: Callable[[], Mapping[str, Tensor]] = field(repr=False, compare=False)
    history: tuple["EpochRecord", ...] = field(default=(), repr=False, compare=False)
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def initial(self) -> Mapping[str, Tensor]:
        """Θ0: the whole state the network started from, its digest checked."""
        state = self.load_initial()
        if state_hash(state) != self.initial_hash:
            raise InputError(f"the initial weights must have digest {self.initial_hash[:12]}… (got others)")
        return state

    @property
    def graph_sparsity(self) -> float:
        """The share of edges removed, exactly."""
        return self.masks.graph_sparsity

    @property
    def weight_sparsity(self) -> float:
        """The share of weights removed, exactly."""
        return self.masks.weight_sparsity

    def save(self, path: str | Path) -> None:
        """Write the ticket; a user's model also gets `init.safetensors` beside it."""
        from fastglt.ticket_file import save

        save(self, Path(path))

    @staticmethod
    def load(path: str | Path, data: "Data | None" = None, *, other_graph: bool = False) -> "Ticket":
        """Read a ticket and verify it; with `data`, also that it belongs to that graph."""
        from fastglt.ticket_file import load

        ticket = load(Path(path))
        if data is not None:
            ticket.check(Task.from_data(data), other_graph=other_graph)
        return ticket

    def check(self, task: Task, *, other_graph: bool = False) -> None:
        """Refuse another graph, unless told otherwise; other features only warn."""
        if task.graph.num_edges != self.masks.edges.size:
            raise InputError(
                f"the ticket decides on {self.masks.edges.size} edges (got a graph with {task.graph.num_edges})"
            )
        if task.graph.fingerprint != self.graph_fingerprint and not other_graph:
            raise InputError(
                f"the ticket was found on another graph, {self.graph_fingerprint[:12]}… "
                f"(got {task.graph.fingerprint[:12]}…); pass other_graph=True to use it all the same"
            )
        if task.x.fingerprint != self.feature_fingerprint:
            warnings.warn(
                "the features differ from those the ticket was found on", OtherFeaturesWarning, stacklevel=3
            )

    def prune(self, data: "Data") -> "Data":
        """A copy of the data without the edges that the ticket removes; edge_attr goes with its edge."""
        graph = Graph.from_data(data).prune(self.masks.edges)
        pruned = data.clone()
        pruned.edge_index = graph.edge_index
        for name in ("edge_attr", "edge_weight"):
            if getattr(graph, name) is not None:
                pruned[name] = getattr(graph, name)
        return pruned


def state_hash(state: Mapping[str, Tensor]) -> str:
    """A digest of a state dict: names, shapes, types and numbers."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name].detach().cpu().numpy())
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()
