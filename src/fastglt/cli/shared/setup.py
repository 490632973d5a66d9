"""Groups of options, each one argument of a command: what is trained, and how many runs are made of it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import RUN
from fastglt.cli.shared.options import given, model_options, options_by_method, task_options
from fastglt.cli.shared.series import executed_by, teller
from fastglt.errors import InputError, require

if TYPE_CHECKING:
    from fastglt.methods import Targets
    from fastglt.runs.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A graph, a network, and how long and where it is trained."""

    dataset: arguments.Dataset = "digits"
    task: arguments.Task = None
    task_option: arguments.TaskOptions = None
    metric: arguments.Metric = None
    model: arguments.Model = "gcn"
    model_option: arguments.ModelOptions = None
    structure: arguments.Structure = "weights"
    split_seed: arguments.SplitSeed = 0
    inductive: arguments.Inductive = None
    oneshot_epochs: arguments.OneshotEpochs = None
    denoise_epochs: arguments.DenoiseEpochs = None
    interval: arguments.Interval = None
    lr: arguments.LearningRate = None
    weight_decay: arguments.WeightDecay = None
    distill: arguments.Distill = False
    distill_weight: arguments.DistillWeight = None
    distill_search: arguments.DistillSearch = None
    distill_temperature: arguments.DistillTemperature = None
    distill_labels: arguments.DistillLabels = None
    distill_lr: arguments.DistillLr = None
    distill_nodes: arguments.DistillNodes = None
    isolated_decay: arguments.IsolatedDecay = None
    parts: arguments.Parts = None
    partition: arguments.Partition = None
    parts_per_step: arguments.PartsPerStep = None
    shares: arguments.Shares = None
    exact: arguments.Exact = False
    hidden: arguments.Hidden = None
    device: arguments.Device = "cpu"
    data_root: arguments.DataRoot = None
    directed: arguments.Directed = False

    def __post_init__(self) -> None:
        said = given({name: getattr(self, f"distill_{name}") for name in _TEACHER})
        for name, value in said.items():
            if not self.distill:
                raise InputError(f"--distill-{name} must come with --distill (got {value} without)")
        if "weight" in said:
            require("be positive", distill_weight=said["weight"])

    @property
    def as_arguments(self) -> dict[str, Any]:
        """What `fastglt.compare` and `fastglt.extreme` are called with."""
        values = asdict(self)
        budget = given({name: values.pop(name) for name in _TRAINING} | {"exact": self.exact or None})
        values["model_options"] = model_options(self.model, values.pop("model_option") or [])
        values["task_options"] = task_options(self.task, self.dataset, values.pop("task_option") or [])
        said = given({name: values.pop(f"distill_{name}") for name in _TEACHER})
        return {**values, "budget": budget, "distill": said if self.distill else None}

    def experiment(
        self, *, method: str, options: dict[str, Any], targets: "Targets", seed: int, threads: int
    ) -> "Experiment":
        """A method's run in this setup."""
        from fastglt.runs.build import build_experiment

        values = self.as_arguments
        return build_experiment(
            training=values.pop("budget"),
            options=options,
            graph_sparsity=targets.graph_sparsity,
            weight_sparsity=targets.weight_sparsity,
            method=method,
            seed=seed,
            threads=threads,
            **values,
        )


_TEACHER = ("weight", "search", "temperature", "labels", "lr", "nodes")
_BY_PARTS = ("parts", "partition", "parts_per_step", "shares", "exact")
_TRAINING = ("oneshot_epochs", "denoise_epochs", "interval", "lr", "weight_decay", "isolated_decay", *_BY_PARTS)


@dataclass(frozen=True, kw_only=True)
class Many:
    """The options of a command that makes many runs: how they are made, kept and told of."""

    option: arguments.MethodOptions = None
    jobs: arguments.Jobs = 0
    threads: arguments.ThreadsOfEach = 1
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the runs' folders (default: runs/ and the command, dataset and model).",
            rich_help_panel=RUN,
        ),
    ] = None
    checkpoint_every: arguments.CheckpointEvery = 10.0
    store: arguments.Store = arguments.STORE
    engine: arguments.Engine = "local"
    ray_address: arguments.RayAddress = None
    config: arguments.Config = None
    dry_run: arguments.DryRun = False
    quiet: arguments.Quiet = False
    json_output: arguments.AsJson = False
    wide: arguments.Wide = False

    def as_arguments(self, methods: str, *, device: str = "cpu") -> dict[str, Any]:
        """What `fastglt.compare` and `fastglt.extreme` are called with, for some methods."""
        many: dict[str, Any] = {"jobs": self.jobs, "threads": self.threads, "device": device}
        return {
            "methods": methods,
            "options": options_by_method(methods, self.option or []),
            **{name: getattr(self, name) for name in _HANDED_ON},
            **executed_by(self.engine, self.ray_address, **many),
            "dry_run": self.dry_run,
            "progress": teller(quiet=self.quiet),
        }


_HANDED_ON = ("threads", "out", "checkpoint_every", "store")
