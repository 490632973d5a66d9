"""Edge rules on trial: none suits every graph, so candidates are trained shortly and compared on validation."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from torch import Tensor

from fastglt.masks import Mask, Masks
from fastglt.methods.parts.agreement import ForestRule
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot

# What differs from the forest rule as it is set.
EDGE_RULES: dict[str, dict[str, object]] = {
    "forest": {},
    "half": {"random_share": 0.5},
    "random": {"random_share": 1.0},
    "degree": {"strength": "degree", "local": False},
}
TRIAL_LR = 0.01  # at least: a trial is short
SAFE, LEAD = "half", 0.005  # the mixture was never the worst, so another rule must be better by this much


def winner(scores: Mapping[str, float]) -> str:
    """The rule with the highest score, if it leads the mixture clearly; else the mixture.

    >>> winner({"forest": 0.81, "half": 0.80}), winner({"forest": 0.803, "half": 0.80})
    ('forest', 'half')
    """
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] - scores[SAFE] > LEAD else SAFE


def named_rule(rule: ForestRule, name: str) -> ForestRule:
    """One of the candidates, made from the forest rule as it is set."""
    return replace(rule, **EDGE_RULES[name])  # type: ignore[arg-type]


def try_rules(
    training: Training,
    rules: Mapping[str, ForestRule],
    count: int,
    *,
    epochs: int,
    seed: int,
    at: Snapshot | None = None,
    trusted: Tensor | None = None,
) -> dict[str, float]:
    """The validation score of each rule's edges, after a short training from Θ0 under the weight masks in force.

    All have the same start, teacher and random numbers. The score is the mean over the second half of the epochs,
    which tells rules apart better than the best of them does.
    """
    lr = max(TRIAL_LR, training.recipe.lr)
    recipe = replace(training.recipe, lr=lr, weight_decay=training.weight_decay)
    found: dict[str, float] = {}
    for name, rule in rules.items():
        edges = Mask(rule.choose(training, count, seed=seed, at=at, trusted=trusted))
        masks = Masks(edges=edges, weights=training.masks.weights)
        trial = Training(
            training.start, training.task, recipe, seed=training.seed, masks=masks, teacher=training.teacher
        )
        for _ in range(epochs):
            trial.run_epoch(Hooks())
        found[name] = fmean(record.val for record in trial.history[epochs // 2 :])
    return found
