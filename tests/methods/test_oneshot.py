from fastglt.masks import flatten
from fastglt.methods import OneShot
from fastglt.training.loop import train
from tests.helpers import BUDGET, method_of, training_of


def test_it_cuts_once_and_then_trains_under_fixed_masks() -> None:
    training = training_of()
    best = train(training, method_of("oneshot", 0.5, 0.9))
    assert [record.stage for record in training.history] == ["oneshot"] * 4 + ["train"] * 20
    changed = [record.epoch for record in training.history if record.edges_dropped or record.weights_dropped]
    assert changed == [4]
    assert not any(record.edges_grown or record.weights_grown for record in training.history)
    assert best.epoch > 4


def test_the_smallest_soft_masks_of_the_best_epoch_go() -> None:
    training, method = training_of(), method_of("oneshot", 0.5, 0.9)
    method.begin(training)
    for _ in range(BUDGET.oneshot_epochs):
        training.run_epoch(method)
    best = training.best
    assert best is not None
    method.after_epoch(training)
    assert best.soft_edge_mask is not None
    kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
    for score, chosen in (
        (best.soft_edge_mask, training.masks.edges.kept),
        (flatten(best.soft_weight_masks), kept),
    ):
        assert float(score.abs()[chosen].min()) >= float(score.abs()[~chosen].max())


def test_it_has_no_options() -> None:
    assert OneShot().options == {}
