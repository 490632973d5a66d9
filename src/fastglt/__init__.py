"""Graph lottery tickets: a sparser graph and a sparser network that train as well as the dense original.

>>> import fastglt
>>> from torch_geometric.datasets import Planetoid
>>> data = Planetoid("data", "Cora")[0]  # doctest: +SKIP
>>> ticket = fastglt.find_ticket("gcn", data, graph_sparsity=0.2, weight_sparsity=0.9)  # doctest: +SKIP
>>> ticket.save("cora.safetensors")  # doctest: +SKIP
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

# Before torch: threads that wait busily starve each other, and waking one that sleeps takes as long as a small
# kernel. So they look out for work for some 30 µs, then sleep.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
# Large tensors in large pages, where the system has them: rows of a matrix that are read in any order are then
# found four times as fast.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    from fastglt.analysis.attack import attack_edges
    from fastglt.analysis.suspects import rank_edges
    from fastglt.attacks import Attack
    from fastglt.deploy import Predictor, compile_ticket
    from fastglt.errors import FastGLTError, InputError, MachineError
    from fastglt.graphs.graph import Graph
    from fastglt.judge import Verdict, evaluate
    from fastglt.kernels import set_threads
    from fastglt.masks import Mask, Masks
    from fastglt.methods import Budget, Method, Targets
    from fastglt.models import GAT, GCN, GIN, Backbone
    from fastglt.registration import register
    from fastglt.studies.compare import Comparison, compare
    from fastglt.studies.extreme import ExtremeResult, extreme
    from fastglt.suspects import EdgeRanking
    from fastglt.tasks import Metric, NodeTask, Task
    from fastglt.tickets.find import find_ticket
    from fastglt.tickets.ticket import Ticket
    from fastglt.tickets.transfer import transfer_ticket
    from fastglt.tickets.update import update_ticket

__version__ = "0.2.0.dev0"

_HOME = {
    "GAT": "models",
    "GCN": "models",
    "GIN": "models",
    "Attack": "attacks",
    "Backbone": "models",
    "Budget": "methods",
    "Comparison": "studies.compare",
    "EdgeRanking": "suspects",
    "ExtremeResult": "studies.extreme",
    "FastGLTError": "errors",
    "Graph": "graphs",
    "InputError": "errors",
    "MachineError": "errors",
    "Mask": "masks",
    "Masks": "masks",
    "Method": "methods",
    "Metric": "tasks",
    "NodeTask": "tasks",
    "Predictor": "deploy",
    "Targets": "methods",
    "Task": "tasks",
    "Ticket": "tickets",
    "Verdict": "judge",
    "attack_edges": "analysis.attack",
    "compare": "studies.compare",
    "compile_ticket": "deploy",
    "evaluate": "judge",
    "extreme": "studies.extreme",
    "find_ticket": "tickets.find",
    "rank_edges": "analysis.suspects",
    "register": "registration",
    "set_threads": "kernels",
    "transfer_ticket": "tickets.transfer",
    "update_ticket": "tickets.update",
}

__all__ = [  # loaded on first use, so that `fastglt --help` need not wait for torch
    "GAT",
    "GCN",
    "GIN",
    "Attack",
    "Backbone",
    "Budget",
    "Comparison",
    "EdgeRanking",
    "ExtremeResult",
    "FastGLTError",
    "Graph",
    "InputError",
    "MachineError",
    "Mask",
    "Masks",
    "Method",
    "Metric",
    "NodeTask",
    "Predictor",
    "Targets",
    "Task",
    "Ticket",
    "Verdict",
    "__version__",
    "attack_edges",
    "compare",
    "compile_ticket",
    "evaluate",
    "extreme",
    "find_ticket",
    "rank_edges",
    "register",
    "set_threads",
    "transfer_ticket",
    "update_ticket",
]


def __getattr__(name: str) -> Any:
    if name == "data":  # a folder that people use by its name: fastglt.data.load(…)
        return importlib.import_module("fastglt.data")
    if name not in _HOME:
        raise AttributeError(f"module 'fastglt' has no attribute '{name}'")
    return getattr(importlib.import_module(f"fastglt.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
