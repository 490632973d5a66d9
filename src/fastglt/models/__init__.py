"""The networks that can be pruned: our backbones, and any PyG model through `PyGNetwork`."""

from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.models.base import Backbone, Network
from fastglt.models.gat import GAT
from fastglt.models.gcn import GCN
from fastglt.models.gin import GIN
from fastglt.models.pyg import PyGNetwork

__all__ = ["BACKBONES", "GAT", "GCN", "GIN", "Backbone", "Network", "PyGNetwork", "build"]

BACKBONES: dict[str, type[Backbone]] = {"gcn": GCN, "gin": GIN, "gat": GAT}


def build(spec: dict[str, Any]) -> Backbone:
    """A backbone from its spec, with its initial weights.

    >>> build({"name": "gcn", "in_channels": 4, "hidden": 8, "out_channels": 2, "seed": 1}).hidden
    8
    """
    arguments = dict(spec)
    name = arguments.pop("name")
    if name not in BACKBONES:
        raise unknown_name("model", name, BACKBONES)
    try:
        return BACKBONES[name](**arguments)
    except TypeError as error:
        raise InputError(f"{name} does not take these settings ({error})") from None
