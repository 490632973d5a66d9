"""Nodes that nobody has seen: hidden with their edges from teacher, search and training, and added at the end.

The protocol. `round(share × nodes)` nodes are drawn, by the split's seed, among those that neither train nor choose
an epoch: test nodes and nodes without use, of each kind in proportion. They and all their edges are taken out of
the graph, and everything is done on what is left, numbered anew. At the end the nodes come back, with all their
edges or with some, and those of them that are test nodes are scored; the others' labels are never looked at.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fastglt.errors import InputError, require
from fastglt.graphs.induced import induced
from fastglt.masks import Mask
from fastglt.system.seeds import derive, permutation
from fastglt.tasks.base import Task
from fastglt.tasks.nodes import NodeTask


@dataclass(frozen=True, eq=False, kw_only=True)
class Inductive:
    """A task without its hidden nodes, and the whole of it to come back to."""

    seen: NodeTask  # what everything is done on
    whole: NodeTask  # its test nodes are those that were hidden
    share: float
    seed: int
    hidden: Tensor  # node ids of the whole
    old: Tensor  # which edges of the whole are also the seen graph's, in the same order

    @property
    def new_edges(self) -> Tensor:
        """Which edges come with the hidden nodes."""
        return ~self.old

    @property
    def settings(self) -> dict[str, object]:
        """What decides the scores of hidden nodes, beside all that decides a run on the seen ones."""
        return {"share": self.share, "split_seed": self.seed, "of": self.whole.digest}

    @property
    def facts(self) -> dict[str, int]:
        """How many nodes and edges were hidden, and how many of the nodes are scored."""
        return {
            "hidden_nodes": self.hidden.numel(),
            "hidden_edges": int(self.new_edges.sum()),
            "new_test_nodes": self.whole.test.numel(),
        }

    def extend(self, edges: Mask, new: Tensor | None = None) -> Mask:
        """A mask of the seen graph's edges as one of the whole's; of the new edges all are kept, or some."""
        kept = torch.ones(self.old.numel(), dtype=torch.bool) if new is None else new.clone().cpu()
        kept[self.old.cpu()] = edges.of_size(int(self.old.sum())).kept
        return Mask(kept)

    def extend_soft(self, soft: Tensor | None, edges: Mask) -> Tensor | None:
        """A soft edge mask of the seen graph for the whole; a new edge has the mean of the kept ones."""
        if soft is None:
            return None
        mean = soft[edges.kept.to(soft.device)].mean()
        whole = mean.expand(self.old.numel()).clone()
        whole[self.old.to(soft.device)] = soft
        return whole


def hide(task: Task, share: float, *, seed: int) -> Inductive:
    """Hide a share of the nodes, drawn by a seed."""
    require("lie in (0, 1)", inductive=share)
    if not isinstance(task, NodeTask):
        rule = "inductive needs a task with a label for each node, so that hidden ones can be scored"
        raise InputError(f"{rule} (got '{task.name}')")
    hidden, kept = _draw(task, share, seed), torch.ones(task.graph.num_nodes, dtype=torch.bool)
    kept[hidden] = False
    kept = kept.to(task.device)
    graph, old = induced(task.graph, kept)
    number = kept.long().cumsum(0) - 1
    train, val, test = (number[nodes[kept[nodes]]] for nodes in (task.train, task.val, task.test))
    x = task.x.take(kept.nonzero().squeeze(1))
    seen = replace(task, graph=graph, x=x, y=task.y[kept], train=train, val=val, test=test)
    if seen.num_outputs != task.num_outputs:
        rule = f"the nodes that are not hidden must have every one of the {task.num_outputs} {task.answers}"
        raise InputError(f"{rule} (got {seen.num_outputs}); hide fewer, or take another split seed")
    whole = replace(task, test=task.test[~kept[task.test]])
    return Inductive(seen=seen, whole=whole, share=share, seed=seed, hidden=hidden.to(task.device), old=old)


def _draw(task: NodeTask, share: float, seed: int) -> Tensor:
    """The hidden nodes: of test nodes and of nodes without use as many as they are of both."""
    nodes, count = task.graph.num_nodes, round(share * task.graph.num_nodes)
    test = task.test.cpu()
    unused = torch.ones(nodes, dtype=torch.bool)
    for part in (task.train, task.val, task.test):
        unused[part.cpu()] = False
    others = unused.nonzero().squeeze(1)
    free = test.numel() + others.numel()
    from_test = round(count * test.numel() / free) if free else 0
    if not 0 < from_test < test.numel() or count - from_test > others.numel():
        rule = "inductive must hide some test nodes and leave some, and hides no training or validation nodes"
        got = f"got {count} of {nodes} nodes to hide, {free} of them free, {test.numel()} for tests"
        raise InputError(f"{rule} ({got}); choose another share")
    drawn = [
        part[permutation(part.numel(), derive(seed, "inductive", name))[:number]]
        for name, part, number in (("test", test, from_test), ("unused", others, count - from_test))
    ]
    return torch.cat(drawn).sort().values
