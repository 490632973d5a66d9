"""How long, how fast and by which teacher networks are trained."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from fastglt.errors import InputError, require, unknown_name
from fastglt.graphs.partition import METIS
from fastglt.training.recipe import Recipe

NODES = ("all", "unlabelled")
DECAYS = ("whole", "density")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long the search trains: E one-shot epochs, then D denoising epochs in intervals."""

    oneshot_epochs: int = 30  # [E]
    denoise_epochs: int = 400  # [D]
    interval: int = 10  # epochs between two swaps [ΔT]
    lr: float = 0.001
    weight_decay: float = 5e-4
    distill: float = 0.0  # weight of KL(teacher ‖ student) in the loss; 0: no teacher
    distill_temperature: float = 1.0  # that both sides' outputs are divided by
    distill_labels: float = 1.0  # weight of the task's own loss beside a teacher; 0: the teacher alone
    distill_lr: float = 0.0  # learning rate of whoever is taught; 0: lr, as of all others
    distill_search: float = 1.0  # share of that weight in the search; 0: the ticket alone is taught
    distill_nodes: str = "all"  # whom a teacher teaches about: all nodes, or those that are not trained on
    isolated_decay: str = "whole"  # of a ticket alone: the whole weight_decay, or times the density of its weights
    parts: int = 1  # of the graph, in steps of their own; 1: every step sees all of it
    partition: str = METIS  # metis: clusters; blocks: as nodes are numbered; random: drawn anew in each epoch
    parts_per_step: int = 1
    shares: int = 1  # into which the parts of a step are divided, for several processes
    exact: bool = False  # whether every step sees all of the graph, and only the computing goes part by part

    def __post_init__(self) -> None:
        names = ("distill", "distill_labels", "distill_lr", "distill_search")
        require("not be negative", **{name: getattr(self, name) for name in names})
        require("be positive", distill_temperature=self.distill_temperature)
        if self.distill_nodes not in NODES:
            raise unknown_name("choice of distill_nodes", self.distill_nodes, NODES)
        if self.isolated_decay not in DECAYS:
            raise unknown_name("isolated decay", self.isolated_decay, DECAYS)
        unasked = [name for name in self.settings if name in _BY_PARTS] if self.parts == 1 else []
        if unasked:
            got = f"{getattr(self, unasked[0])} and parts 1"
            raise InputError(f"{unasked[0]} must come with several parts of the graph (got {got})")
        alone = [name for name in self.settings if name.startswith("distill_")]
        if alone and not self.distill:
            raise InputError(f"{alone[0]} must come with a teacher (got distill 0)")
        lengths = {name: getattr(self, name) for name in ("oneshot_epochs", "denoise_epochs", "interval")}
        require("be a whole number", **lengths)
        require("be at least 1", **lengths)
        if self.interval > self.denoise_epochs:
            rule = f"interval must not exceed the {self.denoise_epochs} denoise_epochs"
            raise InputError(f"{rule} (got {self.interval})")
        _ = self.recipe  # checks the rest

    @property
    def epochs(self) -> int:
        """E + D: also what the dense network and a ticket in isolation are trained for."""
        return self.oneshot_epochs + self.denoise_epochs

    @property
    def settings(self) -> dict[str, Any]:
        """Every choice as plain values; what 0.1 did not know only where it is chosen, so that keys stay."""
        chosen = asdict(self)
        return {field.name: chosen[field.name] for field in fields(self) if _matters(field, chosen[field.name])}

    @property
    def teaching(self) -> dict[str, Any]:
        """All that is chosen of a teacher, as `settings` has it; nothing without one."""
        return {name: value for name, value in self.settings.items() if name.startswith("distill")}

    @property
    def taught_alone(self) -> dict[str, Any]:
        """What of that decides how anybody is taught outside the search."""
        return {name: value for name, value in self.teaching.items() if name != "distill_search"}

    @property
    def recipe(self) -> Recipe:
        """How weights are trained."""
        by_parts: dict[str, Any] = {name: getattr(self, name) for name in _BY_PARTS}
        return Recipe(lr=self.lr, weight_decay=self.weight_decay, **by_parts)

    @property
    def taught_recipe(self) -> Recipe:
        """How the weights of whoever has a teacher are trained."""
        return replace(self.recipe, lr=self.distill_lr or self.lr)

    @property
    def changes_lr(self) -> bool:
        """Whether whoever is taught has a learning rate of its own."""
        return self.distill > 0 and self.taught_recipe != self.recipe


_BY_PARTS = ("parts", "partition", "parts_per_step", "shares", "exact")
_SINCE_ALWAYS = ("oneshot_epochs", "denoise_epochs", "interval", "lr", "weight_decay")


def _matters(field: Any, value: object) -> bool:
    return field.name in _SINCE_ALWAYS or value != field.default


USUAL_BUDGET = Budget()
