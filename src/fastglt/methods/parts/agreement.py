"""Edges by agreement and support under a spanning forest: what the network's predictions say about its graph."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.errors import require, unknown_name
from fastglt.methods.parts.forests import edge_standing, keep_forests
from fastglt.methods.parts.ranking import edge_cosine, edge_degree, keep_random
from fastglt.system.seeds import derive
from fastglt.tasks import Task
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs, network_outputs_and_support
from fastglt.training.records import Snapshot

STRENGTHS = ("agreement", "features", "degree", "random")
_TIES = 1e-3  # of the agreement is enough to decide between edges that stand alike


@dataclass(frozen=True, kw_only=True)
class ForestRule:
    """Keep maximum spanning forests of an edge strength, then the strongest of what is left.

    Edges whose ends are predicted to be of one class come before all others, and forests are of them alone. Among
    them an edge is strong if one of its ends has few edges along which predictions agree more, and if one has few
    that speak more for its class (`network_outputs_and_support`): the mean of how it stands by the one and by the
    other (`edge_standing`). The agreement itself tells equals apart. With `classes` and `local` false it alone
    counts. For comparison there are strengths that know nothing of the network, so that they stay as they are.
    """

    strength: str = "agreement"
    classes: bool = True
    local: bool = True
    support: bool = True  # counts if `local` does
    forests: int | None = 1  # 0: none, by strength alone; None: as many as fit
    random_share: float = 0.0  # share of the kept edges that are drawn from all edges instead
    wait: float = 0.5  # share of the intervals before the first choice
    revise: bool = True

    def __post_init__(self) -> None:
        require("not be negative", forests=self.forests or 0)
        require("lie in [0, 1)", wait=self.wait)
        require("lie in [0, 1]", random_share=self.random_share)
        if self.strength not in STRENGTHS:
            raise unknown_name("strength", self.strength, STRENGTHS)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it asks of a task."""
        return ("groups", "distribution", "certainty") if self.looks else ()

    @property
    def looks(self) -> bool:
        """Whether it depends on what the network predicts."""
        return self.strength == "agreement" and self.random_share < 1

    def chooses_after(self, interval: int, intervals: int) -> bool:
        """Whether the edges are chosen, or chosen anew, after an interval of so many; 0: after stage 1."""
        first = int(self.wait * intervals)
        return interval == first or (interval > first and self.revise and self.looks)

    def choose(
        self,
        training: Training,
        count: int,
        *,
        seed: int,
        at: Snapshot | None = None,
        among: Tensor | None = None,
        trusted: Tensor | None = None,
    ) -> Tensor:
        """Which edges of the task's graph to keep, by the network as it is, or as it was at some epoch.

        With `among`, only these edges are there to be chosen; with `trusted`, the network sees no others either.
        """
        graph = training.task.graph
        some = torch.ones(graph.num_edges, dtype=torch.bool)
        for given in (among, trusted):
            some = some if given is None else some & given.cpu()
        if int(some.sum()) <= count:
            return some
        drawn = round(self.random_share * count)
        kept = torch.zeros(graph.num_edges, dtype=torch.bool)
        if drawn:
            kept[some] = keep_random(int(some.sum()), drawn, derive(training.seed, "random edges"))
        if drawn < count:
            strength, within = self.strengths(training, seed=seed, at=at, seen=trusted)
            left = (some & ~kept).to(strength.device)
            chosen = keep_forests(
                graph.edges[:, left],
                strength[left],
                graph.num_nodes,
                count - drawn,
                forests=self.forests,
                among=None if within is None else within[left],
                seed=seed,
            )
            kept[left.cpu()] |= chosen.cpu()
        return kept

    def strengths(
        self, training: Training, *, seed: int, at: Snapshot | None = None, seen: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The strength of every edge, and which edges a forest may have; None: all.

        The network looks along all edges, or along those that it may have seen.
        """
        graph, within, support = training.task.graph, None, None
        if not self.looks:
            strength = _blind_strength(self.strength, training.task)
        else:
            if self.local and self.support:
                outputs, support = network_outputs_and_support(training, at, seen=seen)
            else:
                outputs = network_outputs(training, at, whole=True, seen=seen, targets=training.task.edge_targets)
            strength, together = training.task.agreement(outputs)
            within = together if self.classes else None
        if self.local:
            by = [strength] if support is None else [strength, support]
            standings = [edge_standing(graph.edges, one, graph.num_nodes, seed=seed) for one in by]
            strength = torch.stack(standings).mean(0) + _TIES * strength
        if within is not None:
            strength = strength + 2 * within  # neither agreement nor standing reaches 2
        return strength, within


def _blind_strength(name: str, task: Task) -> Tensor:
    """A strength for which no network is asked."""
    if name == "features":
        return edge_cosine(task.graph, task.x)
    degree = edge_degree(task.graph, task.graph)
    return 1 / degree if name == "degree" else torch.zeros_like(degree)  # equals fall at random
