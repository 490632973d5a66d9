"""What server and clients must know to be part of one federation, as plain values: it is sent to each process."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastglt.data import load
from fastglt.federated.plan import Plan
from fastglt.federated.rounds import Federation
from fastglt.tasks import kind_of, known_metric
from fastglt.tickets.networks import named_network


@dataclass(frozen=True, kw_only=True)
class Job:
    """A graph, a network and a plan by names and numbers."""

    dataset: str
    plan: Plan
    model: str = "gcn"
    hidden: int = 64
    split_seed: int = 0
    data_root: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """As plain values, which `of` takes."""
        return {**vars(self), "plan": self.plan.settings}

    @staticmethod
    def of(settings: str) -> "Job":
        """The inverse, from JSON."""
        values = json.loads(settings)
        return Job(**{**values, "plan": Plan(**values["plan"])})

    def federation(self) -> Federation:
        """Load the graph and build the network."""
        root = None if self.data_root is None else Path(self.data_root)
        found = load(self.dataset, root=root, split_seed=self.split_seed)
        kind = kind_of(None, found.tensors.get("y"))
        task = kind.from_tensors(found.tensors, metric=known_metric(kind, found.metric), **found.direction)
        network = named_network(self.model, task, hidden=self.hidden, seed=self.plan.seed)
        return Federation(task=task, network=network, plan=self.plan)
