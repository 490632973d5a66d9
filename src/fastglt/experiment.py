"""One whole run from names and numbers: load the data, build the model, find and judge a ticket, keep it."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastglt import __version__, kernels
from fastglt.container import nan_as_null
from fastglt.data import Dataset, load
from fastglt.errors import require, unknown_name
from fastglt.find import Found, check_targets, find
from fastglt.fitting import as_network
from fastglt.judge.cost import count_macs
from fastglt.masks import Masks
from fastglt.methods import Budget, FixedMasks, Method, Targets, make
from fastglt.methods.own import code_digest
from fastglt.models import BACKBONES, Backbone, Network
from fastglt.phases import Progress, train_fixed
from fastglt.process import keep_freed_memory
from fastglt.run_folder import RunFolder
from fastglt.seeds import own_random_state
from fastglt.task import Task
from fastglt.ticket import Ticket
from fastglt.training import Training


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that decides a run's result."""

    dataset: str = "digits"
    model: str = "gcn"
    method: str = "fastglt"
    targets: Targets
    budget: Budget
    options: dict[str, Any] = field(default_factory=dict)
    hidden: int = 512
    seed: int = 0
    split_seed: int = 0
    directed: bool = False
    threads: int = 0  # 0: as many as the process may use
    device: str = "cpu"
    data_root: Path | None = None

    def __post_init__(self) -> None:
        if self.model not in BACKBONES:
            raise unknown_name("model", self.model, BACKBONES)
        require("not be negative", threads=self.threads, seeds=min(self.seed, self.split_seed))
        require("lie below 2^63", seeds=max(self.seed, self.split_seed))
        self.make_method()

    def make_method(self) -> Method:
        """The method with its targets, budget and options."""
        return make(self.method, targets=self.targets, budget=self.budget, **self.options)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes, in a process of its own."""
        return {**asdict(self), "data_root": None if self.data_root is None else str(self.data_root)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Experiment":
        """The inverse of `to_json`."""
        root = values["data_root"]
        targets, budget = Targets(**values["targets"]), Budget(**values["budget"])
        changed = {"targets": targets, "budget": budget, "data_root": None if root is None else Path(root)}
        return cls(**{**values, **changed})

    def use_machine(self) -> int:
        """Set this process up for its threads and its memory; returns how many threads."""
        return use_machine(self.threads)

    def prepare(self, like: "Prepared | None" = None) -> "Prepared":
        """Load and check everything that can be checked before training.

        What it shares with another one that differs in method, targets, budget or seed alone is taken from there.
        """
        if like is None:
            dataset = load(self.dataset, root=self.data_root, split_seed=self.split_seed, directed=self.directed)
            task = Task.from_tensors(dataset.tensors, metric=dataset.metric).to(self.device)
        else:
            dataset, task = like.dataset, like.task
        if like is not None and like.experiment.seed == self.seed:
            network: Network = like.network
        else:
            network = as_network(self.model, task, hidden=self.hidden, seed=self.seed)
        assert isinstance(network, Backbone)
        method = self.make_method()
        check_targets(network, task, method)
        return Prepared(experiment=self, dataset=dataset, task=task, network=network, method=method)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An experiment that can start."""

    experiment: Experiment
    dataset: Dataset
    task: Task
    network: Backbone
    method: Method

    @property
    def settings(self) -> dict[str, Any]:
        """What tells this run from others: every choice, and digests of the data instead of its path."""
        code = code_digest(type(self.method))
        return {
            **self._shared_settings,
            "method": self.method.name,
            "options": self.method.options,
            **({} if code is None else {"code": code}),
            **asdict(self.method.targets),
            **asdict(self.method.budget),
        }

    @property
    def dense_settings(self) -> dict[str, Any]:
        """What tells the dense twin from others: nothing that a method or its targets decide."""
        budget = self.method.budget
        return {**self._shared_settings, "dense": True, "epochs": budget.epochs, **asdict(budget.recipe)}

    @property
    def _shared_settings(self) -> dict[str, Any]:
        chosen = self.experiment
        return {
            "dataset": self.dataset.name,
            **self.task.digests,
            "model": self.network.spec,
            "seed": chosen.seed,
            "split_seed": chosen.split_seed,
            **machine_settings(chosen.threads, chosen.device),
        }

    def warm_up(self, *, dense: bool = False) -> None:
        """Load the compiled kernels before anything is timed, with an epoch that is thrown away."""
        method = FixedMasks(budget=self.method.budget) if dense else self.method
        with own_random_state(self.task.y.device):
            training = Training(self.network, self.task, method.recipe, seed=0)
            method.begin(training)
            training.run_epoch(method)

    def run(self, folder: RunFolder, progress: Progress | None = None, *, dense: bool = True) -> dict[str, Any]:
        """Find the ticket in an open folder, with or without its dense twin; returns the metrics."""
        seed = self.experiment.seed
        found = find(
            self.network, self.task, self.method, seed=seed, dense=dense, journal=folder, progress=progress
        )
        found.ticket.save(folder.path / "ticket.safetensors")
        for ticket in found.rounds:
            ticket.save(folder.path / "rounds" / f"{ticket.config['round']:02}.safetensors")
        metrics = self._metrics(found)
        folder.complete(metrics, {name: result.history for name, result in found.phases.items()})
        return metrics

    def run_dense(self, folder: RunFolder, progress: Progress | None = None) -> dict[str, Any]:
        """Train the dense twin alone in an open folder; returns its metrics."""
        seed, budget = self.experiment.seed, self.method.budget
        result = train_fixed("dense", self.network, self.task, budget, seed=seed, journal=folder, progress=progress)
        scores = {"dense_val": result.best.scores.val, "dense_test": result.best.scores.test}
        metrics = {
            **self._about,
            **nan_as_null(scores),
            "epochs": budget.epochs,
            "dense_seconds": result.seconds,
            "threads": self.settings["threads"],
            "device": self.experiment.device,
        }
        folder.complete(metrics, {"dense": result.history})
        return metrics

    @property
    def _about(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset.name,
            "model": self.experiment.model,
            "metric": self.task.metric,
            "seed": self.experiment.seed,
            "split_seed": self.experiment.split_seed,
        }

    def _metrics(self, found: Found) -> dict[str, Any]:
        masks, scores = found.ticket.masks, nan_as_null(found.ticket.scores)
        dense = Masks.full(self.task.graph.num_edges, self.network.weight_shapes)
        dense_cost, ticket_cost = (count_macs(self.network, self.task, kept) for kept in (dense, masks))
        return {
            **self._about,
            "method": self.method.name,
            "graph_sparsity": masks.graph_sparsity,
            "weight_sparsity": masks.weight_sparsity,
            "edges_kept": masks.edges.count,
            "edges_total": masks.edges.size,
            "weights_kept": masks.weights_kept,
            "weights_total": masks.weights_total,
            **scores,
            **_wins(scores),
            "search_best_epoch": found.phases["search"].best.epoch,
            "epochs": self.method.budget.epochs,
            "search_epochs": found.phases["search"].history[-1].epoch,
            "rounds": [_round(ticket) for ticket in found.rounds],
            **{f"{name}_seconds": result.seconds for name, result in found.phases.items()},
            "macs_dense": dense_cost.macs,
            "macs_ticket": ticket_cost.macs,
            "macs_paper_dense": dense_cost.macs_paper,
            "macs_paper_ticket": ticket_cost.macs_paper,
            "threads": self.settings["threads"],
            "device": self.experiment.device,
        }


def use_machine(threads: int) -> int:
    """Set this process up for so many threads (0: all it may use) and its memory; returns how many."""
    keep_freed_memory()
    threads = threads or available_threads()
    kernels.set_threads(threads)
    return threads


def machine_settings(threads: int, device: str) -> dict[str, Any]:
    """Where and by what a run is computed, as far as it may decide the last bits."""
    return {
        "threads": threads or available_threads(),
        "device": device,
        "backend": kernels.backend(),
        "fastglt": __version__,
    }


def available_threads() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0))


def _round(ticket: Ticket) -> dict[str, Any]:
    """A point of a sparsity curve: the round's ticket after its own training in the search."""
    sparsities = {"graph_sparsity": ticket.graph_sparsity, "weight_sparsity": ticket.weight_sparsity}
    return {
        "round": ticket.config["round"],
        **sparsities,
        **nan_as_null({name: ticket.scores[name] for name in ("search_val", "search_test")}),
    }


def _wins(scores: Mapping[str, float | None]) -> dict[str, bool | None]:
    """The papers' plain rule, test score at least the dense one; nothing without a dense twin."""
    if "dense_test" not in scores:
        return {}
    dense, tickets = scores["dense_test"], {run: scores[f"{run}_test"] for run in ("search", "isolated")}
    return {
        f"winning_{run}": None if ticket is None or dense is None else ticket >= dense
        for run, ticket in tickets.items()
    }
