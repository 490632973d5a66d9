"""Which client holds which nodes, and what its part of a task is: edges between parts are nobody's."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError, MachineError
from fastglt.graphs.graph import Graph
from fastglt.graphs.induced import induced
from fastglt.system.seeds import derive, permutation
from fastglt.tasks import NodeTask, Task


def shares(graph: Graph, clients: int, how: str, *, seed: int) -> Tensor:
    """The client of each node, from 0; each has at least one node."""
    if clients > graph.num_nodes:
        raise InputError(f"clients must not exceed the {graph.num_nodes} nodes (got {clients})")
    if how == "random" or clients == 1:
        found = torch.empty(graph.num_nodes, dtype=torch.int64)
        found[permutation(graph.num_nodes, derive(seed, "parts"))] = torch.arange(graph.num_nodes) % clients
        return found
    found = _metis(graph, clients, seed)
    if found.unique().numel() < clients:  # type: ignore[no-untyped-call]
        raise InputError(f"METIS left one of {clients} clients without nodes; take fewer, or --parts random")
    return found


def _metis(graph: Graph, clients: int, seed: int) -> Tensor:
    """METIS's parts, about equal in nodes, with few edges between them."""
    try:
        import pymetis
    except ImportError:
        remedy = "run pip install 'fastglt[federated]', or take --parts random"
        raise MachineError(f"parts by METIS need pymetis; {remedy}") from None
    pairs = np.unique(np.hstack([graph.edges.cpu().numpy(), graph.edges.flip(0).cpu().numpy()]), axis=1)  # sorted
    starts = np.searchsorted(pairs[0], np.arange(graph.num_nodes + 1))
    adjacency = pymetis.CSRAdjacency(starts.astype(np.int32), pairs[1].astype(np.int32))
    options = pymetis.Options(seed=derive(seed, "metis") % 2**31)
    _, membership = pymetis.part_graph(clients, adjacency=adjacency, options=options)
    return torch.tensor(membership, dtype=torch.int64)


def part_of(task: Task, owner: Tensor, client: int) -> NodeTask:
    """The task that a client sees: its nodes, the edges among them, their labels and split."""
    if not isinstance(task, NodeTask):
        raise InputError(f"federated training is for tasks with a label for each node (got '{task.name}')")
    kept = (owner == client).to(task.device)
    graph, _ = induced(task.graph, kept)
    number = kept.long().cumsum(0) - 1
    train, val, test = (number[nodes[kept[nodes]]] for nodes in (task.train, task.val, task.test))
    x = task.x.take(kept.nonzero().squeeze(1))
    return replace(task, graph=graph, x=x, y=task.y[kept], train=train, val=val, test=test)
