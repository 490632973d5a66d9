"""A graph that has changed: which of its nodes and edges were there before, and which of them a ticket keeps."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.matching import edges_before
from fastglt.masks import Mask
from fastglt.methods.base import Method
from fastglt.methods.parts.schedules import kept_count
from fastglt.system.seeds import derive
from fastglt.tasks import NodeTask, Task
from fastglt.training.loop import Training


@dataclass(frozen=True, eq=False, kw_only=True)
class Change:
    """A task before and after its graph has gained and lost nodes and edges."""

    before: Task
    after: Task
    nodes_before: Tensor  # of each node its number before; −1: it is new

    def __post_init__(self) -> None:
        _check_nodes(self.nodes_before, self.before.graph.num_nodes, self.after.graph.num_nodes)
        for task in (self.before, self.after):
            if not isinstance(task, NodeTask):
                rule = "update is for tasks with a label for each node"
                raise InputError(f"{rule} (got '{task.name}'); find a ticket on the new graph")
        if self.before.graph.directed != self.after.graph.directed:
            kinds = ["directed" if one.graph.directed else "undirected" for one in (self.before, self.after)]
            raise InputError(f"both graphs must be directed, or none (got {kinds[0]} before, {kinds[1]} now)")
        if self.before.x.num_features != self.after.x.num_features:
            rule = f"the new graph must have the {self.before.x.num_features} features of the one before"
            raise InputError(f"{rule} (got {self.after.x.num_features}); find a ticket on the new graph")
        if self.before.num_outputs < self.after.num_outputs:
            rule = f"the new graph must have the {self.before.num_outputs} {self.before.answers} of the one before"
            raise InputError(f"{rule} (got {self.after.num_outputs}); find a ticket on the new graph")

    @cached_property
    def edges_before(self) -> Tensor:
        """Of each edge its number before; −1: it is new."""
        return edges_before(self.before.graph, self.after.graph, self.nodes_before).cpu()

    @cached_property
    def new_edges(self) -> Tensor:
        """Which edges are new."""
        return self.edges_before < 0

    @property
    def facts(self) -> dict[str, int]:
        """How much has changed."""
        added, stayed = int((self.nodes_before < 0).sum()), int((self.edges_before >= 0).sum())
        return {
            "nodes_added": added,
            "nodes_removed": self.before.graph.num_nodes - (self.nodes_before.numel() - added),
            "edges_added": int(self.new_edges.sum()),
            "edges_removed": self.before.graph.num_edges - stayed,
        }

    def carried(self, values: Tensor, new: float | bool) -> Tensor:
        """A number for each edge of before as one for each edge now, with some value for new ones."""
        known, place = ~self.new_edges, self.edges_before.clamp(min=0)
        found = torch.full([place.numel()], new, dtype=values.dtype)
        found[known] = values.cpu()[place[known]]
        return found

    def soft_mask(self, soft: Tensor | None, edges: Mask) -> Tensor | None:
        """A soft mask of the kept edges of before for all edges now; an edge without one has their mean."""
        if soft is None:
            return None
        mean = float(soft.mean()) if soft.numel() else 1.0
        whole = torch.full([edges.size], mean, dtype=soft.dtype)
        whole[edges.kept] = soft.cpu()
        return self.carried(whole, mean)

    def keep(self, edges: Mask, training: Training, method: Method, *, sparsity: float, seed: int) -> Mask:
        """The mask of before on the graph as it is now, at a sparsity, by exact count.

        Kept edges that are still there stay, and the method's rule chooses among the new ones. Should all of them
        be too few, it also chooses among those that were pruned; should even none be too many, among those kept.
        """
        kept, new = self.carried(edges.kept, False), self.new_edges
        count = kept_count(sparsity, new.numel())
        wanted, available = count - int(kept.sum()), int(new.sum())
        if wanted < 0:
            return Mask(_choose(method, training, kept, count, derive(seed, "kept edges")))
        kept |= _choose(method, training, new, min(wanted, available), derive(seed, "new edges"))
        if wanted > available:
            back = derive(seed, "pruned edges")
            kept |= _choose(method, training, ~kept, wanted - available, back)
        return Mask(kept)


def _choose(method: Method, training: Training, among: Tensor, count: int, seed: int) -> Tensor:
    """So many of some edges, by the method's rule; nobody is asked where there is nothing to choose."""
    if count in (0, int(among.sum())):
        return among.clone() if count else torch.zeros_like(among)
    return method.keep_new_edges(training, among, count, seed=seed).cpu()


def _check_nodes(nodes_before: Tensor, before: int, after: int) -> None:
    if nodes_before.dtype != torch.int64 or nodes_before.shape != (after,):
        got = f"{nodes_before.dtype}, shape {tuple(nodes_before.shape)}"
        raise InputError(f"nodes_before must be an int64 tensor of {after} nodes (got {got})")
    known = nodes_before[nodes_before >= 0]
    if known.numel() and int(known.max()) >= before:
        raise InputError(f"nodes_before must hold node numbers below {before}, or −1 (got {int(known.max())})")
    if known.unique().numel() != known.numel():  # type: ignore[no-untyped-call]
        raise InputError("nodes_before must name each node of before once at most (got one twice)")
