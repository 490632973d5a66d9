"""The longer answers of `fastglt show`: what a ticket costs, and what its masks have done."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fastglt.cli.shared.facts import histogram, short
from fastglt.cli.shared.tables import percent
from fastglt.cli.shared.tickets import refuse_users_model
from fastglt.report.tables import empty_table, print_text, print_wide

if TYPE_CHECKING:
    from torch import Tensor

    from fastglt.analysis.cost import Cost
    from fastglt.analysis.effects import GraphAnalysis, WeightAnalysis
    from fastglt.tasks import Task
    from fastglt.tickets.ticket import Ticket


def cost_facts(ticket: "Ticket", path: Path, task: "Task") -> dict[str, Any]:
    """The cost of the dense network on the whole graph, and of the ticket."""
    from fastglt.analysis.cost import count_macs, dense_file_bytes
    from fastglt.masks import Masks
    from fastglt.tickets.networks import restore_start

    refuse_users_model(ticket, "fastglt.analysis.count_macs")
    network, masks = restore_start(ticket, None)
    full = Masks.full(task.graph.num_edges, network.weight_shapes)
    return {
        "dense": count_macs(network, task, full),
        "ticket": count_macs(network, task, masks),
        "disk_dense": dense_file_bytes(network),
        "disk_ticket": path.stat().st_size,
    }


def analysis_facts(ticket: "Ticket", task: "Task", labels: "Tensor | None") -> dict[str, Any]:
    """The graph and the weights, before and after."""
    from fastglt.analysis.effects import describe_graph, describe_weights
    from fastglt.models import build_network

    own = not ticket.is_of_users_model  # nobody knows which matrix of a user's model feeds which
    operations = build_network(ticket.model).operations if own else ()
    return {
        "graph": describe_graph(task.graph, ticket.masks.edges, labels),
        "weights": describe_weights(ticket.masks.weights, operations),
    }


def print_more(facts: Mapping[str, Any]) -> None:
    """What was asked for, as tables."""
    console = Console()
    if "cost" in facts:
        _print_cost(facts["cost"], console)
    if "analysis" in facts:
        _print_graph(facts["analysis"]["graph"], console)
        _print_weights(facts["analysis"]["weights"], console)


def _print_cost(cost: Mapping[str, Any], console: Console) -> None:
    dense: Cost = cost["dense"]
    ticket: Cost = cost["ticket"]
    measures = {
        "parameters": "parameters",
        "MACs": "macs",
        "MACs as papers count": "macs_paper",
        "bytes moved": "bytes",
    }
    table = empty_table("layer", "operation", *measures, left=("layer", "operation"))
    lines = [(row.layer, row.kind, row, after) for row, after in zip(dense.rows, ticket.rows, strict=True)]
    for layer, kind, before, after in lines:
        table.add_row(layer, kind, *(_change(before, after, name) for name in measures.values()))
    table.add_section()
    table.add_row("in all", "", *(_change(dense, ticket, name) for name in measures.values()))
    print_wide("one forward pass over all nodes, dense → ticket", table, console)
    disk = f"{short(cost['disk_dense'])}B dense, {short(cost['disk_ticket'])}B ticket"
    edges = f"{dense.edges:,} → {ticket.edges:,} edges"
    print_text(f"{edges}; on disk {disk} (with its masks and the soft edge mask)", console)
    console.print()


def _change(before: object, after: object, name: str) -> str:
    values = short(getattr(before, name)), short(getattr(after, name))
    return "–" if values == ("0", "0") else " → ".join(values)


def _print_graph(graph: "GraphAnalysis", console: Console) -> None:
    table = empty_table("graph", "before", "after", left=("graph",))
    rows = {
        "edges": (graph.edges_before, graph.edges_after),
        "connected components": (graph.components_before, graph.components_after),
        "nodes in the largest": (graph.largest_before, graph.largest_after),
        "nodes without neighbours": (graph.isolated_before, graph.isolated_after),
    }
    for name, values in rows.items():
        table.add_row(name, *(f"{value:,}" for value in values))
    homophily = graph.homophily
    if homophily is not None:
        table.add_row("edges within a class", percent(homophily.whole), percent(homophily.kept))
    print_wide(f"the graph: {graph.nodes:,} nodes", table, console)
    if homophily is not None:
        print_text(
            f"Of the pruned edges {percent(homophily.pruned)} joined nodes of one class. "
            "(By the labels of all nodes, test nodes included: looked at here, never pruned by.)",
            console,
        )
        console.print()
    degrees = histogram("degree", {"before": graph.degree_before, "after": graph.degree_after})
    print_wide("neighbours of a node, share of nodes", degrees, console)


def _print_weights(weights: "WeightAnalysis", console: Console) -> None:
    headings = ("matrix", "shape", "kept", "removed", "empty rows", "empty columns")
    table = empty_table(*headings, left=("matrix",))
    for matrix in weights.matrices:
        table.add_row(
            matrix.name,
            "×".join(map(str, matrix.shape)),
            f"{matrix.kept:,}",
            percent(matrix.sparsity),
            f"{matrix.empty_rows:,}",
            f"{matrix.empty_columns:,}",
        )
    print_wide("the weights", table, console)
    if not weights.units:
        return
    table = empty_table("units", "all", "unreached", "unused", "dead", left=("units",))
    for units in weights.units:
        ends = ("–" if count is None else f"{count:,}" for count in (units.unreached, units.unused))
        table.add_row(units.name, f"{units.size:,}", *ends, f"{units.dead:,}")
    print_wide("units that no kept weight reaches, or uses", table, console)
