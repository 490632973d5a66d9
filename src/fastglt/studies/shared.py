"""What all runs of a study share, whichever question it asks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, TypedDict

from fastglt.data import load
from fastglt.data.loading import intended_task
from fastglt.errors import InputError
from fastglt.methods import Targets
from fastglt.methods.base import WEIGHTS
from fastglt.methods.settings.defaults import SomeBudget
from fastglt.methods.teaching import Distill
from fastglt.methods.variants import Variant, check_differ, read_variants
from fastglt.models import lookup as lookup_model
from fastglt.runs.build import build_experiment
from fastglt.runs.engine import MakeEngine, Outcome
from fastglt.runs.experiment import Experiment
from fastglt.runs.plan import Run, plan
from fastglt.runs.series import Series, runs_at_a_time, tell_on_stderr
from fastglt.runs.store import default_path
from fastglt.system.storage import as_file_name
from fastglt.tasks import lookup

Place = Path | str


class StudySettings(TypedDict, total=False):
    """What `fastglt.compare` and `fastglt.extreme` both take besides methods, sparsities and seeds."""

    task: str | None
    task_options: Mapping[str, Any] | None
    metric: str | None
    model: str
    model_options: Mapping[str, Any] | None
    options: Mapping[str, Mapping[str, Any]] | None
    budget: SomeBudget
    distill: Distill
    inductive: float | None
    structure: str
    hidden: int | None
    split_seed: int
    data_root: Place | None
    directed: bool
    device: str
    threads: int
    jobs: int
    out: Place | None
    store: Place | None
    checkpoint_every: float
    engine: str | MakeEngine | None
    progress: bool | Callable[[str], None]
    dry_run: bool
    with_tickets: bool


@dataclass(frozen=True, kw_only=True)
class Study:
    """A graph, a network and how it is trained, methods, and where and how their runs are made."""

    command: str  # the name under which runs are recorded, and which their folder has
    dataset: Place
    methods: str | Sequence[str]
    task: str | None = None
    task_options: Mapping[str, Any] | None = None
    metric: str | None = None
    model: str = "gcn"
    model_options: Mapping[str, Any] | None = None
    options: Mapping[str, Mapping[str, Any]] | None = None
    budget: SomeBudget = None
    distill: Distill = None
    inductive: float | None = None
    structure: str = WEIGHTS
    hidden: int | None = None  # None: as published for the pair, or 512
    split_seed: int = 0
    data_root: Place | None = None
    directed: bool = False
    device: str = "cpu"
    threads: int = 1
    jobs: int = 0
    out: Place | None = None
    store: Place | None = None
    checkpoint_every: float = 10.0
    engine: str | MakeEngine | None = "local"
    progress: bool | Callable[[str], None] = False
    dry_run: bool = False  # raise `fastglt.runs.forecast.DryRun`, with what would run, instead of running it
    with_tickets: bool = False
    shown: str = "test"  # the scores that are told while runs end

    @cached_property
    def variants(self) -> dict[str, Variant]:
        """The methods asked for, by their labels."""
        return read_variants(self.methods, self.options)

    @property
    def model_name(self) -> str:
        """The model's name, also of one that was given by where it lives."""
        return lookup_model(self.model).name

    @cached_property
    def folder(self) -> Path:
        """The folder of the runs' folders."""
        name = f"{self.command}-{as_file_name(str(self.dataset))}-{self.model_name}"
        return Path("runs") / name if self.out is None else Path(self.out)

    @cached_property
    def series(self) -> Series:
        """How the runs are made and told of."""
        return Series(
            command=self.command,
            out=self.folder,
            store=default_path() if self.store is None else Path(self.store).expanduser(),
            jobs=runs_at_a_time(self.jobs, self.threads, self.device),
            checkpoint_every=self.checkpoint_every,
            engine=self.engine,
            shown=self.shown,
            tell=self.progress if callable(self.progress) else tell_on_stderr if self.progress else None,
            dry_run=self.dry_run,
            with_tickets=self.with_tickets,
        )

    def run(
        self,
        trials: Iterable[tuple[str, Targets]],
        seeds: Iterable[int],
        split_seeds: Sequence[int] = (),
        *,
        plain_twins: bool = False,
    ) -> tuple[list[Run], list[Outcome]]:
        """Methods, by label, at pairs of sparsities, each with every seed on every split (none: the study's own).

        What is not finished is executed. `plain_twins`: of taught tickets' opponents the plain dense network alone.
        """
        return self.series.run(*self._asked(trials, seeds, split_seeds), plain_twins=plain_twins)

    def require_test_nodes(self, rule: str, remedy: str) -> None:
        """Refuse data without anything to test on, before anything is trained."""
        root = None if self.data_root is None else Path(self.data_root)
        found = load(str(self.dataset), root=root, split_seed=self.split_seed, directed=self.directed)
        task = self.task or intended_task(str(self.dataset))
        if task is not None and lookup(task).of_pairs:  # a random split of edges has some to test on
            given = "val_pos_edge_index" in found.tensors
            tested = not given or bool(found.tensors["test_pos_edge_index"].numel())
        else:
            tested = bool(found.tensors["test_mask"].any())
        if not tested:
            raise InputError(f"{rule} (got none); {remedy}")

    def plan(self, trials: Iterable[tuple[str, Targets]], seeds: Iterable[int]) -> list[Run]:
        """What `run` would execute or find."""
        experiments, labels = self._asked(trials, seeds, ())
        return plan(experiments, self.series.out, labels)

    def _asked(
        self, trials: Iterable[tuple[str, Targets]], seeds: Iterable[int], split_seeds: Sequence[int]
    ) -> tuple[list[Experiment], list[str]]:
        """The experiments, and what their tickets are called."""
        asked = list(product(split_seeds or [self.split_seed], seeds, trials))
        experiments = [
            self.experiment(self.variants[label], targets, seed, split) for split, seed, (label, targets) in asked
        ]
        labels = [label for _, _, (label, _) in asked]
        check_differ({label: one.make_method() for label, one in zip(labels, experiments, strict=True)}.items())
        return experiments, labels

    def experiment(self, variant: Variant, targets: Targets, seed: int, split_seed: int) -> Experiment:
        """One run of a variant."""
        root = self.data_root
        return build_experiment(
            dataset=str(self.dataset),
            task=self.task,
            task_options=dict(self.task_options or {}),
            metric=self.metric,
            model=self.model,
            model_options=dict(self.model_options or {}),
            method=variant.place,
            options=variant.options,
            training=self.budget,
            distill=self.distill,
            graph_sparsity=targets.graph_sparsity,
            weight_sparsity=targets.weight_sparsity,
            structure=self.structure,
            hidden=self.hidden,
            seed=seed,
            split_seed=split_seed,
            inductive=self.inductive,
            directed=self.directed,
            threads=self.threads,
            device=self.device,
            data_root=None if root is None else Path(root),
        )
