"""A network for a task: from a name, a user's model or a ticket, checked before anything is trained."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError, unknown_name
from fastglt.masks import Masks
from fastglt.models import BACKBONES, Backbone, Network, PyGNetwork, build
from fastglt.system.seeds import derive, own_random_state, own_randomness
from fastglt.tasks import Task
from fastglt.tickets.ticket import Ticket


def as_network(
    model: nn.Module | str,
    task: Task,
    *,
    hidden: int,
    seed: int,
    prunable: list[str] | None = None,
    soft_edges: bool = True,
) -> Network:
    """One of our backbones by name or as it is, or a user's PyG model wrapped."""
    if prunable is not None and isinstance(model, str | Network):
        raise InputError(f"prunable is for PyG models; fastglt's own prune every weight matrix (got {prunable})")
    if isinstance(model, str):
        if model not in BACKBONES:
            raise unknown_name("model", model, BACKBONES)
        shape = {"in_channels": task.x.num_features, "hidden": hidden, "out_channels": task.num_outputs}
        return build({"name": model, **shape, "seed": seed})
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a name or a torch.nn.Module (got {type(model).__name__})")
    network = model if isinstance(model, Network) else PyGNetwork(model, prunable=prunable)
    check_fits(network, task, soft_edges=soft_edges)
    return network


def check_fits(network: Network, task: Task, *, soft_edges: bool) -> None:
    """Refuse a network that cannot be trained for a task, before anything is trained."""
    if isinstance(network, PyGNetwork):
        network.probe(task.x, task.graph, task.num_outputs, soft_edges=soft_edges)
    elif isinstance(network, Backbone):
        if network.in_channels != task.x.num_features:
            raise InputError(f"the model must take {task.x.num_features} features (got {network.in_channels})")
        if network.out_channels < task.num_outputs:
            raise InputError(
                f"the model must give {task.num_outputs} outputs for each node (got {network.out_channels})"
            )
        for name, parameter in network.named_parameters():
            if parameter.dtype != torch.float32:
                raise InputError(f"fastglt's own models are single precision (got '{name}' as {parameter.dtype})")
            if not parameter.requires_grad:
                raise InputError(f"fastglt's own models are trained whole (got '{name}' with requires_grad=False)")


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
        return build(spec), ticket.masks
    owner = spec["class"]
    if not isinstance(model, nn.Module) or isinstance(model, Network):
        raise InputError(f"the ticket belongs to a user's model, {owner}; pass that model (got {_name_of(model)})")
    if not owner.endswith(f".{type(model).__qualname__}"):
        raise InputError(f"the model must be the one the ticket was found with, {owner} (got {_name_of(model)})")
    try:
        wrapped = PyGNetwork(model, prunable=spec["prunable"])
    except InputError as error:
        raise InputError(f"the model must be the one the ticket was found with, {owner} ({error})") from None
    weights = {wrapped.PREFIX + name: mask for name, mask in ticket.masks.weights.items()}
    return wrapped, Masks(edges=ticket.masks.edges, weights=weights)


def fresh_start(network: Network, seed: int) -> Network:
    """A network like this one with initial weights of its own, which the seed decides; the given one is kept.

    A user's model draws them in its `reset_parameters`. A search with the same seed began from others.
    """
    seed = derive(seed, "fresh start")
    if isinstance(network, Backbone):
        return build({**network.spec, "seed": seed})
    fresh = copy.deepcopy(network)
    module = fresh.module if isinstance(fresh, PyGNetwork) else fresh
    reset = getattr(module, "reset_parameters", None)
    if not callable(reset):
        raise InputError(f"fresh_init needs a model with reset_parameters() (got {type(module).__name__}, without)")
    with own_random_state(torch.device("cpu")), own_randomness(seed):
        torch.manual_seed(seed)
        reset()
    for name in network.prunable:
        if torch.equal(fresh.get_parameter(name), network.get_parameter(name)):
            got = name.removeprefix(PyGNetwork.PREFIX)
            raise InputError(f"reset_parameters() must draw every weight matrix anew (got '{got}' unchanged)")
    return fresh


def _load(network: Network, state: Mapping[str, Tensor], ticket: Ticket) -> None:
    module = network.module if isinstance(network, PyGNetwork) else network
    try:
        module.load_state_dict(dict(state))
    except RuntimeError as error:
        owner, reason = ticket.model.get("class", ticket.model["name"]), " ".join(str(error).split())
        raise InputError(f"the model must be the one the ticket was found with, {owner} ({reason})") from None


def _refuse_other_backbone(spec: dict[str, Any], model: object) -> None:
    name = spec["name"]
    if isinstance(model, Backbone):
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
