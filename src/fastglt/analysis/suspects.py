"""Which edges of a graph look as if somebody had added them."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.suspects import EdgeRanking, rank_task_edges
from fastglt.suspects.ranking import EPOCHS, Tell, refuse_rounds
from fastglt.system.modes import ordinary_mode
from fastglt.tasks import Task, make_task
from fastglt.tickets.networks import restore_trained
from fastglt.tickets.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


@ordinary_mode()
def rank_edges(
    data: "Data",
    *,
    ticket: Ticket | None = None,
    model: nn.Module | str | None = None,
    seed: int = 0,
    epochs: int = EPOCHS,
    rounds: int | None = None,
    excess: bool | None = None,
    directed: bool | None = None,
    progress: Tell | None = None,
) -> EdgeRanking:
    """Rank every edge by how likely it is that somebody has added it.

    >>> import fastglt
    >>> ranking = fastglt.rank_edges(data)  # doctest: +SKIP
    >>> ranking.count, ranking.edges[:, ranking.order[:10]]  # doctest: +SKIP

    Args:
        data: A PyG `Data` with x, edge_index, y and the masks of a split. Test labels are not looked at.
        ticket: A ticket on this graph, whose network's predictions are taken instead of those of networks that are
            trained here along the edges that are left.
        model: The ticket's model, if it is your own.
        seed: Random seed (networks, pairs that stand for added edges).
        epochs: How long each network is trained.
        rounds: How often edges are ranked; from the second round on by what is left of the graph (default: 2).
            With a ticket there is one.
        excess: Whether it counts that labelled nodes have more edges than others (default: if at most a quarter of
            the nodes is labelled). It needs labelled nodes that were drawn without regard to their edges.
        directed: As of `find_ticket`.
        progress: Is called with what is being done.
    """
    refuse_rounds(rounds, beside_ticket=ticket is not None)
    task = make_task("node-classification", data, directed=directed)
    shares = None if ticket is None else ticket_shares(ticket, task, model)
    return rank_task_edges(
        task, seed=seed, epochs=epochs, rounds=rounds, excess=excess, shares=shares, tell=progress
    )


def ticket_shares(ticket: Ticket, task: Task, model: nn.Module | str | None = None) -> Tensor:
    """The class probabilities of all nodes by a ticket's trained network, on its pruned graph."""
    ticket.require_nothing_hidden("asked for suspects")
    if task.graph.fingerprint != ticket.graph_fingerprint:
        raise InputError("the ticket must be of the graph that is ranked (got one of another graph)")
    network, masks = restore_trained(ticket, model)
    graph = task.graph.prune(masks.edges)
    with torch.no_grad():
        outputs = network.to(task.device).eval()(task.x, graph, ticket.soft_edge_mask, None)
    return task.distribution(outputs)
