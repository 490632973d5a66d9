"""The backbones by name: ours, and those that were registered from outside."""

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import torch

from fastglt.errors import InputError, unknown_name
from fastglt.models.base import Backbone, Network
from fastglt.models.gat.network import GAT
from fastglt.models.gcn.network import GCN
from fastglt.models.gin.network import GIN
from fastglt.models.options import check_arguments, check_options
from fastglt.models.resgcn.network import ResGCN
from fastglt.system.plugins import add_to, check_subclass, described, find_in, place_of, same_class
from fastglt.system.seeds import derive, own_random_state

BACKBONES: dict[str, type[Backbone]] = {backbone.name: backbone for backbone in (GCN, GIN, GAT, ResGCN)}
_RESERVED = ("pyg",)  # what a ticket calls a user's model

AnyBackbone = TypeVar("AnyBackbone", bound=type[Backbone])


def register(backbone: AnyBackbone) -> AnyBackbone:
    """Add a backbone of your own, by its name; also as a decorator."""
    check_subclass(backbone, Backbone, "model")
    check_arguments(backbone)
    add_to(BACKBONES, backbone, "model", reserved=_RESERVED)
    return backbone


def adopt(kind: Any, place: str | None = None) -> type[Backbone]:
    """Add a backbone, or a PyG model's class (or a function that returns a model), which is made one."""
    from fastglt.models.pyg_named import as_backbone, is_model

    if not is_model(kind):
        added: type[Backbone] = register(kind)
        return added
    known: type[Backbone] = as_backbone(kind, place_of(kind) or place or f"{kind.__module__}:{kind.__qualname__}")
    return register(known)


def lookup(name: str) -> type[Backbone]:
    """A backbone's class by its name, or by where it lives: ``module:Class``."""
    return find_in(BACKBONES, name, "model", partial(adopt, place=name))


def check_registered(backbone: type[Backbone]) -> None:
    """Refuse a backbone that nobody could build again from its name."""
    known = BACKBONES.get(getattr(backbone, "name", ""))
    if known is None or not same_class(known, backbone):
        got = described(backbone)
        raise InputError(
            f"a model of your own must be registered (got {got}, which is not); fastglt.register does it"
        )


def make(name: str, *, in_channels: int, hidden: int, out_channels: int, seed: int, **options: Any) -> Backbone:
    """A backbone by name, or by where it lives, with its own options."""
    backbone = lookup(name)
    check_options(backbone, options)
    shape = {"in_channels": in_channels, "hidden": hidden, "out_channels": out_channels, "seed": seed}
    return build({"name": backbone.name, **shape, **options})


def build_network(spec: Mapping[str, Any]) -> Network:
    """A backbone from its spec, or one with a decoder, with its initial weights, which the seed decides."""
    from fastglt.models.links import KEY, build_links

    return build_links(spec) if KEY in spec else build(spec)


def build(spec: Mapping[str, Any]) -> Backbone:
    """A backbone from its spec, with its initial weights, which the seed decides.

    >>> build({"name": "gcn", "in_channels": 4, "hidden": 8, "out_channels": 2, "seed": 1}).hidden
    8
    """
    arguments = dict(spec)
    name = arguments.pop("name")
    if name not in BACKBONES:  # never a place: a file that somebody sent must not have a module imported
        raise unknown_name("model", name, BACKBONES)
    with own_random_state(torch.device("cpu")):
        torch.default_generator.manual_seed(derive(arguments.get("seed", 0), "init"))  # for layers of PyTorch's own
        try:
            return BACKBONES[name](**arguments)
        except TypeError as error:
            raise InputError(f"{name} does not take these settings ({error})") from None
