"""A network for a task: from a name, a user's model or a ticket, checked before anything is trained."""

import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.masks import Masks
from fastglt.models import Backbone, Network, PyGNetwork, build_network, make
from fastglt.models.links import KEY, LinkNetwork, measured_width, with_decoder
from fastglt.system.seeds import derive
from fastglt.tasks import Task
from fastglt.tickets.ticket import Ticket


def as_network(
    model: nn.Module | str,
    task: Task,
    *,
    hidden: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
    prunable: list[str] | None = None,
    soft_edges: bool = True,
) -> Network:
    """A backbone by name, with its options, or as it is, or a user's PyG model wrapped."""
    if prunable is not None and isinstance(model, str | Network):
        raise InputError(f"prunable is for PyG models; fastglt's own prune every weight matrix (got {prunable})")
    if isinstance(model, str):
        return named_network(model, task, hidden=hidden, seed=seed, options=options)
    if options:
        raise InputError(f"model_options are for a model that is named (got {dict(options)} and a model)")
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a name or a torch.nn.Module (got {type(model).__name__})")
    network = model if isinstance(model, Network) else PyGNetwork(model, prunable=prunable)
    if task.decoder is None or isinstance(network, LinkNetwork):
        check_fits(network, task, soft_edges=soft_edges)
        return network
    network.check_fits(task.x, task.graph, 1, soft_edges=soft_edges)
    width = measured_width(network, task.x, task.graph)
    return with_decoder(network, task.decoder, width=width, seed=seed)


def named_network(
    name: str, task: Task, *, hidden: int, seed: int, options: Mapping[str, Any] | None = None
) -> Network:
    """A backbone for a task by its name, or where it lives; for pairs with a decoder of rows as wide as hidden."""
    outputs = task.num_outputs if task.decoder is None else hidden
    shape = {"in_channels": task.x.num_features, "hidden": hidden, "out_channels": outputs}
    network = make(name, **shape, seed=seed, **(options or {}))
    if network.tried_out:
        network.check_fits(task.x, task.graph, outputs, soft_edges=True)
    return network if task.decoder is None else with_decoder(network, task.decoder, width=hidden, seed=seed)


def check_fits(network: Network, task: Task, *, soft_edges: bool) -> None:
    """Refuse a network that cannot be trained for a task, before anything is trained."""
    network.check_fits(task.x, task.graph, task.num_outputs, soft_edges=soft_edges)


def edge_values(network: Network, task: Task) -> dict[str, str]:
    """A digest of the edge weights, where there are some and the network reads them, for what tells runs apart."""
    digest = task.graph.values_fingerprint if network.reads_edge_values else None
    return {} if digest is None else {"edge_values": digest}


class UnusedWeightsWarning(UserWarning):
    """The data has edge weights, and the model takes none."""


def warn_of_unused_weights(network: Network, graph: Graph) -> None:
    """Tell that a network which reads no edge values is trained on a graph that has weights."""
    attr = graph.edge_attr
    weighted = graph.edge_weight is not None or (attr is not None and attr.dim() == 1)
    ours = isinstance(network.encoder if isinstance(network, LinkNetwork) else network, Backbone)
    if weighted and ours and not network.reads_edge_values:
        warnings.warn(
            f"{network.spec['name']} takes no edge weights: those of the data are not used, and all edges count "
            "alike; a PyG model whose forward has edge_weight uses them",
            UnusedWeightsWarning,
            stacklevel=4,
        )


def restore_start(ticket: Ticket, model: nn.Module | str | None) -> tuple[Network, Masks]:
    """The network at Θ0 and the masks under its own parameter names."""
    network, masks = network_of(ticket, model)
    _load(network, ticket.initial, ticket)
    return network, masks


def restore_trained(ticket: Ticket, model: nn.Module | str | None) -> tuple[Network, Masks]:
    """The network as the search left it, without a look at Θ0, and the masks under its own parameter names."""
    network, masks = network_of(ticket, model)
    _load(network, ticket.weights, ticket)
    return network, masks


def network_of(ticket: Ticket, model: nn.Module | str | None) -> tuple[Network, Masks]:
    """The ticket's network with any weights, and the masks under its own parameter names."""
    spec: dict[str, Any] = dict(ticket.model)
    if not ticket.is_of_users_model:
        _refuse_other_backbone(spec, model)
        return _with_its_names(build_network(spec), ticket.masks)
    owner = spec["class"]
    if not isinstance(model, nn.Module) or isinstance(model, Network):
        raise InputError(f"the ticket belongs to a user's model, {owner}; pass that model (got {_name_of(model)})")
    if not owner.endswith(f".{type(model).__qualname__}"):
        raise InputError(f"the model must be the one the ticket was found with, {owner} (got {_name_of(model)})")
    try:
        wrapped: Network = PyGNetwork(model, prunable=spec["prunable"])
    except InputError as error:
        raise InputError(f"the model must be the one the ticket was found with, {owner} ({error})") from None
    if KEY in spec:
        decoder = dict(spec[KEY])
        wrapped = with_decoder(wrapped, decoder, width=decoder.pop("width"), seed=ticket.seed)
    return _with_its_names(wrapped, ticket.masks)


def _with_its_names(network: Network, masks: Masks) -> tuple[Network, Masks]:
    weights = {network.private_name(name): mask for name, mask in masks.weights.items()}
    return network, Masks(edges=masks.edges, weights=weights)


def fresh_start(network: Network, seed: int) -> Network:
    """A network like this one with initial weights of its own, which the seed decides; the given one is kept.

    A user's model draws them in its `reset_parameters`. A search with the same seed began from others.
    """
    return network.redrawn(derive(seed, "fresh start"))


def _load(network: Network, state: Mapping[str, Tensor], ticket: Ticket) -> None:
    try:
        network.public.load_state_dict(dict(state))
    except RuntimeError as error:
        owner, reason = ticket.model.get("class", ticket.model["name"]), " ".join(str(error).split())
        raise InputError(f"the model must be the one the ticket was found with, {owner} ({reason})") from None


def _refuse_other_backbone(spec: dict[str, Any], model: object) -> None:
    name = spec["name"]
    if isinstance(model, Network):
        shape = {key: value for key, value in spec.items() if key != "seed"}
        same = shape == {key: value for key, value in model.spec.items() if key != "seed"}
    else:
        same = model is None or model == name
    if not same:
        raise InputError(
            f"the ticket belongs to fastglt's own {name}; pass None or that model (got {_name_of(model)})"
        )


def _name_of(model: object) -> str:
    return f"'{model}'" if isinstance(model, str) else "none" if model is None else type(model).__name__
