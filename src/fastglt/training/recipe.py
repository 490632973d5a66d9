"""How weights are trained: learning rate, decay, and by which parts of the graph."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from fastglt.errors import InputError, require, unknown_name
from fastglt.graphs.partition import METIS, PARTITIONS
from fastglt.models.base import Network
from fastglt.models.exact import Division, compute_by_parts
from fastglt.tasks.base import Task
from fastglt.training.by_parts import ByParts


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How weights are trained."""

    lr: float = 0.001  # Adam's, for weights and soft masks alike
    weight_decay: float = 5e-4  # of weights, not of soft masks
    parts: int = 1  # of the graph, in steps of their own; 1: every step sees all of it
    partition: str = METIS  # metis: clusters; blocks: as nodes are numbered; random: drawn anew in each epoch
    parts_per_step: int = 1
    shares: int = 1  # into which the parts of a step are divided: edges between shares do not count in it
    exact: bool = False  # whether every step sees all of the graph, and only the computing goes part by part

    def __post_init__(self) -> None:
        require("be positive", lr=self.lr)
        require("not be negative", weight_decay=self.weight_decay)
        counts = {name: getattr(self, name) for name in ("parts", "parts_per_step", "shares")}
        require("be a whole number", **counts)
        require("be at least 1", **counts)
        if self.partition not in PARTITIONS:
            raise unknown_name("partition", self.partition, PARTITIONS)
        if self.parts_per_step > self.parts:
            raise InputError(f"parts_per_step must not exceed the {self.parts} parts (got {self.parts_per_step})")
        if self.shares > self.parts_per_step:
            rule = f"shares must not exceed the {self.parts_per_step} parts_per_step"
            raise InputError(f"{rule} (got {self.shares}); each has a part at least")

        if self.exact and self.parts == 1:
            raise InputError("exact must come with several parts of the graph (got parts 1)")
        if self.exact and self.parts_per_step > 1:
            rule = "parts_per_step must be 1 beside exact, which has all parts in every step"
            raise InputError(f"{rule} (got {self.parts_per_step})")

    @property
    def settings(self) -> dict[str, Any]:
        """Every choice as plain values; what parts are about only where there are several, so that keys stay."""
        usual = {field.name: field.default for field in fields(self)}
        return {
            name: value
            for name, value in asdict(self).items()
            if name in ("lr", "weight_decay") or (self.parts > 1 and value != usual[name])
        }

    def prepare(self, network: Network, task: Task) -> None:
        """Let a network's passes go part by part, where that is asked for."""
        if self.exact:
            compute_by_parts(network, Division(self.parts, self.partition), task.graph)

    def by_parts(self, task: Task) -> ByParts | None:
        """How epochs are made of parts of a task's graph; None: they are not."""
        if self.parts == 1 or self.exact:
            return None
        return ByParts(
            task,
            parts=self.parts,
            kind=self.partition,
            parts_per_step=self.parts_per_step,
            shares=self.shares,
        )
