"""From a ticket to a predictor: weights that are gone are gone, and what is left is stored as it runs fastest."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from fastglt.deploy.layouts import fastest
from fastglt.deploy.predictor import Predictor
from fastglt.deploy.programs import Program
from fastglt.features import Features
from fastglt.fitting import restore_start
from fastglt.graph import Graph
from fastglt.models import PyGNetwork
from fastglt.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


def compile_ticket(
    ticket: Ticket,
    data: "Data",
    model: nn.Module | None = None,
    *,
    layout: str = "fastest",
    other_graph: bool = False,
    device: str | torch.device = "cpu",
) -> Predictor:
    """A predictor that gives what the ticket's trained network gives on its pruned graph, faster.

    `model` is the user's model that the ticket was found with, if it is none of ours: it runs as it is, with the
    ticket's weights on the smaller graph. `layout` "fastest" tries a few out on these very numbers; a name from an
    earlier predictor's `layouts` is taken without trials.
    """
    graph, x = Graph.from_data(data), Features(data.x.detach().float())
    return compile_for(ticket, graph.to(device), x.to(device), model, layout=layout, other_graph=other_graph)


def compile_for(
    ticket: Ticket,
    graph: Graph,
    x: Features,
    model: nn.Module | None = None,
    *,
    layout: str = "fastest",
    other_graph: bool = False,
) -> Predictor:
    """The same for a graph and features that are prepared already."""
    ticket.check_graph(graph, x, other_graph=other_graph)
    network, masks = restore_start(ticket, model)
    prefix = PyGNetwork.PREFIX if isinstance(network, PyGNetwork) else ""
    network.load_state_dict({prefix + name: value for name, value in ticket.weights.items()})
    network = network.to(x.device).eval().requires_grad_(False)
    pruned = graph.prune(masks.edges).alone()
    score = None if ticket.edge_scores is None else ticket.edge_scores.to(x.device)
    program = Program.of(network)
    if program is None:
        return Predictor(network=network, graph=pruned, x=x, score=score, program=None)
    layouts: list[str] = []
    trials: dict[str, float] = {}
    for number, matrix in enumerate(program.matrices, start=1):
        if layout == "fastest":
            name, spent = fastest(x, matrix)
            layouts.append(name)
            trials |= {f"matrix {number}, {key}": value for key, value in spent.items()}
        else:
            layouts.append(layout)
    found = Predictor(
        network=network,
        graph=pruned,
        x=x,
        score=score,
        program=program,
        layouts=tuple(layouts),
        trials=trials or None,
    )
    found.prepare()
    return found
