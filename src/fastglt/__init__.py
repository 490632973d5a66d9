"""Graph lottery tickets: a sparser graph and a sparser network that train as well as the dense original.

>>> import fastglt
>>> from torch_geometric.datasets import Planetoid
>>> data = Planetoid("data", "Cora")[0]  # doctest: +SKIP
>>> ticket = fastglt.find_ticket("gcn", data, graph_sparsity=0.2, weight_sparsity=0.9)  # doctest: +SKIP
>>> ticket.save("cora.safetensors")  # doctest: +SKIP
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: busy-waiting threads starve each other

from fastglt.errors import FastGLTError, InputError, MachineError
from fastglt.find import find_ticket
from fastglt.graph import Graph
from fastglt.judge import Verdict, evaluate
from fastglt.kernels import set_threads
from fastglt.masks import Mask, Masks
from fastglt.methods import Budget
from fastglt.models import GAT, GCN, GIN
from fastglt.ticket import Ticket

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "Budget",
    "FastGLTError",
    "Graph",
    "InputError",
    "MachineError",
    "Mask",
    "Masks",
    "Ticket",
    "Verdict",
    "__version__",
    "evaluate",
    "find_ticket",
    "set_threads",
]

__version__ = "0.1.0"
