"""`fastglt federated`: clients hold parts of a graph, and only a ticket's weights travel."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import LONG, RUN, WHAT
from fastglt.cli.shared.options import asked_for
from fastglt.errors import InputError, require, unknown_name
from fastglt.report.tables import say
from fastglt.report.wording import percent

if TYPE_CHECKING:
    from fastglt.federated.job import Job
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt federated --dataset cora --clients 10[/] · "
    "[bold]fastglt federated --dataset cora --weight-sparsity 0 --server average[/] (dense FedAvg) · "
    "[bold]fastglt federated --dataset cora --vanish 3:20 --alone[/] (client 3 is gone after round 20) · "
    "[bold]fastglt federated --dataset cora --rounds 10 --engine flower[/] (real processes over loopback)"
)
ENGINES = ("local", "flower")
TOGETHER = "Federation"


def federated(
    context: typer.Context,
    dataset: arguments.Dataset = "cora",
    model: arguments.Model = "gcn",
    hidden: Annotated[int, typer.Option(help="Width of the hidden layer.", rich_help_panel=WHAT)] = 64,
    weight_sparsity: Annotated[
        float,
        typer.Option(help="Share of the weights that go; 0: dense training.", rich_help_panel=WHAT),
    ] = 0.95,
    split_seed: arguments.SplitSeed = 0,
    clients: Annotated[int, typer.Option(help="Each holds a part of the graph.", rich_help_panel=TOGETHER)] = 10,
    parts: Annotated[
        str,
        typer.Option(
            help="How nodes are shared out: metis (few edges between parts; needs the extra), or random.",
            rich_help_panel=TOGETHER,
        ),
    ] = "metis",
    agreement: Annotated[
        str,
        typer.Option(
            help="Whose mask it is: server (what all have moved on average), vote (of the clients' own masks), or "
            "union (of these, less sparse).",
            rich_help_panel=TOGETHER,
        ),
    ] = "server",
    server: Annotated[
        str,
        typer.Option(
            help="adam: the server takes Adam's step along the mean of what clients moved; average: FedAvg.",
            rich_help_panel=TOGETHER,
        ),
    ] = "adam",
    vanish: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLIENT:ROUND",
            help="A client that is gone after a round, to see what that does; as often as needed.",
            rich_help_panel=TOGETHER,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Who carries the messages: local (clients in this process, the same bytes), or flower "
            "(a SuperLink and a SuperNode for each client, processes of their own; needs the extra).",
            rich_help_panel=TOGETHER,
        ),
    ] = "local",
    patience: Annotated[
        float,
        typer.Option(help="Seconds until a client of --engine flower counts as gone.", rich_help_panel=TOGETHER),
    ] = 120.0,
    rounds: Annotated[int, typer.Option(help="Weights go out and come back in each.", rich_help_panel=LONG)] = 100,
    warmup: Annotated[
        int, typer.Option(help="Rounds with all weights, before the mask is agreed on.", rich_help_panel=LONG)
    ] = 2,
    local_epochs: Annotated[int, typer.Option(help="Of a client in a round.", rich_help_panel=LONG)] = 1,
    lr: Annotated[float, typer.Option(help="Adam's learning rate.", rich_help_panel=LONG)] = 0.03,
    weight_decay: Annotated[float, typer.Option(help="Of the weights.", rich_help_panel=LONG)] = 5e-4,
    seed: Annotated[
        int, typer.Option(help="Random seed (initial weights, parts, dropout).", rich_help_panel=WHAT)
    ] = 0,
    alone: Annotated[
        bool,
        typer.Option("--alone", help="Also train each client alone, to compare.", rich_help_panel=TOGETHER),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for ticket.safetensors and rounds.json (default: runs/ and what it is).",
            rich_help_panel=RUN,
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 1,
    data_root: arguments.DataRoot = None,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Train a ticket over clients that each hold a part of a graph; only kept weights travel.

    A few warm-up rounds send all weights. Then server and clients agree on one mask, it is sent once, a bit for
    each weight, and from there on the kept weights alone go to and fro. A client that does not answer, or
    sends NaN, a wrong shape or another mask, is left out of the round and named. The round that is best on
    the clients' validation nodes gives the ticket, an ordinary one of the whole graph with all its edges.
    Edges between parts are nobody's while it is trained. Told are bytes up and down, the score of each
    client on its own part and that on the whole graph.
    """
    from fastglt.federated.job import Job
    from fastglt.federated.plan import Plan
    from fastglt.runs.experiment import use_machine

    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    require("be positive", patience=patience)
    if engine == "local" and "patience" in asked_for(context):
        raise InputError(f"--patience must come with --engine flower (got {patience:g} with local); leave it out")
    plan = Plan(
        clients=clients,
        parts=parts,
        rounds=rounds,
        warmup=0 if weight_sparsity == 0 else warmup,
        local_epochs=local_epochs,
        weight_sparsity=weight_sparsity,
        agreement=agreement,
        server=server,
        lr=lr,
        weight_decay=weight_decay,
        seed=seed,
    )
    gone = [_vanished(text, plan.clients, plan.rounds) for text in vanish or []]
    root = None if data_root is None else str(data_root)
    shared: dict[str, Any] = {"model": model, "hidden": hidden, "split_seed": split_seed, "data_root": root}
    job = Job(dataset=dataset, plan=plan, **shared)
    use_machine(threads)
    folder = _folder(job, out)
    run = _run_flower if engine == "flower" else _run_local
    document = run(job, folder, gone, quiet=quiet, patience=patience)
    if alone:
        document["alone"] = job.federation().alone()
    if json_output:
        typer.echo(json.dumps(document))
    else:
        _print(document, folder)


def _vanished(text: str, clients: int, rounds: int) -> tuple[int, int]:
    """A client and the last round that it takes part in."""
    client, colon, last = text.partition(":")
    if not (colon and client.isdecimal() and last.isdecimal()):
        raise InputError(f"--vanish must be CLIENT:ROUND, as in 3:20 (got '{text}')")
    if int(client) >= clients or not 1 <= int(last) <= rounds:
        rule = f"--vanish must name a client from 0 to {clients - 1} and a round from 1 to {rounds}"
        raise InputError(f"{rule} (got '{text}')")
    return int(client), int(last)


def _folder(job: "Job", out: Path | None) -> Path:
    """Where the ticket goes; nothing that is there already is overwritten."""
    from fastglt.runs.run_folder import settings_digest
    from fastglt.system.storage import as_file_name

    settings = {name: value for name, value in job.settings.items() if name != "data_root"}
    place = out or Path("runs") / f"federated-{as_file_name(job.dataset)}-{job.model}-{settings_digest(settings)}"
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"the folder must be new or empty (got '{place}'); remove it, or choose another --out")
    return place


def _run_local(
    job: "Job", folder: Path, gone: list[tuple[int, int]], *, quiet: bool, patience: float
) -> dict[str, Any]:
    """All clients in this process."""
    from fastglt.federated.rounds import InProcess
    from fastglt.federated.server import Round

    federation, told = job.federation(), list[dict[str, Any]]()
    left = {(number, client): _nothing for client, last in gone for number in range(last + 1, job.plan.rounds + 2)}
    carrier = InProcess(members=federation.members(), faults=left)

    def note(done: Round) -> None:
        told.append(done.facts)
        _tell(done.facts, job.plan.rounds, quiet=quiet)

    found = federation.run(carrier, note)
    _keep(found.ticket.with_config(federated_test=found.on_parts), told, job, folder)
    return _document(found.ticket, found.on_parts, told)


def _nothing(reply: bytes) -> None:
    """What comes from a client that is gone."""


def _run_flower(
    job: "Job", folder: Path, gone: list[tuple[int, int]], *, quiet: bool, patience: float
) -> dict[str, Any]:
    """Flower's processes on this machine."""
    from fastglt.federated.launch import Loopback
    from fastglt.tickets.ticket_file import load

    def note(done: dict[str, Any]) -> None:
        _tell(done, job.plan.rounds, quiet=quiet)

    told = Loopback(job=job, out=folder, patience=patience).run(note, killed=gone)
    ticket = load(folder / "ticket.safetensors")
    _keep(ticket, told, job, folder)
    return _document(ticket, float(ticket.config["federated_test"]), told)


def _keep(ticket: "Ticket", told: list[dict[str, Any]], job: "Job", folder: Path) -> None:
    """The ticket, what each round has cost, and which graph it is for, as other commands look for it."""
    from fastglt.data.origin import Origin
    from fastglt.runs.run_folder import RunFolder
    from fastglt.system.storage import write_atomically

    origin = Origin.of(job.dataset, directed=False)
    settings = {name: value for name, value in job.settings.items() if name != "data_root"}
    run = RunFolder(folder, {**settings, "method": "federated"}, origin=origin)
    for name in ("ticket.safetensors", "rounds.json"):
        (folder / name).unlink(missing_ok=True)
    with run.open():
        ticket.save(folder / "ticket.safetensors")
        write_atomically(folder / "rounds.json", (json.dumps(told) + "\n").encode())


def _document(ticket: "Ticket", on_parts: float, told: list[dict[str, Any]]) -> dict[str, Any]:
    from fastglt.system.container import nan_as_null

    up, down = (sum(one[way] for one in told) for way in ("up", "down"))
    found: dict[str, Any] = nan_as_null(
        {
            "weight_sparsity": ticket.weight_sparsity,
            "weights_kept": ticket.masks.weights_kept,
            "weights_total": ticket.masks.weights_total,
            "rounds": len(told) - 1,
            "test_on_parts": on_parts,
            "test_on_whole": ticket.scores["search_test"],
            "bytes_up": up,
            "bytes_down": down,
            "bytes_first_round": told[0]["up"] + told[0]["down"],
            "bytes_last_round": told[-2]["up"] + told[-2]["down"],
        }
    )
    return {**found, "left_out": {str(one["number"]): one["left_out"] for one in told if one["left_out"]}}


def _tell(done: dict[str, Any], rounds: int, *, quiet: bool) -> None:
    """A line now and then; whoever is left out is named in every such line."""
    number = done["number"]
    if quiet or number > rounds or not (number in (1, rounds) or number % max(1, rounds // 10) == 0):
        return
    size = _size(done["up"] + done["down"])
    note = f"round {number}/{rounds}: validation {percent(done['scores']['val'])}, {size}"
    if done["left_out"]:
        note += "; left out: " + ", ".join(f"client {who} ({why})" for who, why in done["left_out"].items())
    say(note, err=True)


_SIZES = ("up", "down", "first_round", "last_round")


def _size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e6:.2f} MB" if count >= 1e5 else f"{count / 1e3:.1f} KB"


def _print(document: dict[str, Any], folder: Path) -> None:
    kept, total = document["weights_kept"], document["weights_total"]
    say(f"Kept: {kept:,} of {total:,} weights, all edges.")
    say(
        f"Test: {percent(document['test_on_parts'])} on the clients' own parts, "
        f"{percent(document['test_on_whole'])} on the whole graph."
    )
    if "alone" in document:
        say(f"Each client alone, on its own part: {percent(document['alone']['pooled'])}.")
    up, down, first, last = (_size(document[f"bytes_{what}"]) for what in _SIZES)
    say(f"Sent: {up} up, {down} down; {first} in the first round, {last} in the last.")
    names = sorted({client for left in document["left_out"].values() for client in left}, key=int)
    if names:
        count = len(document["left_out"])
        say(f"Left out of {count} rounds: client {', '.join(names)}; rounds.json has the reasons.")
    say(f"The ticket is in '{folder}': show, predict, serve and evaluate take that folder.")
