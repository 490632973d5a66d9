"""`fastglt diff`: two tickets side by side, and what one prunes that the other keeps."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.tickets import OwnGraph, names_graph, open_ticket, task_of

if TYPE_CHECKING:
    from fastglt.analysis.difference import Difference, Overlap
    from fastglt.tasks import Task
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt diff runs/fastglt runs/oneshot[/] · "
    "[bold]fastglt diff a.safetensors b.safetensors --dataset cora --json[/]"
)


@gather
def diff(
    a: Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.", metavar="A")],
    b: Annotated[
        Path, typer.Argument(help="Another one on the same graph, of the same model, or both.", metavar="B")
    ],
    graph: OwnGraph,
    json_output: arguments.AsJson = False,
    wide: arguments.Wide = False,
) -> None:
    """Compare two tickets: how far their masks are apart, against chance, and what one prunes that the other keeps.

    Of the latter: degrees of edges, and gradients of edges and weights at A's Θ0 (training loss, dense network).
    """
    from fastglt.analysis.difference import compare_tickets

    (first, file), (second, other) = open_ticket(a), open_ticket(b)
    found = compare_tickets(first, second)
    known = file if found.edges is None or names_graph(file) else other  # whose run.json names A's graph
    notes, groups = _notes(first, found), {}
    if graph.dataset is None and not names_graph(known):
        notes.append("No run.json names A's graph: pass --dataset for degrees and gradients.")
    else:
        task = task_of(first, graph.load(known))
        groups = _groups(first, second, found, task)
    if json_output:
        from fastglt.cli.shared.facts import as_document

        sides = {"a": _side(first, file), "b": _side(second, other)}
        unknown = dict.fromkeys(("edge_degree", "edge_gradient", "weight_gradient"))
        typer.echo(json.dumps(as_document({**sides, **as_document(found), **unknown, **groups, "notes": notes})))
    else:
        _print(first, second, found, groups, notes)


def _groups(a: "Ticket", b: "Ticket", found: "Difference", task: "Task") -> dict[str, Any]:
    """The paper's motivation figure, as far as the two tickets have it in common."""
    from fastglt.analysis import difference
    from fastglt.tickets.networks import restore_start

    groups = {}
    if found.edges is not None:
        groups["edge_degree"] = difference.edge_degree_groups(a.masks, b.masks, task)
    if not a.is_of_users_model:
        gradients = difference.start_gradients(restore_start(a, None)[0], task)
        if found.edges is not None:
            groups["edge_gradient"] = difference.edge_gradient_groups(a.masks, b.masks, gradients)
        if found.weights is not None:
            groups["weight_gradient"] = difference.weight_gradient_groups(a.masks, b.masks, gradients)
    return groups


def _notes(a: "Ticket", found: "Difference") -> list[str]:
    notes = []
    if found.edges is None:
        notes.append("The tickets are on different graphs: only their weights are compared.")
    if found.weights is None:
        notes.append("The tickets belong to models of different shapes: only their edges are compared.")
    elif not found.same_start:
        notes.append("The tickets started from different Θ0: weights are compared by their places alone.")
    if a.is_of_users_model:
        notes.append("Gradients of a user's model need that model: fastglt.analysis.difference in Python.")
    return notes


def _side(ticket: "Ticket", path: Path) -> dict[str, Any]:
    return {
        "ticket": str(path),
        "method": ticket.config["method"],
        "model": ticket.model["name"],
        "seed": ticket.seed,
        "graph_sparsity": ticket.graph_sparsity,
        "weight_sparsity": ticket.weight_sparsity,
    }


def _print(a: "Ticket", b: "Ticket", found: "Difference", groups: dict[str, Any], notes: list[str]) -> None:
    from rich.console import Console

    from fastglt.cli.shared.facts import histogram
    from fastglt.report.tables import print_text, print_wide

    console = Console()
    names = [f"{name} = {ticket.config['method']}, seed {ticket.seed}" for name, ticket in (("A", a), ("B", b))]
    print_wide(f"two tickets: {', '.join(names)}", _overlaps(found), console)
    titles = {
        "edge_degree": ("degree", "edge degree in the whole graph, share of the edges that … prune"),
        "edge_gradient": ("gradient", "gradient at Θ0, share of the edges that … prune"),
        "weight_gradient": ("gradient", "gradient at Θ0, share of the weights that … prune"),
    }
    for name, group in groups.items():
        what, title = titles[name]
        columns = {"only A": group.only_a, "only B": group.only_b, "both": group.both, "neither": group.neither}
        print_wide(title, histogram(what, columns), console)
    for note in notes:
        print_text(note, console)


def _overlaps(found: "Difference") -> Any:
    from fastglt.report.tables import empty_table

    table = empty_table(
        *(
            "",
            "of",
            "A prunes",
            "B prunes",
            "both",
            "differ",
            "by chance",
            "agreement",
            "pruned alike",
            "kept alike",
        ),
        left=("",),
    )
    parts: dict[str, Overlap | None] = {"edges": found.edges, "weights": found.weights, **found.matrices}
    for name, part in parts.items():
        if part is not None:
            table.add_row(name, *_cells(part))
    return table


def _cells(part: "Overlap") -> list[str]:
    def share(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f} %"

    counts = (part.size, part.pruned_a, part.pruned_b, part.pruned_both)
    return [
        *(f"{count:,}" for count in counts),
        f"{part.hamming:,} ({share(part.hamming_share)})",
        f"{part.chance_hamming:,.0f}",
        "–" if part.agreement is None else f"{part.agreement:.3f}",
        f"{share(part.jaccard_pruned)} ({share(part.chance_jaccard_pruned)})",
        f"{share(part.jaccard_kept)} ({share(part.chance_jaccard_kept)})",
    ]
