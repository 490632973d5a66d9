"""One whole run from names and numbers: load the data, build the model, find and judge a ticket, keep it."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from fastglt import __version__, kernels
from fastglt.data import Dataset, load
from fastglt.data.origin import Origin
from fastglt.errors import require
from fastglt.methods import Budget, FixedMasks, Method, Targets, make
from fastglt.models import Network
from fastglt.models import lookup as lookup_model
from fastglt.models.options import check_options
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.summary import metrics_of, phase_metrics
from fastglt.system.plugins import code_digest, is_ours, place_of
from fastglt.system.process import keep_freed_memory
from fastglt.system.seeds import own_random_state
from fastglt.tasks import NodeTask, Task, check_metric, kind_of, known_metric, lookup, task_settings
from fastglt.tasks.inductive import Inductive, hide
from fastglt.tasks.options import check_options as check_task_options
from fastglt.tickets.find import Found, check_targets, find, scores_on_new
from fastglt.tickets.networks import edge_values, named_network
from fastglt.tickets.new_nodes import NewNodes, check_network
from fastglt.tickets.phases import (
    DENSE,
    DISTILLED,
    SAME_LR,
    Journal,
    PhaseResult,
    Progress,
    how_to_teach,
    opponents,
    train_opponent,
    train_teacher,
)
from fastglt.training.distillation import Teacher
from fastglt.training.loop import Training

_IF_GIVEN = ("model_options", "task_options", "inductive")  # which values of before do not have


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that decides a run's result."""

    dataset: str = "digits"
    task: str | None = None  # a name, or module:Class of your own; None: the one that the dataset's labels are for
    task_options: dict[str, Any] = field(default_factory=dict)
    metric: str | None = None  # None: the dataset's, if the task has it, else the task's default
    model: str = "gcn"
    method: str = "fastglt"
    targets: Targets
    budget: Budget
    options: dict[str, Any] = field(default_factory=dict)
    hidden: int = 512
    model_options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    split_seed: int = 0
    inductive: float | None = None  # share of the nodes that is hidden, drawn by the split seed
    directed: bool = False
    threads: int = 0  # 0: as many as the process may use
    device: str = "cpu"
    data_root: Path | None = None

    def __post_init__(self) -> None:
        check_options(lookup_model(self.model), self.model_options)
        if self.task is not None:
            check_task_options(lookup(self.task), self.task_options)
        if self.metric is not None:
            check_metric(self.task, self.metric)
        require("not be negative", threads=self.threads, seeds=min(self.seed, self.split_seed))
        require("lie below 2^63", seeds=max(self.seed, self.split_seed))
        self.make_method()

    @property
    def model_name(self) -> str:
        """The model's name, also of one that was given by where it lives."""
        return lookup_model(self.model).name

    def make_method(self) -> Method:
        """The method with its targets, budget and options."""
        return make(self.method, targets=self.targets, budget=self.budget, **self.options)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes, in a process of its own; options only if there are any."""
        model, root = lookup_model(self.model), self.data_root
        place = self.model if is_ours(model) else getattr(model, "place", None) or place_of(model) or self.model
        written = {"targets": self.targets.settings, "data_root": None if root is None else str(root)}
        values = {**asdict(self), "model": place, **written}
        return {name: value for name, value in values.items() if name not in _IF_GIVEN or value}

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

    def _prepare_task(self, dataset: Dataset) -> Task:
        kind = kind_of(self.task, dataset.tensors.get("y"))
        metric = known_metric(kind, dataset.metric) if self.metric is None else self.metric
        seeded = {"split_seed": self.split_seed} if "split_seed" in kind.option_names else {}
        options = {**seeded, **self.task_options}
        check_task_options(kind, options)
        mapped = dataset.compressed is not None and issubclass(kind, NodeTask)  # with edges as they were prepared
        given: dict[str, Any] = {**dataset.direction, **({"compressed": dataset.compressed} if mapped else {})}
        return kind.from_tensors(dataset.tensors, metric=metric, **given, **options).to(self.device)

    def prepare(self, like: "Prepared | None" = None) -> "Prepared":
        """Load and check everything that can be checked before training.

        What it shares with another one that differs in method, targets, budget or seeds alone is taken from there.
        """
        if like is not None and like.experiment.split_seed != self.split_seed:
            like = None
        if like is None:
            dataset = load(self.dataset, root=self.data_root, split_seed=self.split_seed, directed=self.directed)
            task = self._prepare_task(dataset)
            hidden = None if self.inductive is None else hide(task, self.inductive, seed=self.split_seed)
            task = task if hidden is None else hidden.seen
        else:
            dataset, task, hidden = like.dataset, like.task, like.inductive
        if like is not None and like.experiment.seed == self.seed:
            network = like.network
        else:
            options = self.model_options
            network = named_network(self.model, task, hidden=self.hidden, seed=self.seed, options=options)
        method = self.make_method()
        check_targets(network, task, method)
        if hidden is not None:
            check_network(network, hidden)
        return Prepared(
            experiment=self, dataset=dataset, task=task, network=network, method=method, inductive=hidden
        )


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An experiment that can start."""

    experiment: Experiment
    dataset: Dataset
    task: Task
    network: Network
    method: Method
    inductive: Inductive | None = None  # where nodes are hidden; the task is the seen part

    @property
    def settings(self) -> dict[str, Any]:
        """What tells this run from others: every choice, and digests of the data instead of its path."""
        code = code_digest(type(self.method), Method)
        return {
            **self._shared_settings,
            "method": self.method.name,
            "options": self.method.options,
            **({} if code is None else {"code": code}),
            **self.method.targets.settings,
            **self.method.budget.settings,
        }

    @property
    def origin(self) -> Origin | None:
        """The files that the graph came from, if it did."""
        return Origin.of(self.experiment.dataset, directed=self.experiment.directed)

    @property
    def dense_settings(self) -> dict[str, Any]:
        """What tells the dense twin from others: nothing that a method or its targets decide."""
        budget = self.method.budget
        return {**self._shared_settings, "dense": True, "epochs": budget.epochs, **budget.recipe.settings}

    @property
    def twins(self) -> dict[str, dict[str, Any]]:
        """What the ticket is compared with, by name and settings: the dense network and, for a distilled ticket,
        one that was taught in the same way and, where that has its own learning rate, one at that rate.
        """
        plain, budget = self.dense_settings, self.method.budget
        known = {
            DENSE: plain,
            DISTILLED: {**plain, **budget.taught_alone},
            SAME_LR: {**plain, "lr": budget.taught_recipe.lr, "twin": SAME_LR},
        }
        return {name: known[name] for name in opponents(budget)}

    @property
    def _shared_settings(self) -> dict[str, Any]:
        chosen = self.experiment
        return {
            "dataset": self.dataset.name,
            **self.task.digests,
            **self._task_settings,
            **self.network.identity,
            **edge_values(self.network, self.task),
            **({} if self.inductive is None else {"inductive": self.inductive.settings}),
            "seed": chosen.seed,
            "split_seed": chosen.split_seed,
            **machine_settings(chosen.threads, chosen.device),
        }

    @property
    def _task_settings(self) -> dict[str, Any]:
        """The task, and a metric that is not the dataset's; nothing where both are what they were before."""
        code = code_digest(type(self.task), Task)
        chosen = {} if self.task.metric == self.dataset.metric else {"metric": self.task.metric}
        return {**task_settings(self.task), **chosen, **({} if code is None else {"task_code": code})}

    def warm_up(self, *, dense: bool = False) -> None:
        """Load the compiled kernels before anything is timed, with an epoch that is thrown away."""
        method = FixedMasks(budget=self.method.budget) if dense else self.method
        with own_random_state(self.task.device):
            self.rehearse(method).run_epoch(method)

    def rehearse(self, method: Method) -> Training:
        """A training that can be thrown away, at its beginning; a teacher who knows nothing costs as much as one
        who does.
        """
        teacher = None
        if method.budget.distill > 0:
            targets = self.task.overview
            rows = self.task.graph.num_nodes if targets is None else len(targets)
            nothing = torch.zeros((rows, self.task.num_outputs), dtype=torch.float32, device=self.task.device)
            teacher = Teacher(outputs=nothing, **how_to_teach(method.budget, self.task))  # as the ticket alone has
        units = method.units(self.network, self.task)
        training = Training(
            self.network, self.task, method.recipe, seed=self.experiment.seed, teacher=teacher, units=units
        )
        method.begin(training)
        return training

    def find(self, journal: Journal, progress: Progress | None = None, *, dense: bool = True) -> Found:
        """Find the ticket, with or without its dense twins."""
        given: dict[str, Any] = {"journal": journal, "progress": progress, "inductive": self.inductive}
        return find(self.network, self.task, self.method, seed=self.experiment.seed, dense=dense, **given)

    def run(self, folder: RunFolder, progress: Progress | None = None, *, dense: bool = True) -> dict[str, Any]:
        """Find the ticket in an open folder, with or without its dense twins; returns the metrics."""
        return self.keep(self.find(folder, progress, dense=dense), folder)

    def keep(self, found: Found, folder: RunFolder, **more: Any) -> dict[str, Any]:
        """Write what was found to the folder, and the metrics, with what is `more` to them; returns these."""
        found.ticket.save(folder.path / "ticket.safetensors")
        for ticket in found.rounds:
            ticket.save(folder.path / "rounds" / f"{ticket.config['round']:02}.safetensors")
        metrics = {**self._about, **metrics_of(found, self.network, self.task, self.method), **self._where, **more}
        folder.complete(metrics, {name: result.history for name, result in found.phases.items()})
        return metrics

    def run_dense(self, folder: RunFolder, name: str = DENSE) -> dict[str, Any]:
        """Train one of the dense twins alone in an open folder, the plain one unless named; returns its metrics."""
        budget, phases, teacher = self.method.budget, dict[str, PhaseResult](), None
        given: dict[str, Any] = {"seed": self.experiment.seed, "journal": folder}
        distilled = name == DISTILLED
        if distilled:
            phases["teacher"], teacher = train_teacher(self.network, self.task, budget, **given)
        phases[name] = train_opponent(name, self.network, self.task, budget, teacher=teacher, **given)
        metrics = {
            **self._about,
            **(budget.taught_alone if distilled else {}),
            "epochs": budget.epochs,
            **phase_metrics(phases),
            **({} if self._new_nodes is None else scores_on_new(self._new_nodes, phases)),
            **self._where,
        }
        folder.complete(metrics, {phase: result.history for phase, result in phases.items()})
        return metrics

    @property
    def _new_nodes(self) -> NewNodes | None:
        if self.inductive is None:
            return None
        given: dict[str, Any] = {"network": self.network, "method": self.method, "seed": self.experiment.seed}
        return NewNodes(inductive=self.inductive, **given)

    @property
    def _about(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset.name,
            "model": self.network.spec["name"],
            "metric": self.task.metric,
            **task_settings(self.task),
            "seed": self.experiment.seed,
            "split_seed": self.experiment.split_seed,
            **({} if self.inductive is None else {"inductive": self.inductive.share, **self.inductive.facts}),
        }

    @property
    def _where(self) -> dict[str, Any]:
        return {"threads": thread_count(self.experiment.threads), "device": self.experiment.device}


def use_machine(threads: int) -> int:
    """Set this process up for so many threads (0: all it may use) and its memory; returns how many."""
    count = thread_count(threads)
    keep_freed_memory()
    kernels.set_threads(count)
    return count


def machine_settings(threads: int, device: str) -> dict[str, Any]:
    """Where and by what a run is computed, as far as it may decide the last bits."""
    return {
        "threads": thread_count(threads),
        "device": device,
        "backend": kernels.backend(),
        "fastglt": __version__,
    }


def thread_count(threads: int) -> int:
    """So many threads; 0: as many as there are cores for this process."""
    require("not be negative", threads=threads)
    return threads or available_threads()


def available_threads() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0))
