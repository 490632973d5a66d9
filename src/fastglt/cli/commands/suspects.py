"""`fastglt suspects`: every edge ranked by how likely it is that somebody has added it."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.progress import Notes
from fastglt.cli.shared.tickets import OwnGraph, open_ticket, refuse_users_model, task_of
from fastglt.errors import InputError, require
from fastglt.report.tables import say

if TYPE_CHECKING:
    from torch import Tensor

    from fastglt.data import Dataset
    from fastglt.suspects import EdgeRanking
    from fastglt.tasks import Task
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt suspects --dataset poisoned:cora,meta=0.25[/] (which edges were added?) · "
    "[bold]fastglt suspects --dataset my.npz --csv all.csv --clean cleaned.npz[/] (without those) · "
    "[bold]fastglt suspects --ticket runs/a --share 0.05[/] (by a ticket's predictions; the worst 5 %) · "
    "[bold]fastglt find --dataset my.npz --method forest --robust --graph-sparsity 0.15[/] "
    "(a ticket that removes suspects first)"
)


@gather
def suspects(
    graph: OwnGraph,
    ticket: Annotated[
        Path | None,
        typer.Option(help="A ticket file or a run's folder: judge by its predictions, and say what it keeps."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write every edge, its suspicion and what it was judged by.")
    ] = None,
    clean: Annotated[
        Path | None, typer.Option(help="Write the graph without the suspects to a .npz file that --dataset reads.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="How many edges are suspects (default: as many as were probably added).")
    ] = None,
    share: Annotated[float | None, typer.Option(help="The same as a share of all edges, in [0, 1].")] = None,
    rows: Annotated[int, typer.Option(help="Of the table.")] = 10,
    excess: Annotated[
        bool | None,
        typer.Option(
            help="Whether it counts that labelled nodes have more edges than others, which is where training is "
            "poisoned (default: if a quarter of the nodes or less is labelled)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed (networks, pairs that stand for added edges).")] = 0,
    epochs: Annotated[int, typer.Option(help="Of each of the small networks that predict classes.")] = 100,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="How often edges are ranked, each time by what is left (default: 2; none with --ticket)."
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="0: all cores.")] = 0,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Rank every edge by how likely it is that somebody has added it to harm a network.

    Edges of the graph are told from pairs that are no edges by common features, common neighbours, how a node's
    features fit the other's neighbours and how far predicted classes agree; labelled nodes that have too many edges
    make theirs more suspicious. Labels of test nodes are not used. A clean graph has unusual edges too: suspicion
    is a reason to look, not a proof.
    """
    from fastglt.runs.experiment import use_machine
    from fastglt.suspects import rank_task_edges

    _check(csv, clean, count=count, share=share, rows=rows)
    if ticket is not None and rounds is not None:
        rule = "--rounds must come without --ticket, whose predictions stand for those of later rounds"
        raise InputError(f"{rule} (got both); leave one out")
    use_machine(threads)
    dataset, task, found, name = _loaded(graph, ticket)
    with Notes(f"ranking {task.graph.num_edges:,} edges", quiet=quiet) as notes:
        shares = _shares(found, task)
        ranking = rank_task_edges(
            task, seed=seed, epochs=epochs, rounds=rounds, excess=excess, shares=shares, tell=notes.tell
        )
    chosen = _chosen(ranking, count, share)
    kept = None if found is None else found.masks.edges.kept
    facts = _facts(dataset, ranking, chosen, kept)
    if csv is not None:
        _write_csv(csv, ranking, kept, dataset)
        facts["csv"] = str(csv)
    if clean is not None:
        _write_clean(clean, dataset, task, ranking.worst(chosen))
        facts["clean"] = str(clean)
    if json_output:
        worst = [_row(ranking, edge) for edge in ranking.order[:rows].tolist()]
        typer.echo(json.dumps({**facts, "worst": worst}))
    else:
        _print(ranking, facts, rows, dataset)
        if clean is None:
            _tell_remedies(name, graph, facts["share"])


def _check(csv: Path | None, clean: Path | None, *, count: int | None, share: float | None, rows: int) -> None:
    for path, suffix in ((csv, ".csv"), (clean, ".npz")):
        if path is not None and path.suffix.lower() != suffix:
            raise InputError(f"--{suffix[1:] if suffix == '.csv' else 'clean'} must end in {suffix} (got '{path}')")
    if count is not None and share is not None:
        raise InputError(f"--count and --share say the same (got {count} and {share}); leave one out")
    require("not be negative", count=count or 0, rows=rows)
    require("lie in [0, 1]", share=share or 0.0)


def _loaded(graph: OwnGraph, ticket: Path | None) -> "tuple[Dataset, Task, Ticket | None, str]":
    """The graph that was named, or the ticket's; and what it is called on a command line."""
    from fastglt.data import load
    from fastglt.tasks.node_classification import NodeClassification

    if ticket is not None:
        found, file = open_ticket(ticket)
        refuse_users_model(found, "fastglt.rank_edges(data, ticket=ticket, model=model)")
        found.require_nothing_hidden("asked for suspects")
        dataset = graph.load(file)
        return dataset, task_of(found, dataset), found, graph.place(file)[0]
    if graph.dataset is None:
        raise InputError("a graph must be named (got neither --dataset nor --ticket); such as --dataset cora")
    dataset = load(graph.dataset, root=graph.data_root, split_seed=graph.split_seed or 0, directed=graph.directed)
    if dataset.tensors.get("y") is None or dataset.tensors["y"].dim() != 1:
        raise InputError(f"edges are ranked by what classes nodes have (got '{dataset.name}', which has none)")
    task = NodeClassification.from_tensors(dataset.tensors, **dataset.direction)
    return dataset, task, None, graph.dataset


def _shares(ticket: "Ticket | None", task: "Task") -> "Tensor | None":
    from fastglt.analysis.suspects import ticket_shares

    return None if ticket is None else ticket_shares(ticket, task)


def _chosen(ranking: "EdgeRanking", count: int | None, share: float | None) -> int:
    edges = ranking.edges.shape[1]
    if count is not None and count > edges:
        raise InputError(f"--count must not exceed the graph's {edges} edges (got {count})")
    return round(share * edges) if share is not None else ranking.count if count is None else count


def _facts(dataset: "Dataset", ranking: "EdgeRanking", chosen: int, kept: "Tensor | None") -> dict[str, Any]:
    """What is told besides the table."""
    edges = ranking.edges.shape[1]
    facts = {
        "dataset": dataset.name,
        "edges": edges,
        "expected": ranking.expected,
        "share": ranking.share,
        "suspects": chosen,
        "weights": ranking.weights,
    }
    if kept is not None:
        facts["suspects_in_ticket"] = int((ranking.worst(chosen) & kept.cpu()).sum())
    return facts


def _row(ranking: "EdgeRanking", edge: int) -> dict[str, Any]:
    from fastglt.suspects.reasons import reasons

    source, target = ranking.edges[:, edge].tolist()
    suspicion = float(ranking.suspicion[edge])
    return {"source": source, "target": target, "suspicion": suspicion, "reasons": reasons(ranking, edge)}


def _write_csv(path: Path, ranking: "EdgeRanking", kept: "Tensor | None", dataset: "Dataset") -> None:
    """Every edge, the most suspicious first; nodes are called as in their file."""
    from fastglt.system.storage import write_atomically

    columns = {"suspicion": ranking.suspicion, **ranking.components}
    if kept is not None:
        columns["kept"] = kept.cpu().int()
    values = [column[ranking.order].tolist() for column in columns.values()]
    names = dataset.names and dataset.names.nodes
    ends = [[_called(node, names) for node in end[ranking.order].tolist()] for end in ranking.edges]
    lines = [",".join(["source", "target", *columns])]
    lines += [
        ",".join([*pair, *(f"{value:.6g}" for value in row)])
        for pair, *row in zip(zip(*ends, strict=True), *values, strict=True)
    ]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _called(node: int, names: Any) -> str:
    """A node's number, or its name as a CSV file quotes it."""
    if not names:
        return str(node)
    name = str(names[node])
    return '"' + name.replace('"', '""') + '"' if any(sign in name for sign in ',"\n\r') else name


def _write_clean(path: Path, dataset: "Dataset", task: "Task", suspects: "Tensor") -> None:
    """The dataset without its suspects; all else as it was."""
    from fastglt.data.npz_writer import npz_bytes
    from fastglt.masks import Mask
    from fastglt.system.storage import write_atomically

    left = task.graph.prune(Mask(~suspects))
    tensors = {**dataset.tensors, "edge_index": left.edge_index}
    for name in ("edge_weight", "edge_attr"):
        tensors.pop(name, None)
        if (value := getattr(left, name)) is not None:
            tensors[name] = value
    write_atomically(path, npz_bytes(tensors))


def _print(ranking: "EdgeRanking", facts: dict[str, Any], rows: int, dataset: "Dataset") -> None:
    from rich.console import Console

    from fastglt.report.tables import empty_table, print_table, print_text

    console = Console()
    print_text(
        f"{facts['dataset']}: {facts['edges']:,} edges, of which about {facts['expected']:,.0f} "
        f"({100 * facts['share']:.1f} %) were probably added",
        console,
    )
    names = dataset.names and dataset.names.nodes
    table = empty_table("edge", "suspicion", "reasons", left=("edge", "reasons"))
    for edge in ranking.order[:rows].tolist():
        row = _row(ranking, edge)
        ends = [str(names[node]) if names else str(node) for node in (row["source"], row["target"])]
        why = row["reasons"][:2] + ["…"] * (len(row["reasons"]) > 2)
        table.add_row(" – ".join(ends), f"{row['suspicion']:.3f}", ", ".join(why) or "nothing in particular")
    if rows:
        print_table(table, console)
    for line in _more(facts):
        print_text(line, console)


def _more(facts: dict[str, Any]) -> list[str]:
    lines = []
    if "suspects_in_ticket" in facts:
        lines.append(f"The ticket keeps {facts['suspects_in_ticket']:,} of the {facts['suspects']:,} suspects.")
    if "csv" in facts:
        lines.append(f"Every edge: {facts['csv']}")
    if "clean" in facts:
        left = facts["edges"] - facts["suspects"]
        lines.append(f"Without {facts['suspects']:,} suspects, {left:,} edges: {facts['clean']}")
    return lines


def _tell_remedies(name: str, graph: OwnGraph, share: float) -> None:
    """What to do about them; a command stands in a line of its own."""
    words = ["fastglt", "find", "--dataset", name, *["--directed"] * graph.directed]
    words += [] if graph.split_seed is None else ["--split-seed", str(graph.split_seed)]
    words += ["--method", "forest", "--robust", "--graph-sparsity", f"{share:.4f}"]
    say("--clean out.npz writes the graph without them. This finds a ticket that removes them:")
    say(shlex.join(words))
