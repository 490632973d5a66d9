"""Tasks with a label for each node: the split, full-batch steps, one pass for validation and test."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph, OnDisk
from fastglt.graphs.parts import Part
from fastglt.system.devices import usable
from fastglt.tasks.base import OutputsOf, Scores, Step, Task, metric_of
from fastglt.tasks.inputs import check_kind, features_of, split_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeTask(Task):
    """The base of such tasks. A new one says what labels are, their loss, its metrics and what outputs predict."""

    y: Tensor  # a row for each node; those outside the split are never looked at
    train: Tensor  # node ids
    val: Tensor
    test: Tensor  # may be empty: then test scores are NaN

    @classmethod
    @abstractmethod
    def read_labels(cls, y: object, num_nodes: int) -> Tensor:
        """Check the type and shape of what the data has as y."""

    @classmethod
    def settle_labels(cls, y: Tensor, split: Mapping[str, Tensor], metric: str) -> Tensor:
        """Refuse labels within the split that this task or metric cannot use; gives those that are used."""
        return y

    @abstractmethod
    def label_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of outputs that should be these labels."""

    @classmethod
    def from_data(
        cls, data: "Data", *, metric: str | None = None, directed: bool | None = None, **options: Any
    ) -> Self:
        """Check a PyG `Data` and prepare it; the data itself is not changed.

        None: the default metric; directed if the data is.
        """
        check_kind(data)
        return cls._prepare(data, lambda: Graph.from_data(data, directed=directed), metric, options)

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, Tensor],
        *,
        metric: str | None = None,
        directed: bool | None = None,
        compressed: "OnDisk | None" = None,
        **options: Any,
    ) -> Self:
        """The task from x, y, edge_index, masks and, if given, edge_weight and edge_attr by name, without PyG.

        x may be sparse as in `Features`. `directed=None`: if an edge has no reverse. Of a graph on disk that is
        `compressed` already nothing is read.
        """
        source = SimpleNamespace(**tensors, num_nodes=tensors["x"].shape[0])
        values: dict[str, Any] = {name: tensors.get(name) for name in ("edge_weight", "edge_attr")}

        def graph() -> Graph:
            return Graph.from_edge_index(source.edge_index, source.num_nodes, directed=directed, **values)

        if compressed is not None:
            nonzero, fingerprint = compressed.nonzero, compressed.fingerprints["features"]
            x = Features(source.x, nonzero=nonzero, fingerprint=fingerprint)
            return cls._prepare(source, lambda: Graph.from_disk(compressed, source.num_nodes), metric, options, x)
        return cls._prepare(source, graph, metric, options)

    @classmethod
    def _prepare(
        cls,
        data: Any,
        graph: Callable[[], Graph],
        metric: str | None,
        options: Mapping[str, Any],
        known: Features | None = None,
    ) -> Self:
        """Features that are known have been checked before."""
        chosen = metric_of(cls, metric).name
        x = features_of(data) if known is None else data.x
        y = cls.read_labels(getattr(data, "y", None), x.shape[0])
        if x.shape[0] == 0:
            raise InputError("the graph must have at least one node (got none)")
        split = split_of(data)
        y = cls.settle_labels(y, split, chosen)
        return cls(graph=graph(), x=known or Features(x), y=y, metric=chosen, **split, **options)

    @cached_property
    def judged(self) -> Tensor:
        """The validation nodes, then the test nodes."""
        return torch.cat([self.val, self.test])

    @property
    def unlabelled(self) -> Tensor:
        """All nodes but those that are trained on."""
        others = torch.ones(self.graph.num_nodes, dtype=torch.bool, device=self.device)
        others[self.train] = False
        return others.nonzero().squeeze(1)

    @property
    def has_test(self) -> bool:
        """Whether there are test nodes."""
        return bool(self.test.numel())

    @cached_property
    def digests(self) -> dict[str, str]:
        """What tells this graph, these features, and these labels and split from all others."""
        parts = (self.train, self.val, self.test, self.y.flatten())
        sizes = torch.tensor([part.numel() for part in parts])  # else any split in one order would be the same
        split = [sizes, *(part.cpu() for part in parts)]
        digest = hashlib.sha256()
        for part in split:
            digest.update(part.numpy().tobytes())
        return {
            "graph": self.graph.fingerprint,
            "features": self.x.fingerprint,
            "labels_and_split": digest.hexdigest(),
        }

    @cached_property
    def _full_batch(self) -> tuple[Step]:
        return (Step(nodes=self.train),)

    def steps(self, seed: int) -> tuple[Step, ...]:
        """One step on all training nodes."""
        return self._full_batch

    @cached_property
    def _is_trained_on(self) -> Tensor:
        found = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=self.device)
        found[self.train] = True
        return found

    def step_in(self, part: Part, seed: int) -> Step | None:
        """All training nodes of the part."""
        nodes = part.nodes[self._is_trained_on[part.nodes]]
        return Step(nodes=nodes) if len(nodes) else None

    def loss(self, outputs: Tensor, step: Step) -> Tensor:
        """The mean loss of a step's nodes."""
        return self.label_loss(outputs, self.y if step.nodes is None else self.y[step.nodes])

    def evaluate(self, outputs_of: OutputsOf) -> Scores:
        """Validation and test nodes in one pass."""
        val, test = torch.tensor_split(outputs_of(self.judged), [self.val.numel()])
        return Scores(
            val=self.score(val, self.val),
            val_loss=float(self.label_loss(val, self.y[self.val])),
            test=self.score(test, self.test),
        )

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        """The metric of some nodes' outputs; NaN for no nodes."""
        if not nodes.numel():
            return float("nan")
        return metric_of(type(self), self.metric).compute(outputs, self.y[nodes])

    def sizes(self) -> dict[str, str]:
        """How many nodes the split has of each kind."""
        sizes = {"training": self.train, "validation": self.val, "test": self.test}
        return {name: f"{nodes.numel():,}" for name, nodes in sizes.items()}

    def to(self, device: torch.device | str) -> Self:
        """The task on another device."""
        device = usable(device)
        moved = {name: getattr(self, name).to(device) for name in ("graph", "x", "y", "train", "val", "test")}
        return replace(self, **moved)
