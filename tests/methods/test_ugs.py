"""A case small enough to know every gradient: see `references.by_hand`.

The gradient in the masks of edges 0–1, 0–2, 1–2 is −2, 2, 0: the first speaks for the class of the only node that
is trained on, the second against it, the third does not reach it. In the masks of the weights 4 0 / 1 3 it is
−2 0 / −1 3. Adam's first step is the learning rate, 0.01, against each gradient's sign.
"""

from typing import Any

import pytest

from fastglt.masks import flatten
from fastglt.methods import UGS
from fastglt.training.loop import Training
from tests.helpers import method_of
from tests.methods.references import by_hand, flat, kept_weights


def one_round(graph: float, weight: float, **options: Any) -> tuple[list[float], list[float], Training]:
    """The soft masks after the only epoch of the first round, and the training after the cut."""
    shares = {"edge_share": 0.9, "weight_share": 0.9}
    training = by_hand()
    method = method_of(
        "ugs", graph, weight, round_epochs=1, **{"edge_l1": 0.0, "weight_l1": 0.0, **shares, **options}
    )
    method.begin(training)
    training.run_epoch(method)
    edges = [] if training.soft_edge_mask is None else training.soft_edge_mask.tolist()
    weights = flatten(training.soft_weight_masks).tolist()
    method.after_epoch(training)
    return edges, weights, training


def test_the_edge_that_speaks_for_the_wrong_class_goes_first() -> None:
    edges, _, training = one_round(1 / 3, 0.0)
    assert edges == pytest.approx([1.01, 0.99, 1.0], abs=2e-5)
    assert flat(training.masks.edges) == [True, False, True]


def test_the_weight_that_speaks_for_the_wrong_class_goes_first() -> None:
    _, weights, training = one_round(0.0, 0.25)
    assert weights == pytest.approx([1.01, 1.0, 1.01, 0.99], abs=2e-5)
    assert kept_weights(training) == [True, True, True, False]


def test_the_l1_term_takes_what_nothing_speaks_for() -> None:
    edges, weights, training = one_round(2 / 3, 0.5, edge_l1=0.1, weight_l1=0.1)
    assert edges == pytest.approx([1.01, 0.99, 0.99], abs=2e-5)  # gradients −1.9, 2.1, 0.1
    assert weights == pytest.approx([1.01, 0.99, 1.01, 0.99], abs=2e-5)  # −1.9, 0.1, −0.9, 3.1
    assert flat(training.masks.edges) == [True, False, False]
    assert kept_weights(training) == [True, False, True, False]


def test_what_the_loss_holds_against_a_strong_l1_term_stays() -> None:
    _, weights, training = one_round(0.0, 0.75, weight_l1=1.5)
    assert weights == pytest.approx([1.01, 0.99, 0.99, 0.99], abs=2e-5)  # −0.5, 1.5, 0.5, 4.5
    assert kept_weights(training) == [True, False, False, False]


def test_the_second_round_ranks_only_what_is_left() -> None:
    training = by_hand()
    method = method_of("ugs", 0.0, 0.4, round_epochs=1, weight_share=0.25, weight_l1=1e-3)
    method.begin(training)
    kept = []
    for _ in range(3):
        training.run_epoch(method)
        method.after_epoch(training)
        kept.append(kept_weights(training))
    # The zero and the 3 fall, the zero by the l1 term alone. One goes at first; in the second round the other one:
    # without the 3 the class scores are 6 and 0, p = 0.0025, and the 4 and the 1 still rise by −0.0099 and −0.0049.
    assert sorted([kept[0][1], kept[0][3]]) == [False, True]
    assert kept[1] == kept[0]
    assert kept[2] == [True, False, True, False]


def test_its_defaults_are_the_papers() -> None:
    method = UGS()
    assert (method.edge_share, method.weight_share, method.round_epochs) == (0.05, 0.2, 200)
    assert (method.search_lr, method.search_weight_decay) == (0.01, 5e-4)
