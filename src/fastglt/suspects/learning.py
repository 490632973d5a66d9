"""What evidence is worth, learnt without test labels: edges of the graph against pairs that are certainly none.

Some of the given edges are themselves added ones. So each counts in learning as far as it is believed to be real,
and belief and learning take turns.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastglt.suspects.evidence import Numbers

_TURNS = 4
_ITERATIONS = 1000  # at most
_NONE = 1e-12  # a deviation that is rounding


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """A logistic combination, and what it says of the given edges."""

    weights: dict[str, float]  # of the evidence in standard deviations; below 0: the more, the less suspicious
    contributions: dict[str, Numbers]  # to each edge's log odds of being an added one
    suspicion: Numbers  # in [0, 1]: the probability that it is


def learn(given: Mapping[str, Numbers], drawn: Mapping[str, Numbers], odds: Numbers) -> Learnt:
    """Tell the given edges' evidence from that of pairs drawn at random; `odds` is what is known before."""
    from sklearn.linear_model import LogisticRegression

    names = list(given)
    edges, others = (np.stack([evidence[name] for name in names], 1) for evidence in (given, drawn))
    centre, scale = edges.mean(0), edges.std(0)
    scale[scale < _NONE] = 1.0  # all edges are alike in this; by a scale of nothing pairs would lie anywhere
    edges, others = (edges - centre) / scale, (others - centre) / scale
    both, which = np.concatenate([edges, others]), np.repeat([0, 1], [len(edges), len(others)])
    suspicion, model = _probability(odds), LogisticRegression(C=1.0, max_iter=_ITERATIONS)
    for _ in range(_TURNS):
        real = np.maximum(1 - suspicion, 1e-6)
        counts = np.concatenate([real / real.sum(), np.full(len(others), 1 / len(others))]) * len(edges)
        model.fit(both, which, sample_weight=counts)
        suspicion = _probability(model.decision_function(edges) + odds)
    weights = model.coef_[0]
    return Learnt(
        weights={name: float(weight) for name, weight in zip(names, weights, strict=True)},
        contributions={name: edges[:, place] * weights[place] for place, name in enumerate(names)},
        suspicion=suspicion,
    )


def _probability(log_odds: Numbers) -> npt.NDArray[np.float64]:
    from scipy.special import expit

    found: npt.NDArray[np.float64] = expit(log_odds)
    return found
