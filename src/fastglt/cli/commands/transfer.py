"""`fastglt transfer`: a ticket's masks on another network or another graph."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import LONG, RUN, WHAT
from fastglt.cli.shared.judging import Loader, Trials, judge, print_verdict
from fastglt.cli.shared.options import given, model_options
from fastglt.cli.shared.tickets import OwnGraph, OwnSplitSeed, open_ticket
from fastglt.errors import InputError, require
from fastglt.report.tables import say
from fastglt.report.wording import counted
from fastglt.studies.lists import read_seeds
from fastglt.system.storage import as_file_name

if TYPE_CHECKING:
    from fastglt.data import Dataset
    from fastglt.data.origin import Origin
    from fastglt.methods import Budget
    from fastglt.models import Network
    from fastglt.report.bars import TimeLeft
    from fastglt.runs.run_folder import RunFolder
    from fastglt.tasks import Task
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt transfer runs/a --model gat[/] (the graph mask under another backbone) · "
    "[bold]fastglt transfer runs/a --seed 7[/] (both masks under other initial weights) · "
    "[bold]fastglt transfer runs/a --dataset my/later.npz[/] (the weight masks on another graph)"
)


def transfer(
    ticket: Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A name from [bold]fastglt models[/], or module:Class of your own (default: the ticket's).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    model_option: arguments.ModelOptions = None,
    dataset: Annotated[
        str | None, typer.Option(help="Another graph (default: the ticket's).", rich_help_panel=WHAT)
    ] = None,
    split_seed: OwnSplitSeed = None,
    seed: Annotated[int, typer.Option(help="Decides the new initial weights.", rich_help_panel=WHAT)] = 0,
    seeds: Annotated[str, typer.Option(help="Of the verdict, as in 0-9 or 0,2,5.", rich_help_panel=WHAT)] = "0-9",
    margin: arguments.Margin = 0.01,
    level: arguments.Level = 0.05,
    hidden: Annotated[
        int | None, typer.Option(help="Width of the hidden layer (default: the ticket's).", rich_help_panel=LONG)
    ] = None,
    oneshot_epochs: arguments.OneshotEpochs = None,
    denoise_epochs: arguments.DenoiseEpochs = None,
    lr: arguments.LearningRate = None,
    weight_decay: arguments.WeightDecay = None,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 0,
    device: arguments.Device = "cpu",
    data_root: arguments.DataRoot = None,
    directed: arguments.Directed = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the new ticket (default: runs/ and what it is).", rich_help_panel=RUN),
    ] = None,
    store: arguments.Store = arguments.STORE,
    dry_run: arguments.DryRun = False,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Take a ticket's masks over to another network or graph, train them there, and judge.

    The edge mask goes along on the same graph, a weight mask where a matrix has
    the same name and shape; what does not fit stays whole. The new ticket is
    kept, and judged as `fastglt evaluate` does.
    """
    from fastglt.data.origin import Origin
    from fastglt.judge.verdict import check_rule
    from fastglt.methods.settings import with_defaults
    from fastglt.report.bars import TimeLeft
    from fastglt.runs.experiment import machine_settings, use_machine
    from fastglt.tickets.networks import as_network
    from fastglt.tickets.transfer import Transferred, width_for

    check_rule(margin, level)
    require("not be negative", seed=seed)
    chosen = read_seeds(seeds)
    use_machine(threads)
    source, file = open_ticket(ticket)
    named = _model_for(source, model)
    graph = OwnGraph(dataset=dataset, split_seed=split_seed, data_root=data_root, directed=directed)
    found = graph.load(file)
    metric = source.config["metric"]
    told: dict[str, Any] = {**found.direction, **source.task_options}
    task = source.task.from_tensors(found.tensors, metric=metric, **told).to(device)
    options = {**_own_options(source, model), **model_options(named, model_option or [])}
    network = as_network(named, task, hidden=width_for(source, hidden), seed=seed, options=options)
    epochs = {"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs}
    said = given({**epochs, "lr": lr, "weight_decay": weight_decay})
    budget, _ = with_defaults(Transferred.name, found.name, network.spec["name"], budget=said)
    machine = machine_settings(threads, device)
    graph = replace(graph, split_seed=graph.split_seed_of(file))
    facts = {"dataset": found.name, "split_seed": graph.split_seed, **_other_metric(task, found)}
    name, is_directed = graph.place(file)
    origin = Origin.of(name, directed=is_directed)
    move = _Move(source=source, network=network, task=task, budget=budget, seed=seed)
    folder = move.folder({**facts, **machine}, out, origin)
    loader = Loader(graph, device=device, fresh_init=False)
    trials = Trials(
        seeds=chosen,
        margin=margin,
        level=level,
        machine=machine,
        store=store,
        command="transfer",
        quiet=quiet,
    )
    if dry_run:
        from fastglt.cli.shared.dry_run import print_trainings

        there = folder.result() is not None
        print_trainings(
            trials.plan([loader.open(folder.path)]) if there else move.plan(trials), as_json=json_output
        )
        return
    left = TimeLeft(1 + 2 * len(chosen))  # at most: what the store has is known once the ticket is there
    move.train(folder, store, left, quiet=quiet)
    judged = loader.open(folder.path)
    left.trainings = int(left.done) + trials.pending([judged])
    verdict = judge(judged, trials, left)
    document = {**judged.document(verdict), "taken": judged.contest.ticket.config["taken"]}
    if json_output:
        typer.echo(json.dumps(document))
        return
    taken = document["taken"]
    parts = [*(["the edge mask"] if taken["edges"] else []), *(f"the mask of {name}" for name in taken["matrices"])]
    say(f"Taken over: {', '.join(parts)}. The new ticket is in '{folder.path}'.")
    print_verdict(document, verdict)


def _model_for(source: "Ticket", model: str | None) -> str:
    """The model that was named, or the ticket's own."""
    if model is None and source.is_of_users_model:
        rule = "--model must name the network that the masks go to where the ticket's is a user's own"
        raise InputError(f"{rule} (got none, and a ticket of {source.model['class']}); fastglt models lists some")
    return str(source.model["name"]) if model is None else model


def _own_options(source: "Ticket", model: str | None) -> dict[str, Any]:
    """The options of the ticket's own model, where no other is named."""
    from fastglt.models.links import KEY
    from fastglt.models.options import SHAPE

    if model is not None:
        return {}
    return {name: value for name, value in source.model.items() if name not in ("name", KEY, *SHAPE)}


def _other_metric(task: "Task", dataset: "Dataset") -> dict[str, str]:
    """The metric, where it is not the one that the dataset or else the task has by itself."""
    from fastglt.tasks import known_metric
    from fastglt.tasks.base import metric_of

    usual = metric_of(type(task), known_metric(type(task), dataset.metric)).name
    return {} if task.metric == usual else {"metric": task.metric}


@dataclass(frozen=True, kw_only=True)
class _Move:
    """Masks on their way to another network or graph."""

    source: "Ticket"
    network: "Network"
    task: "Task"
    budget: "Budget"
    seed: int

    def folder(self, facts: dict[str, Any], out: Path | None, origin: "Origin | None") -> "RunFolder":
        """The new ticket's folder; whatever does not fit is told before anything is written."""
        from fastglt.runs.run_folder import RunFolder, settings_digest
        from fastglt.tickets.networks import edge_values
        from fastglt.tickets.ticket import masks_hash
        from fastglt.tickets.transfer import Fit

        source = self.source
        Fit.of(source, self.network, self.task)
        settings = {
            **facts,
            **self.task.digests,
            **self.network.identity,
            **edge_values(self.network, self.task),
            "method": "transfer",
            "from": {"initial": source.initial_hash, "method": source.config["method"], "seed": source.seed},
            "masks": masks_hash(source.masks),
            "seed": self.seed,
            **self.budget.settings,
        }
        model = self.network.spec["name"]
        name = f"transfer-{as_file_name(facts['dataset'])}-{model}-{settings_digest(settings)}"
        return RunFolder(out or Path("runs") / name, settings, origin=origin)

    def plan(self, trials: Trials) -> dict[str, Any]:
        """What it would take where nothing is there yet: for `--dry-run`."""
        from fastglt.cli.shared.judging import seconds_per_epoch

        count, epochs = 1 + 2 * len(trials.seeds), self.budget.epochs
        return {
            "trainings": count,
            "about": f"the new ticket; then dense, ticket; {counted(len(trials.seeds), 'seed')}",
            "reused": 0,
            "left": count,
            "epochs": count * epochs,
            "seconds": count * epochs * seconds_per_epoch(self.network, self.task, self.budget),
        }

    def train(self, folder: "RunFolder", store: Path, left: "TimeLeft", *, quiet: bool) -> None:
        """Make the new ticket in its folder, and a row of the store, unless it is there."""
        from fastglt.cli.shared.progress import Reporter, stop_cleanly
        from fastglt.runs.entries import entry_of
        from fastglt.runs.store import Store
        from fastglt.tickets.transfer import transfer as train

        results = Store(store)
        with folder.open() as finished, stop_cleanly(folder), Reporter(quiet=quiet, left=left) as reporter:
            if finished is not None:
                metrics, keep = finished, results.ensure
            else:
                made = train(
                    self.source,
                    self.network,
                    self.task,
                    seed=self.seed,
                    budget=self.budget,
                    journal=folder,
                    progress=reporter.after_epoch,
                )
                made.save(folder.path / "ticket.safetensors")
                metrics, keep = _metrics(made), results.record
                folder.complete(metrics, {"isolated": made.history})
            keep(entry_of(folder.settings, metrics, command="transfer", folder=folder.path))


def _metrics(made: "Ticket") -> dict[str, Any]:
    """How the masks did where they are now; of a search there is nothing to tell."""
    from fastglt.system.container import nan_as_null

    return {
        "seed": made.seed,
        "graph_sparsity": made.graph_sparsity,
        "weight_sparsity": made.weight_sparsity,
        **nan_as_null({name: made.scores[name] for name in ("isolated_val", "isolated_test")}),
        **{f"{phase}_seconds": seconds for phase, seconds in made.seconds.items()},
    }
