"""Forest tickets: FastGLT's weights on a graph that keeps what the network's own predictions agree about."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from fastglt.errors import require, unknown_name
from fastglt.methods.cuts import get_masks, set_masks
from fastglt.methods.fastglt import FastGLT
from fastglt.methods.parts.agreement import ForestRule
from fastglt.methods.parts.edge_trials import EDGE_RULES, named_rule, try_rules, winner
from fastglt.methods.parts.ranking import highest
from fastglt.suspects import rank_task_edges
from fastglt.system.seeds import derive
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot

AUTO = "auto"
TRIALS = "edge_trials"  # the scores of rules, in a search's state
SUSPICION = "suspicion"  # of every edge, in a robust search's state
_SINCE_0_2 = ("random_share", "edge_rule", "trial_epochs", "robust")


@dataclass(frozen=True, kw_only=True)
class Forest(FastGLT):
    """Edges by agreement and support under a maximum spanning forest; weights as FastGLT prunes and denoises them.

    After stage 1 and half of the denoising, when predictions have become good, the edges of each node are ranked
    twice: by how far the predictions for their two ends agree, and by how far they speak for the classes that are
    predicted. An edge is as strong as the better of the ranks that its two ends give it, measured by the degree;
    the two rankings count alike. A maximum spanning forest of the edges within predicted classes is kept first, so
    that no node loses its last good neighbour and nothing within a class falls apart; then the strongest of such
    edges, then of those between classes, to the exact count. No soft edge mask is trained and no label used beyond
    the training ones. With `revise` the edges are chosen anew after each further interval, by the predictions of
    that moment. With ``edge_rule=auto`` this rule, a half-random form of it, low degrees and chance are each
    trained shortly from Θ0 at the first choice, and the one that does best on validation nodes goes on. With
    `robust`, for graphs that somebody may have poisoned, edges that were probably added (`fastglt suspects`) are
    removed before the first epoch, the most suspicious first, and never return; the rule chooses among the others.
    A ticket only removes edges: none is added for those that are gone.
    """

    name = "forest"
    summary = "edges by agreement and support under a spanning forest, weights as in FastGLT"
    paper = ""

    edge_score: str = "forest"  # see below; degree and similarity are FastGLT's own
    strength: str = "agreement"  # of an edge: agreement, or the features' cosine, low degrees, random (ablations)
    classes: bool = True  # edges between two predicted classes go first, and no forest holds them
    local: bool = True  # compare an edge with the others of its ends, so that low degrees keep more; else with all
    support: bool = True  # count also how far an edge speaks for what its ends are predicted to be; if local
    forests: int | None = 1  # that share no edge, kept before any other; none: as many as fit; 0: not even one
    wait: float = 0.5  # share of the denoising intervals with the whole graph, before the first choice of edges
    revise: bool = True  # choose the edges anew after each interval that follows
    random_share: float = 0.0  # share of the kept edges that are drawn from all edges instead
    edge_rule: str = "forest"  # forest, half (of it at random), random, degree; or auto: the best on trial
    trial_epochs: int = 60  # of each rule, if they are tried
    robust: bool = False  # edges that somebody has probably added go first, before the search (fastglt suspects)

    @property
    def options(self) -> dict[str, Any]:
        """As of every method; what 0.1 did not know only where it is chosen, so that keys stay."""
        new = {field.name: field.default for field in fields(self) if field.name in _SINCE_0_2}
        return {name: value for name, value in super().options.items() if name not in new or value != new[name]}

    @property
    def needs(self) -> tuple[str, ...]:
        """To rank edges by suspicion, classes."""
        ranked = ("groups", "distribution") if self._avoids else ()
        return tuple(dict.fromkeys((*super().needs, *ranked)))

    @property
    def _avoids(self) -> bool:
        """Whether suspicious edges go first."""
        return self.robust and self.targets.graph_sparsity > 0

    def begin(self, training: Training) -> None:
        """As FastGLT does; a robust search starts without edges that were probably added."""
        if self._avoids:
            ranking = rank_task_edges(training.task, seed=derive(training.seed, "suspects"))
            training.method_state[SUSPICION] = ranking.suspicion
            trusted = self.trusted(training)
            assert trusted is not None, "they have just been ranked"
            set_masks(training, trusted, get_masks(training)[1])
        super().begin(training)

    def trusted(self, training: Training) -> Tensor | None:
        """All edges but the most suspicious: as many as were probably added, or as the target has to remove."""
        if SUSPICION not in training.method_state:
            return None
        suspicion = training.method_state[SUSPICION].cpu()
        count, _ = self.targets.kept(training)
        gone = min(round(float(suspicion.sum())), len(suspicion) - count)
        return ~highest(suspicion, gone, derive(training.seed, "suspects"))

    @property
    def forest(self) -> ForestRule | None:
        """The rule with this method's options; while rules are on trial, the first of them."""
        if super().forest is None:
            return None
        return self._rule if self.edge_rule == AUTO else named_rule(self._rule, self.edge_rule)

    @property
    def _rule(self) -> ForestRule:
        return ForestRule(**{field.name: getattr(self, field.name) for field in fields(ForestRule)})

    def choose_forest(self, training: Training, *, interval: int, at: Snapshot | None = None) -> Tensor | None:
        """As FastGLT does; where the rule is still open, rules are tried at the first choice."""
        first = self.forest is not None and self.forest.chooses_after(interval, self._intervals)
        if self.edge_rule == AUTO and first and TRIALS not in training.method_state:
            count, _ = self.targets.kept(training)
            rules = {name: named_rule(self._rule, name) for name in EDGE_RULES}
            seed = derive(training.seed, "forest", interval)
            shared: dict[str, Any] = {"seed": seed, "at": at, "trusted": self.trusted(training)}
            scores = try_rules(training, rules, count, epochs=self.trial_epochs, **shared)
            training.method_state[TRIALS] = torch.tensor(list(scores.values()), dtype=torch.float64)
        return super().choose_forest(training, interval=interval, at=at)

    def rule_now(self, training: Training) -> ForestRule | None:
        """The rule with this method's options, or that which has won the trial."""
        if TRIALS not in training.method_state:
            return self.forest
        return named_rule(self._rule, winner(_by_rule(training.method_state[TRIALS])))

    def findings(self, training: Training) -> dict[str, Any]:
        """Which rule has won, what each scored on validation nodes; how many edges were probably added."""
        found: dict[str, Any] = {}
        if SUSPICION in training.method_state:
            found["suspects"] = round(float(training.method_state[SUSPICION].sum()))
        if TRIALS in training.method_state:
            trials = _by_rule(training.method_state[TRIALS])
            found |= {"edge_rule": winner(trials), "edge_rule_trials": trials}
        return found

    def decided_by(self, findings: Mapping[str, Any]) -> "Forest":
        """With the rule that has won."""
        return replace(self, edge_rule=findings["edge_rule"]) if "edge_rule" in findings else self

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edge_rule not in (*EDGE_RULES, AUTO):
            raise unknown_name("edge rule", self.edge_rule, (*EDGE_RULES, AUTO))
        require("be a whole number", trial_epochs=self.trial_epochs)
        require("be at least 1", trial_epochs=self.trial_epochs)
        _ = self._rule  # checks them


def _by_rule(scores: Tensor) -> dict[str, float]:
    return dict(zip(EDGE_RULES, scores.tolist(), strict=True))
