"""A graph lottery ticket: what is kept, where it started, where the search took it."""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Masks
from fastglt.tasks import DEFAULT, Task, registered

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fastglt.report.charts import Picture
    from fastglt.training.records import EpochRecord


class OtherFeaturesWarning(UserWarning):
    """The features are not those the ticket was found on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ticket:
    """Binary masks over a graph's edges and a network's weights, with all that is needed to use them again.

    `find_ticket` makes one; `save` and `load` keep it in a small file.
    """

    masks: Masks = field(repr=False)
    weights: Mapping[str, Tensor] = field(repr=False)  # the search's trained state; pruned weights are zero
    soft_edge_mask: Tensor | None = field(repr=False)  # of the kept edges, in edge order
    model: Mapping[str, Any]  # the network's spec
    config: Mapping[str, Any]  # method, its options, targets and budget
    seed: int
    scores: Mapping[str, float]  # fractions: search_val, search_test, …
    graph_fingerprint: str
    feature_fingerprint: str
    initial_hash: str
    initial_from: str  # "recipe": the model's spec gives Θ0 back; "file": it lies beside the ticket
    versions: Mapping[str, str]
    load_initial: Callable[[], Mapping[str, Tensor]] = field(repr=False)
    history: tuple["EpochRecord", ...] = field(default=(), repr=False)  # of the search; none in files of 0.1
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False)

    @cached_property
    def initial(self) -> Mapping[str, Tensor]:
        """Θ0: the whole state the network started from, its digest checked."""
        state = self.load_initial()
        if state_hash(state) != self.initial_hash:
            raise InputError(f"the initial weights must have digest {self.initial_hash[:12]}… (got others)")
        return state

    @property
    def is_of_users_model(self) -> bool:
        """Whether its network is a user's own model: the ticket has its weights, and not the model."""
        return bool(self.model["name"] == "pyg")

    @property
    def task(self) -> type[Task]:
        """What it was found for."""
        return registered(self.config.get("task", DEFAULT))

    @property
    def task_options(self) -> dict[str, Any]:
        """The options of its task, where they are not as usual."""
        found: dict[str, Any] = self.config.get("task_options", {})
        return dict(found)

    @property
    def directed(self) -> bool | None:
        """What the search was told about its graph; None if the data itself decided."""
        said: bool | None = self.config.get("directed")
        return said

    @property
    def graph_sparsity(self) -> float:
        """The share of edges removed, exactly."""
        return self.masks.graph_sparsity

    @property
    def weight_sparsity(self) -> float:
        """The share of weights removed, exactly."""
        return self.masks.weight_sparsity

    def require_nothing_hidden(self, use: str) -> None:
        """Refuse a ticket from which nodes were hidden for a use that needs its whole graph: "compiled", …"""
        if self.config.get("inductive") is not None:
            rule = f"a ticket that is {use} must have seen its whole graph (got one from which nodes were hidden)"
            raise InputError(f"{rule}; find one without inductive")

    def with_config(self, **more: Any) -> "Ticket":
        """A copy that says more about where it comes from."""
        return replace(self, config={**self.config, **more}) if more else self

    @property
    def edge_scores(self) -> Tensor | None:
        """The name that `soft_edge_mask` had in 0.1; a score is a result on nodes now, and nothing else."""
        warnings.warn("Ticket.edge_scores is Ticket.soft_edge_mask since 0.2", FutureWarning, stacklevel=2)
        return self.soft_edge_mask

    def save(self, path: str | Path) -> None:
        """Write the ticket; a user's model also gets `init.safetensors` beside it."""
        from fastglt.tickets.ticket_file import save

        save(self, Path(path))

    @staticmethod
    def load(path: str | Path, data: "Data | None" = None, *, other_graph: bool = False) -> "Ticket":
        """Read a ticket and verify it; with `data`, also that it belongs to that graph."""
        from fastglt.tickets.seen import seen_in
        from fastglt.tickets.ticket_file import load

        ticket = load(Path(path))
        if data is not None:
            graph, x, _ = seen_in(ticket, data)
            ticket.check_graph(graph, x, other_graph=other_graph)
        return ticket

    def check(self, task: Task, *, other_graph: bool = False) -> None:
        """Refuse another graph, unless told otherwise; other features only warn."""
        self.check_graph(task.graph, task.x, other_graph=other_graph)

    def message_data(self, data: "Data") -> "Data":
        """The data as its network sees it: without edges that its task holds back to predict them."""
        from torch_geometric.data import Data

        if not isinstance(data, Data):
            raise InputError(f"data must be a torch_geometric.data.Data (got {type(data).__name__})")
        return self.task.message_data(data, **self.task_options)

    def prune(self, data: "Data", *, other_graph: bool = False) -> "Data":
        """A copy of the data without the edges that the ticket removes.

        The other columns keep their order, and whatever belongs to an edge, such as edge_attr, goes with it. Edges
        that a task holds back to predict them are gone as well.
        """
        self.require_nothing_hidden("applied to data")
        data = self.message_data(data)
        graph = Graph.from_data(data, directed=self.directed)
        self.check_graph(graph, None, other_graph=other_graph)
        columns = torch.arange(data.edge_index.shape[1], device=data.edge_index.device)
        numbered = Graph.from_edge_index(
            data.edge_index, graph.num_nodes, directed=graph.directed, edge_attr=columns
        ).prune(self.masks.edges)
        assert numbered.edge_attr is not None
        pruned = data.clone().edge_subgraph(numbered.edge_attr.sort().values)
        if pruned.x is None:
            pruned.num_nodes = graph.num_nodes
        return pruned

    def plot(self, data: "Data | None" = None) -> "Picture":
        """A picture of the search, with its cuts and swaps; with its `data`, of the graph that it keeps and prunes.

        In a notebook it shows itself; `save("fig.pdf")` keeps it. Needs the extra ``fastglt[report]``.
        """
        from fastglt.tickets.showing import graph_picture, search_picture

        return search_picture(self) if data is None else graph_picture(self, data)

    def _repr_html_(self) -> str:
        from fastglt.tickets.showing import as_html

        return as_html(self)

    def check_graph(self, graph: Graph, x: Features | None, *, other_graph: bool = False) -> None:
        """`check` for a graph and features on their own, without a task."""
        edges = self.masks.edges.size
        if graph.num_edges != edges:
            raise InputError(f"the ticket decides on {edges} edges (got a graph with {graph.num_edges})")
        if graph.fingerprint != self.graph_fingerprint and not other_graph:
            raise InputError(
                f"the ticket was found on another graph, {self.graph_fingerprint[:12]}… "
                f"(got {graph.fingerprint[:12]}…); pass other_graph=True to use it all the same"
            )
        known = "edge_values" in self.config  # of models that look at them
        if known and graph.values_fingerprint != self.config["edge_values"]:
            warnings.warn(
                "the edge values differ from those the ticket was found on", OtherFeaturesWarning, stacklevel=3
            )
        for name, digest in self.config.get("fields", {}).items():
            if graph.field_digest(name) != digest:
                message = f"the field '{name}' differs from the one the ticket was found with"
                warnings.warn(message, OtherFeaturesWarning, stacklevel=3)
        if x is not None and x.fingerprint != self.feature_fingerprint:
            warnings.warn(
                "the features differ from those the ticket was found on", OtherFeaturesWarning, stacklevel=3
            )


def state_hash(state: Mapping[str, Tensor]) -> str:
    """A digest of a state dict: names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(state):
        value = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def masks_hash(masks: Masks) -> str:
    """A digest of what masks keep."""
    return state_hash({"edges": masks.edges.kept, **{name: mask.kept for name, mask in masks.weights.items()}})
