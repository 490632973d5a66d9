"""From a ticket to a predictor: weights that are gone are gone, and what is left is stored as it runs fastest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fastglt.deploy.compact import compact, plain_layers
from fastglt.deploy.layouts import WHOLE_ROWS, fastest, for_each, in_order
from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.inputs import LABELS
from fastglt.models.base import Network
from fastglt.models.programs import Program
from fastglt.system.modes import ordinary_mode
from fastglt.tasks.inputs import check_kind, features_of
from fastglt.tickets.networks import restore_trained
from fastglt.tickets.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


@ordinary_mode()
def compile_ticket(
    ticket: Ticket,
    data: "Data",
    model: nn.Module | None = None,
    *,
    layout: str | Sequence[str] = "fastest",
    other_graph: bool = False,
    device: str | torch.device = "cpu",
) -> Predictor:
    """A predictor that gives what the ticket's trained network gives on its pruned graph, faster.

    >>> import fastglt
    >>> fast = fastglt.compile_ticket(ticket, data)  # doctest: +SKIP
    >>> fast.predict([0, 5])  # the classes of two nodes  # doctest: +SKIP

    A user's model runs on the smaller graph, its linear layers with what is left of their weights; so does a
    backbone that has no program.

    Args:
        ticket: The ticket.
        data: The data that it was found on.
        model: The user's model that it was found with, if it is none of ours.
        layout: "fastest" tries a few out on these very numbers; an earlier predictor's `layouts`, or one name for
            all of them, are taken without trials.
        other_graph: Whether a graph that is not the ticket's own is let in.
        device: cpu, cuda, ….
    """
    ticket.require_nothing_hidden("compiled")
    check_kind(data)
    x = Features(features_of(data).clone())
    graph = Graph.from_data(ticket.message_data(data), directed=ticket.directed)
    return compile_for(
        ticket,
        graph.to(device),
        x.to(device),
        model,
        layout=layout,
        other_graph=other_graph,
        labels=labels_in(data.to_dict()),
    )


def labels_in(tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    """What data has of labels and split: y and the three masks."""
    found = {name: tensors.get(name) for name in LABELS}
    return {name: value.detach().cpu() for name, value in found.items() if isinstance(value, Tensor)}


def compile_for(
    ticket: Ticket,
    graph: Graph,
    x: Features,
    model: nn.Module | None = None,
    *,
    layout: str | Sequence[str] = "fastest",
    other_graph: bool = False,
    labels: Mapping[str, Tensor] | None = None,
) -> Predictor:
    """`compile_ticket` for a graph and features that are prepared already; `labels` is what an export hands on."""
    _check_features(ticket, x)
    ticket.check_graph(graph, x, other_graph=other_graph)
    network, masks = restore_trained(ticket, model)
    network = network.to(x.device).eval().requires_grad_(False)
    pruned = graph.prune(masks.edges).alone()
    found = compile_network(network, pruned, x, ticket.soft_edge_mask, layout=layout)
    return replace(found, task=ticket.task, labels=labels or {})


def compile_network(
    network: Network,
    graph: Graph,
    x: Features,
    score: Tensor | None = None,
    *,
    layout: str | Sequence[str] = "fastest",
) -> Predictor:
    """A network with its weights as they are, pruned or not, as a predictor, whose own it is from here on."""
    score = None if score is None else score.to(x.device)
    found = Predictor(network=network, graph=graph, x=x, score=score, program=network.program())
    if found.program is None:
        layouts, trials = _linear_layouts(found, layout)
        found = replace(found, layouts=layouts, trials=trials or None)
    else:
        layouts, trials = _layouts(found, found.program, layout)
        found = replace(found, program=in_order(found.program, layouts), layouts=layouts, trials=trials or None)
    found.prepare()
    return found


def _check_features(ticket: Ticket, x: Features) -> None:
    width = ticket.model.get("in_channels", x.num_features)  # a user's model is run to see
    if x.num_features != width:
        raise InputError(f"the ticket reads {width} features of each node (got a graph with {x.num_features})")


def _layouts(
    found: Predictor, program: Program, layout: str | Sequence[str]
) -> tuple[tuple[str, ...], dict[str, float]]:
    """The layout of each matrix of a program, and the milliseconds of those that were tried."""
    if layout == "fastest":
        return fastest(program, found.x, found.hops(None), found.score)
    if isinstance(layout, str):
        return for_each(program, layout), {}
    return _checked(layout, len(program.matrices)), {}


def _linear_layouts(found: Predictor, layout: str | Sequence[str]) -> tuple[tuple[str, ...], dict[str, float]]:
    """`_layouts` for the linear layers of a network without a program, which are compact from here on."""
    layout = "whole" if layout == WHOLE_ROWS else layout  # without trials, for any network
    count = len(plain_layers(found.network.public))
    names = (layout,) * count if isinstance(layout, str) else _checked(layout, count)
    given = None if layout == "fastest" else names
    return compact(found.network.public, found.logits, given)


def _checked(layouts: Sequence[str], count: int) -> tuple[str, ...]:
    """Names, one for each matrix."""
    if len(layouts) != count:
        raise InputError(f"layout must be a name, or one for each of {count} matrices (got {len(layouts)})")
    return tuple(layouts)
