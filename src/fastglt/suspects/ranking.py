"""Every edge ranked by how likely it is that somebody has added it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError, check_seed, require
from fastglt.suspects import opinions
from fastglt.suspects.evidence import Numbers, Pairs, Surroundings
from fastglt.suspects.excess import Excess, tells
from fastglt.suspects.learning import Learnt, learn
from fastglt.system.seeds import derive
from fastglt.tasks import Task
from fastglt.tasks.node_classification import NodeClassification

EPOCHS = 100
ROUNDS = 2
VOTERS = 2  # networks whose opinions are averaged
_MOST_DRAWN = 200_000  # pairs that are no edges

_remembered: dict[tuple[object, ...], "EdgeRanking"] = {}  # the last one: several tickets may ask for it

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeRanking:
    """How suspicious each edge is, and why.

    Suspicion is the probability that the edge was added, as far as it can be told; its sum over all edges is how
    many were probably added.
    """

    edges: Tensor  # int64 [2, edges]
    suspicion: Tensor  # float64 [edges], in [0, 1]
    components: dict[str, Tensor]  # what it was judged by
    contributions: dict[str, Tensor]  # of each to the log odds
    weights: dict[str, float]  # what the components are worth, in standard deviations

    @property
    def expected(self) -> float:
        """How many edges were probably added."""
        return float(self.suspicion.sum())

    @property
    def count(self) -> int:
        """The same as a whole number."""
        return round(self.expected)

    @property
    def share(self) -> float:
        """The share of edges that were probably added: a graph sparsity that removes so many."""
        return self.count / max(1, self.edges.shape[1])

    @cached_property
    def order(self) -> Tensor:
        """The edges' numbers, the most suspicious first."""
        return torch.argsort(self.suspicion, descending=True, stable=True)

    def worst(self, count: int | None = None) -> Tensor:
        """A boolean vector of the most suspicious edges, as many as asked for or as were probably added."""
        chosen = torch.zeros(self.edges.shape[1], dtype=torch.bool)
        chosen[self.order[: self.count if count is None else count]] = True
        return chosen


def rank_task_edges(
    task: Task,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    rounds: int | None = None,
    excess: bool | None = None,
    shares: Tensor | None = None,
    tell: Tell | None = None,
) -> EdgeRanking:
    """Rank the edges of a task's graph.

    In the first round predictions come from features alone. Then, as often as there are rounds more, the most
    suspicious edges are left out, networks are trained along the others, and edges are ranked by both opinions.
    With `shares`, somebody's class probabilities for all nodes, these stand for such networks.
    """
    refuse_rounds(rounds, beside_ticket=shares is not None)
    rounds = ROUNDS if rounds is None else rounds
    checked = _check(task, seed=seed, epochs=epochs, rounds=rounds)
    key = (checked.digest, checked.metric, seed, epochs, rounds, excess)  # the metric chooses networks' best epochs
    if shares is None and key in _remembered:
        return _remembered[key]
    say = tell or (lambda what: None)
    judge = _Judge(checked, seed=seed, excess=excess)
    say("features alone")
    blind = _mean_opinion(checked, opinions.no_edges(checked), epochs, derive(seed, "blind"))
    if shares is not None:
        return judge.rank((blind + shares.to(blind)) / 2)
    found = judge.rank(blind)
    for number in range(1, rounds):
        say(f"round {number + 1} of {rounds}: along {checked.graph.num_edges - found.count:,} edges")
        seeing = _mean_opinion(checked, ~found.worst(), epochs, derive(seed, "seeing", number))
        found = judge.rank((blind + seeing) / 2)
    _remembered.clear()
    _remembered[key] = found
    return found


def refuse_rounds(rounds: int | None, *, beside_ticket: bool) -> None:
    """A ticket's predictions stand for the networks of all rounds but the first."""
    if rounds is not None and beside_ticket:
        rule = "rounds must come without a ticket, whose predictions stand for those of later rounds"
        raise InputError(f"{rule} (got {rounds} beside one); leave one out")


def _mean_opinion(task: NodeClassification, kept: Tensor, epochs: int, seed: int) -> Tensor:
    voters = [opinions.opinion(task, kept, epochs=epochs, seed=derive(seed, voter)) for voter in range(VOTERS)]
    return torch.stack(voters).mean(0)


class _Judge:
    """Ranks edges by what is predicted; whatever does not depend on that is found once."""

    def __init__(self, task: NodeClassification, *, seed: int, excess: bool | None) -> None:
        self._task, self._edges = task, task.graph.edges.cpu().numpy()
        labelled = np.zeros(task.graph.num_nodes, dtype=np.bool_)
        labelled[task.train.cpu().numpy()] = True
        self._excess = Excess.of(self._edges, labelled, look=tells(labelled) if excess is None else excess)
        around = Surroundings(task.graph, task.x)
        rng = np.random.default_rng(derive(seed, "pairs"))
        self._drawn = draw_pairs(around, np.flatnonzero(labelled), min(2 * self._edges.shape[1], _MOST_DRAWN), rng)
        self._of_edges, self._of_drawn = around.of(self._edges, linked=True), around.of(self._drawn, linked=False)
        self._degree = around.degree[self._edges]

    def rank(self, shares: Tensor) -> EdgeRanking:
        """Rank the edges, given class probabilities for all nodes."""
        known, odds = opinions.with_labels(shares, self._task), self._excess.odds
        agreed, of_drawn = (opinions.agreement(known, pairs) for pairs in (self._edges, self._drawn))
        homophily, classes = _homophily(agreed, odds), known.shape[1]
        given = {**self._of_edges, "agreement": opinions.likelihood(agreed, homophily, classes)}
        drawn = {**self._of_drawn, "agreement": opinions.likelihood(of_drawn, homophily, classes)}
        return self._ranking(learn(given, drawn, odds), agreed)

    def _ranking(self, learnt: Learnt, agreed: Numbers) -> EdgeRanking:
        excess = self._excess
        components = {
            **self._of_edges,
            "agreement": agreed,
            "labelled_ends": excess.ends,
            "source_degree": self._degree[0],
            "target_degree": self._degree[1],
        }
        usual = float(np.median(excess.odds))
        contributions = {**learnt.contributions, "labelled_ends": excess.odds - usual}
        return EdgeRanking(
            edges=self._task.graph.edges.cpu(),
            suspicion=torch.from_numpy(learnt.suspicion),
            components={name: torch.from_numpy(np.asarray(value)) for name, value in components.items()},
            contributions={name: torch.from_numpy(value) for name, value in contributions.items()},
            weights=learnt.weights,
        )


def draw_pairs(around: Surroundings, labelled: Pairs, count: int, rng: np.random.Generator) -> Pairs:
    """Pairs that are no edges: half of them anywhere, half with a labelled end."""
    nodes = len(around.degree)
    one = rng.integers(0, nodes, count)
    if labelled.size:
        one[count // 2 :] = rng.choice(labelled, count - count // 2)
    two = rng.integers(0, nodes, count)
    linked = np.asarray(around.links[one, two]).ravel() > 0
    free = (one != two) & ~linked
    if not free.any():
        raise InputError("edges can only be ranked against pairs that are none (got a graph that has every edge)")
    return np.stack([one[free], two[free]])


def _homophily(agreed: Numbers, odds: Numbers) -> float:
    """The share of edges within a class, of those that are probably real."""
    real = 1 / (1 + np.exp(odds))
    return float(np.clip((agreed * real).sum() / real.sum(), 0.02, 0.98))


def _check(task: Task, *, seed: int, epochs: int, rounds: int) -> NodeClassification:
    check_seed(seed)
    lengths = {"epochs": epochs, "rounds": rounds}
    for rule in ("be a whole number", "be at least 1"):
        require(rule, **lengths)
    if not isinstance(task, NodeClassification):
        raise InputError(f"edges are ranked by what classes nodes have (got the task '{task.name}')")
    if task.graph.num_edges < 2 or task.num_outputs < 2:
        got = f"{task.graph.num_edges} edges and {task.num_outputs} classes"
        raise InputError(f"edges to be ranked must be two or more, and classes too (got {got})")
    return task
