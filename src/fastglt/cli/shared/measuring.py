"""What the commands of `fastglt bench` share: pairs to measure, and rows that are kept once they are there."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared.arguments import RUN, STORE, AsJson, DataRoot, Quiet, Store, Wide
from fastglt.errors import unknown_name
from fastglt.report.tables import say
from fastglt.studies.lists import read_names

if TYPE_CHECKING:
    from fastglt.bench import Note
    from fastglt.bench.results import Row
    from fastglt.cli.shared.tables import Columns
    from fastglt.runs.experiment import Experiment, Prepared
    from fastglt.runs.store import Entry

WHAT, HOW = "What to measure", "How to measure"


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Datasets and models, each with each, and how they are pruned."""

    datasets: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            "--dataset",
            help="Names from [bold]fastglt data list[/], synthetic:nodes=…, .npz files, edges.csv; comma-separated "
            "(default: digits, or a ticket's own).",
            rich_help_panel=WHAT,
        ),
    ] = None
    models: Annotated[
        str,
        typer.Option(
            "--models", "--model", help="Names from [bold]fastglt models[/], comma-separated.", rich_help_panel=WHAT
        ),
    ] = "gcn"
    graph_sparsity: Annotated[
        float, typer.Option(help="Share of edges to remove, in [0, 1).", rich_help_panel=WHAT)
    ] = 0.2
    weight_sparsity: Annotated[
        float, typer.Option(help="Share of weights to remove, in [0, 1).", rich_help_panel=WHAT)
    ] = 0.9
    hidden: Annotated[int, typer.Option(help="Width of the hidden layer.", rich_help_panel=WHAT)] = 512
    seed: Annotated[int, typer.Option(help="Random seed (initial weights, dropout).", rich_help_panel=WHAT)] = 0
    directed: Annotated[
        bool, typer.Option("--directed", help="Do not symmetrise a graph from files.", rich_help_panel=WHAT)
    ] = False
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 0
    device: Annotated[
        str, typer.Option(help="cpu, cuda, or auto: cuda where there is one.", rich_help_panel=RUN)
    ] = "auto"
    data_root: DataRoot = None

    @property
    def settings(self) -> dict[str, Any]:
        """What decides a measurement beside the pair itself."""
        names = ("graph_sparsity", "weight_sparsity", "hidden", "seed", "directed")
        return {name: getattr(self, name) for name in names}

    @property
    def chosen_device(self) -> str:
        """The device's name, with auto decided."""
        import torch

        from fastglt.system.devices import usable

        kind = self.device.partition(":")[0]
        if kind not in ("auto", "cpu", "cuda"):
            raise unknown_name("device", self.device, ("auto", "cpu", "cuda"))
        if kind == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        return str(usable(self.device))

    def experiments(self, budget: dict[str, int]) -> "list[Experiment]":
        """Every pair of a dataset and a model."""
        from fastglt.runs.build import build_experiment

        machine: dict[str, Any] = {
            "threads": self.threads,
            "device": self.chosen_device,
            "data_root": self.data_root,
        }
        return [
            build_experiment(dataset=dataset, model=model, training=budget, options={}, **self.settings, **machine)
            for dataset in read_names("datasets", "digits" if self.datasets is None else self.datasets)
            for model in read_names("models", self.models)
        ]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where rows go."""

    out: Annotated[
        Path | None,
        typer.Option(
            help="JSON file for the rows, written after each; those it has already are not measured again.",
            rich_help_panel=RUN,
        ),
    ] = None
    store: Store = STORE
    quiet: Quiet = False
    json_output: AsJson = False
    wide: Wide = False


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A row to be: what tells it from others, and how it is measured. A mistake is found when it is made."""

    what: Mapping[str, str]  # a dataset and a model, with digests of all that a row depends on
    measure: "Callable[[Note], Row]"


def pair_of(prepared: "Prepared") -> dict[str, str]:
    """What tells a dataset and a model from others; the model must have a twin to be measured against."""
    from fastglt.models.twins import check_twin

    check_twin(prepared.network.twin, prepared.network.spec["name"])
    return {
        "dataset": prepared.dataset.name,
        "model": prepared.network.spec["name"],
        "data": prepared.task.digest,
    }


def measure_all(
    command: str,
    settings: Mapping[str, Any],
    measurements: Sequence[Measurement],
    columns: "Columns",
    kept: Kept,
    *,
    threads: int,
    device: str,
) -> None:
    """Measure all that has not been measured yet, and record and print each row as soon as it is there."""
    from fastglt.bench.results import Measurements, machine
    from fastglt.cli.shared.progress import Notes
    from fastglt.cli.shared.tables import RowPrinter
    from fastglt.runs.experiment import use_machine
    from fastglt.runs.store import Store as ResultsStore

    recorded = ResultsStore(kept.store)
    about = {"machine": machine(threads=use_machine(threads), device=device)}
    results = Measurements(kept.out, {**about, "command": command, "settings": dict(settings)})
    printer = RowPrinter(columns, [(one.what["dataset"], one.what["model"]) for one in measurements])
    rows = []
    for one in measurements:
        row = results.find(**one.what)
        keep = recorded.record if row is None else recorded.ensure
        if row is None:
            with Notes(f"{one.what['dataset']} {one.what['model']}", quiet=kept.quiet) as notes:
                row = {**one.measure(notes.tell), **one.what}
            results.add(row)
        keep(_entry(results.about, one.what, row, kept.out))
        rows.append(row)
        if not kept.json_output:
            printer.print(row)
    document = results.document(rows)
    if kept.json_output:
        typer.echo(json.dumps(document))
    else:
        say(_machine_line(document["machine"]))


def _entry(about: Mapping[str, Any], what: Mapping[str, str], row: "Row", out: Path | None) -> "Entry":
    """A row in the results store, where it is listed and never taken instead of measuring."""
    from fastglt.runs.store import Entry, key_of

    used = {name: about["machine"][name] for name in ("threads", "device", "backend", "kernels", "fastglt")}
    settings = {"bench": about["command"], **what, **about["settings"], **used}
    place = None if out is None else str(out.absolute())
    command = f"bench {about['command']}"
    return Entry(key=key_of(settings), kind="bench", command=command, settings=settings, metrics=row, folder=place)


def _machine_line(machine: dict[str, Any]) -> str:
    threads = f"{machine['threads']} thread{'s' if machine['threads'] > 1 else ''} on {machine['cores']} cores"
    names = {"torch": "torch", "torch_geometric": "PyG", "numba": "numba", "fastglt": "fastglt"}
    versions = ", ".join(f"{name} {machine[package]}" for package, name in names.items())
    where = [machine["cpu"], threads, *([] if machine["device"] == "cpu" else [machine["device"]])]
    return f"{', '.join(where)}; {versions}"
