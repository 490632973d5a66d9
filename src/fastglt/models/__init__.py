"""The networks that can be pruned: backbones, one folder each, and any PyG model through `PyGNetwork`."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastglt.models.base import Backbone, Network
    from fastglt.models.gat.network import GAT
    from fastglt.models.gcn.network import GCN
    from fastglt.models.gin.network import GIN
    from fastglt.models.pyg import PyGNetwork
    from fastglt.models.registry import BACKBONES, build, build_network, lookup, make, register

_HOME = {
    "BACKBONES": "registry",
    "GAT": "gat.network",
    "GCN": "gcn.network",
    "GIN": "gin.network",
    "Backbone": "base",
    "Network": "base",
    "PyGNetwork": "pyg",
    "build": "registry",
    "build_network": "registry",
    "lookup": "registry",
    "make": "registry",
    "register": "registry",
}

__all__ = [  # loaded on first use: a process that runs stock PyG's twins needs none of our kernels
    "BACKBONES",
    "GAT",
    "GCN",
    "GIN",
    "Backbone",
    "Network",
    "PyGNetwork",
    "build",
    "build_network",
    "lookup",
    "make",
    "register",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fastglt.models' has no attribute '{name}'")
    return getattr(importlib.import_module(f"fastglt.models.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
