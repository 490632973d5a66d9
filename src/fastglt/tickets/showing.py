"""A ticket for people: in a notebook as a table, and as pictures."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from fastglt.errors import InputError
from fastglt.report.charts import Picture
from fastglt.report.charts.drawing import Drawn
from fastglt.report.charts.training import training_curves
from fastglt.report.notebook import facts
from fastglt.report.wording import percent, phase_title
from fastglt.tasks.metrics import title_of
from fastglt.tickets.seen import classes_in, seen_in
from fastglt.tickets.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


def as_html(ticket: Ticket) -> str:
    """What it keeps and how it scored."""
    masks = ticket.masks
    kept = {
        "edges": (masks.edges.count, masks.edges.size, masks.graph_sparsity),
        "weights": (masks.weights_kept, masks.weights_total, masks.weight_sparsity),
    }
    values = {
        "model": str(ticket.model["name"]),
        "method": f"{ticket.config['method']}, seed {ticket.seed}",
        **{name: f"{count:,} of {size:,} (−{percent(gone)} %)" for name, (count, size, gone) in kept.items()},
        **{f"{phase_title(name)} {_metric(ticket)}": f"{percent(v)} %" for name, v in ticket.scores.items()},
    }
    return facts("a graph lottery ticket", values)


def search_picture(ticket: Ticket) -> Picture:
    """Its search; refused where the file is of 0.1 and has none."""
    if not ticket.history:
        raise InputError("a search can be drawn if the ticket has its history (got one of 0.1, without); pass data")
    history = [asdict(record) for record in ticket.history]
    return training_curves(history, metric=_metric(ticket), title=f"{_name(ticket)}: the search")


def graph_picture(ticket: Ticket, data: "Data") -> Picture:
    """Its graph, or a part of it, with kept and pruned edges."""
    graph, _, labels = seen_in(ticket, data)
    ticket.check_graph(graph, None)
    classes = classes_in(labels, graph.num_nodes)
    drawn = Drawn(
        edges=graph.edges.cpu().numpy(),
        kept=ticket.masks.edges.kept.cpu().numpy(),
        nodes=graph.num_nodes,
        groups=None if classes is None else [f"class {label}" for label in classes.tolist()],
    )
    return drawn.picture(title=f"{_name(ticket)}: the graph")


def _metric(ticket: Ticket) -> str:
    return title_of(ticket.config["metric"])


def _name(ticket: Ticket) -> str:
    return f"{ticket.model['name']} · {ticket.config['method']} · seed {ticket.seed}"
