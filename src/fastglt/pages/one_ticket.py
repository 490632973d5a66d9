"""Figures of one ticket: its search, what its masks did to its graph, what it costs, and the graph itself."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastglt.errors import FastGLTError, InputError
from fastglt.report.charts import Picture, masks
from fastglt.report.charts.drawing import Drawn
from fastglt.report.charts.training import training_curves
from fastglt.tasks.metrics import title_of

if TYPE_CHECKING:
    from fastglt.analysis.distribution import Distribution
    from fastglt.data import Dataset
    from fastglt.tasks import Task
    from fastglt.tasks.inductive import Inductive
    from fastglt.tickets.ticket import Ticket

Values = Mapping[str, Any]
_FEW_CLASSES = 50  # beyond these, nodes are not coloured


@dataclass(frozen=True)
class OneTicket:
    """A ticket file, and the settings of the run that found it."""

    path: Path
    settings: Values
    dataset_name: str | None = None  # instead of the one that the run names
    data_root: Path | None = None

    @cached_property
    def ticket(self) -> "Ticket":
        """The ticket, verified."""
        from fastglt.tickets.ticket_file import load

        return load(self.path)

    @cached_property
    def dataset(self) -> "Dataset":
        """The graph that it was found on."""
        from fastglt.data import load
        from fastglt.runs.own_graph import run_of

        begun, origin = run_of(self.path)
        known, directed, name = {**begun, **self.settings}, False, self.dataset_name
        if name is None and origin is not None:
            name, directed = origin.dataset, origin.directed
        name = known.get("dataset") if name is None else name
        if not isinstance(name, str):
            raise InputError(
                f"the ticket's graph must be named (got no run.json beside '{self.path}'); pass --dataset"
            )
        return load(name, root=self.data_root, split_seed=int(known.get("split_seed", 0)), directed=directed)

    @cached_property
    def task(self) -> "Task":
        """What it was found for, on its own graph; without nodes that were hidden."""
        return self._own[0]

    @cached_property
    def _own(self) -> "tuple[Task, Inductive | None]":
        from fastglt.runs.own_graph import task_and_hidden

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other features: the masks are shown, not scored
            return task_and_hidden(self.ticket, self.dataset)

    @property
    def name(self) -> str:
        """In a few words."""
        ticket = self.ticket
        graph = self.dataset_name or self.settings.get("dataset") or "a graph"
        return f"{graph} · {ticket.model['name']} · {ticket.config['method']} · seed {ticket.seed}"

    def training(self) -> Iterator[Picture]:
        """The search's curves, with its cuts and swaps."""
        history = [asdict(record) for record in self.ticket.history]
        if history:
            metric = title_of(self.ticket.config["metric"])
            yield training_curves(history, metric=metric, title=f"{self.name}: the search")

    def effects(self) -> Iterator[Picture]:
        """Degrees and homophily before and after."""
        from fastglt.analysis.effects import describe_graph

        labels = self._classes
        found = describe_graph(self.task.graph, self.ticket.masks.edges, labels)
        sides = {"before": found.degree_before, "after": found.degree_after}
        yield masks.degrees(_degree_rows(sides), title=f"{self.name}: neighbours of a node")
        if found.homophily is not None:
            shares = {
                "all, before": found.homophily.whole,
                "kept": found.homophily.kept,
                "pruned": found.homophily.pruned,
            }
            rows = [{"edges": name, "share": 100 * share} for name, share in shares.items() if share is not None]
            if rows:
                yield masks.homophily(rows, title=f"{self.name}: edges within a class")

    def cost(self) -> Iterator[Picture]:
        """Multiplications by layer, dense beside ticket; of a user's own model nobody knows them."""
        from fastglt.analysis.cost import count_macs
        from fastglt.masks import Masks
        from fastglt.tickets.networks import network_of

        if self.ticket.is_of_users_model:
            return
        network, pruned = network_of(self.ticket, None)
        full = Masks.full(self.task.graph.num_edges, network.weight_shapes)
        sides = {"dense": count_macs(network, self.task, full), "ticket": count_macs(network, self.task, pruned)}
        rows = [
            {"operation": f"{row.layer}, {row.kind}", "side": side, "macs": row.macs / 1e6}
            for side, cost in sides.items()
            for row in cost.rows
        ]
        yield masks.cost_by_layer(rows, title=f"{self.name}: cost by layer")

    def graph(self) -> Iterator[Picture]:
        """The graph with its kept and pruned edges, or a part of it."""
        graph = self.task.graph
        drawn = Drawn(
            edges=graph.edges.cpu().numpy(),
            kept=self.ticket.masks.edges.kept.cpu().numpy(),
            nodes=graph.num_nodes,
            groups=self._groups,
        )
        yield drawn.picture(title=f"{self.name}: the graph")

    @property
    def _classes(self) -> Any:
        """One whole number for each node, or None where labels are something else."""
        from fastglt.runs.own_graph import classes_seen

        return classes_seen(self.dataset, *self._own)

    @property
    def _groups(self) -> list[str] | None:
        labels = self._classes
        if labels is None or int(labels.max()) >= _FEW_CLASSES:
            return None
        names = self.dataset.names
        known = () if names is None else names.classes
        return [known[label] if 0 <= label < len(known) else f"class {label}" for label in labels.tolist()]


def pictures_of(ticket: OneTicket, notes: list[str]) -> dict[str, list[Picture]]:
    """All figures of a ticket by their kinds; what cannot be drawn becomes a note."""
    found: dict[str, list[Picture]] = {}
    for kind, make in {name: getattr(ticket, name) for name in KINDS}.items():
        try:
            found[kind] = list(make())
        except FastGLTError as error:
            if str(error) not in notes:
                notes.append(str(error))
    return found


KINDS = ("training", "graph", "effects", "cost")


def _degree_rows(sides: "Mapping[str, Distribution]") -> list[dict[str, Any]]:
    rows = []
    for when, found in sides.items():
        for low, high, count in zip(found.bin_edges, found.bin_edges[1:], found.counts, strict=False):
            last = int(high) - 1
            name = f"{low:g}" if last <= low else f"{low:g}–{last}"
            rows.append({"degree": name, "share": 100 * count / max(1, found.count), "when": when})
    return rows
