"""`fastglt update`: a ticket follows its graph, whose nodes and edges come and go."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import LONG, RUN, WHAT
from fastglt.cli.shared.compiled import TicketPath
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.tickets import OwnGraph, open_ticket, refuse_users_model, tell_of_other_split, warnings_told
from fastglt.cli.shared.updating import change_of, same_nodes
from fastglt.errors import InputError, require
from fastglt.report.tables import say
from fastglt.report.wording import percent

if TYPE_CHECKING:
    from fastglt.data import Dataset
    from fastglt.data.changes import ChangeFiles
    from fastglt.runs.run_folder import RunFolder
    from fastglt.tickets.change import Change
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt update runs/a --nodes new-nodes.csv --edges new-edges.csv[/] · "
    "[bold]fastglt update runs/a --remove-edges gone.csv --epochs 0[/] (the weights stay) · "
    "[bold]fastglt update runs/a --to my/later.npz --out runs/later[/] (the whole new graph)"
)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The options that say what has come and gone."""

    edges: Annotated[
        Path | None,
        typer.Option(help="CSV file of new edges: source,target (and weight, if the graph has some)."),
    ] = None
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of new nodes: id, the features in their order and, if known, label and split. Where "
            "nodes are numbers, ids go on from the last."
        ),
    ] = None
    remove_edges: Annotated[Path | None, typer.Option(help="CSV file of edges that have gone: source,target.")] = (
        None
    )
    remove_nodes: Annotated[
        Path | None, typer.Option(help="CSV file of nodes that have gone, with all their edges: id.")
    ] = None
    to: Annotated[
        str | None,
        typer.Option(
            help="Instead of these: the whole new graph, as directed as the ticket's. Nodes are the same by id or, "
            "without, by number."
        ),
    ] = None

    def files(self) -> "ChangeFiles | None":
        """The files of changes; None where the whole new graph is named."""
        from fastglt.data.changes import ChangeFiles

        given = {name: value for name, value in asdict(self).items() if name != "to" and value is not None}
        if bool(given) == (self.to is not None):
            got = f"--{next(iter(given)).replace('_', '-')} and --to" if given else "neither"
            rule = "say what has changed, with --edges, --nodes, --remove-edges or --remove-nodes, or with --to"
            raise InputError(f"{rule} (got {got})")
        return ChangeFiles(**given) if given else None


@gather
def update(
    ticket: TicketPath,
    changes: Changes,
    graph: OwnGraph,
    epochs: Annotated[
        int, typer.Option(help="How long the trained weights go on; 0: they stay.", rich_help_panel=LONG)
    ] = 10,
    seed: Annotated[
        int | None,
        typer.Option(help="Of edges that are drawn, and dropout (default: the ticket's).", rich_help_panel=WHAT),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the new ticket and graph (default: runs/ and what it is).", rich_help_panel=RUN
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 0,
    device: arguments.Device = "cpu",
    store: arguments.Store = arguments.STORE,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Take a ticket to its graph as it is now, with nodes and edges that have come or gone.

    The ticket's rule decides which of the new edges stay, at the same sparsity: agreement of predictions (forest),
    degrees (fastglt, teddy), chance for masks that were learnt edge by edge. The trained weights go on for a few
    epochs, and the best one on validation nodes counts. It says whether a new search would pay: if the validation
    score has lost more than a point since the search, if more than a fifth of the edges have come or gone since, or
    if fewer than nine in ten nodes are predicted as before. --dataset names the graph as it was. The new folder is
    a run like any other: predict, serve, evaluate and update take it.
    """
    from fastglt.runs.experiment import machine_settings, use_machine

    require("not be negative", epochs=epochs, **({} if seed is None else {"seed": seed}))
    files = changes.files()
    use_machine(threads)
    found, file = open_ticket(ticket)
    refuse_users_model(found, "fastglt.update_ticket(ticket, data, new_data, model=model)")
    with warnings_told(ticket):
        place = _Place(graph=graph, file=file, to=changes.to)
        now = place.change(found, files, device)
    after, change = now.dataset, now.change
    settings = {
        "dataset": after.name,
        "split_seed": graph.split_seed_of(file),
        **_digests(found, change),
        "method": "update",
        "from": {"ticket": _digest(file), "nodes": _nodes_digest(change)},
        "epochs": epochs,
        "seed": found.seed if seed is None else seed,
        **machine_settings(threads, device),
    }
    folder = place.folder(now, settings, out)
    document = _run(found, change, folder, epochs=epochs, store=store, quiet=quiet)
    if json_output:
        typer.echo(json.dumps({**document, "folder": str(folder.path)}))
    else:
        _print(document, folder.path)


class _Now(NamedTuple):
    """The graph as it is now."""

    dataset: "Dataset"
    change: "Change"
    named: str | None  # what `load` takes for it; None: no file has it like this


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a ticket's graph is, as it was and as it is now."""

    graph: OwnGraph
    file: Path
    to: str | None

    def change(self, ticket: "Ticket", files: "ChangeFiles | None", device: str) -> _Now:
        """The new graph, and what has happened to the old one."""
        import torch

        from fastglt.data import load
        from fastglt.data.following import following, learnt_from_is_judged

        before, named = self.graph.load(self.file), None
        if files is not None:
            after, numbers = files.applied_to(before, directed=before.directed)
            nodes = torch.from_numpy(numbers)
        else:
            assert self.to is not None, "one or the other was said"
            split = self.graph.split_seed_of(self.file)
            loaded = load(self.to, root=self.graph.data_root, split_seed=split, directed=before.directed)
            nodes = same_nodes(before, loaded)
            after = following(before, loaded, nodes)
            named = self.to if after is loaded else None
            if learnt_from_is_judged(before, after, nodes):
                tell_of_other_split(self.to)
        return _Now(after, change_of(ticket, before, after, nodes, device=device), named)

    def folder(self, now: _Now, settings: dict[str, Any], out: Path | None) -> "RunFolder":
        """The run's folder, with the new graph in it unless that has a place already."""
        from fastglt.data.origin import Origin
        from fastglt.data.writing import write_graph
        from fastglt.runs.run_folder import RunFolder, settings_digest
        from fastglt.system.storage import as_file_name

        after = now.dataset
        name = f"update-{as_file_name(after.name)}-{settings_digest(settings)}"
        path = out or Path("runs") / name
        RunFolder(path, settings).result()  # nothing of another run is overwritten
        where = write_graph(after, path) if now.named is None else now.named
        return RunFolder(path, settings, origin=Origin.of(where, directed=after.directed))


def _run(
    ticket: "Ticket", change: "Change", folder: "RunFolder", *, epochs: int, store: Path, quiet: bool
) -> dict[str, Any]:
    """The metrics of the update, which is done unless it was before."""
    from fastglt.cli.shared.progress import Reporter, stop_cleanly
    from fastglt.runs.entries import entry_of
    from fastglt.runs.store import Store
    from fastglt.tickets.update import update as take_over

    results = Store(store)
    with folder.open() as finished, stop_cleanly(folder), Reporter(quiet=quiet) as reporter:
        if finished is not None:
            metrics, keep = finished, results.ensure
        else:
            made = take_over(
                ticket,
                None,
                change,
                epochs=epochs,
                seed=folder.settings["seed"],
                journal=folder,
                progress=reporter.after_epoch,
            )
            made.save(folder.path / "ticket.safetensors")
            metrics, keep = _metrics(made, folder.settings), results.record
            folder.complete(metrics, {"update": made.history})
        keep(entry_of(folder.settings, metrics, command="update", folder=folder.path))
    return metrics


def _metrics(made: "Ticket", settings: dict[str, Any]) -> dict[str, Any]:
    from fastglt.system.container import nan_as_null

    scores = {name: made.scores[name] for name in ("search_val", "search_test")}
    found: dict[str, Any] = nan_as_null(
        {
            "dataset": settings["dataset"],
            "model": made.model["name"],
            "metric": made.config["metric"],
            "seed": settings["seed"],
            "graph_sparsity": made.graph_sparsity,
            "weight_sparsity": made.weight_sparsity,
            "edges_kept": made.masks.edges.count,
            "edges_total": made.masks.edges.size,
            **scores,
            "update": dict(made.config["update"]),
            "update_seconds": made.seconds["update"],
        }
    )
    return found


def _digests(ticket: "Ticket", change: "Change") -> dict[str, Any]:
    """What the new graph is, and the network that goes on there."""
    from fastglt.tickets.networks import edge_values, network_of

    network, _ = network_of(ticket, None)
    return {**change.after.digests, **network.identity, **edge_values(network, change.after)}


def _digest(file: Path) -> str:
    import hashlib

    return hashlib.sha256(file.read_bytes()).hexdigest()


def _nodes_digest(change: "Change") -> str:
    import hashlib

    return hashlib.sha256(change.nodes_before.numpy().tobytes()).hexdigest()[:16]


def _print(metrics: dict[str, Any], folder: Path) -> None:
    told = metrics["update"]
    came, went = ((told[f"nodes_{what}"], told[f"edges_{what}"]) for what in ("added", "removed"))
    say(
        f"Update {told['number']}: {came[0]:,} nodes and {came[1]:,} edges came, "
        f"{went[0]:,} nodes and {went[1]:,} edges went."
    )
    say(f"Kept: {metrics['edges_kept']:,} of {metrics['edges_total']:,} edges, by the ticket's rule.")
    say(
        f"Validation: {percent(told['val'])} ({percent(told['val_before_refining'])} before the weights went on, "
        f"{percent(told['search_val'])} at the search). Test: {percent(metrics['search_test'])}."
    )
    say(f"Predicted as before: {percent(told['agreed'])} % of the nodes.")
    reasons = told["search_again"]
    say(
        f"A new search would pay: {'; '.join(reasons)}."
        if reasons
        else f"A new search would not pay yet: {100 * told['changed']:.0f} % of the edges changed since the last."
    )
    say(f"The ticket is in '{folder}': predict, serve, evaluate and update take that folder.")
