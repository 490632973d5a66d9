import math
from collections.abc import Iterator

import pytest
import torch

from fastglt import InputError
from fastglt.features import Features
from fastglt.masks import Mask, Masks
from fastglt.methods import FixedMasks
from fastglt.models import GAT, GCN
from fastglt.records import Scores
from fastglt.seeds import derive
from fastglt.training import Recipe, Training, train
from tests.helpers import BUDGET, drop, randn, toy_task, training_of


def no_extra(training: Training, logits: torch.Tensor) -> None:
    return None


def some_masks() -> Masks:
    """Drops 5 of 60 edges and about half of the weights."""
    halves = {"layer1.weight": randn(12, 8, seed=1) > 0, "layer2.weight": randn(8, 3, seed=2) > 0}
    return Masks(edges=drop(60, 0, 7, 20, 21, 59), weights={name: Mask(kept) for name, kept in halves.items()})


class TestScores:
    @pytest.mark.parametrize(
        ("one", "other", "better"),
        [
            ((0.8, 9.0), (0.7, 0.1), True),  # the score comes first
            ((0.7, 0.1), (0.8, 9.0), False),
            ((0.8, 0.5), (0.8, 0.6), True),  # then the lower loss
            ((0.8, 0.6), (0.8, 0.5), False),
            ((0.8, 0.5), (0.8, 0.5), False),  # equals are not better: the earlier one stays
        ],
    )
    def test_validation_decides(self, one: tuple[float, float], other: tuple[float, float], better: bool) -> None:
        first, second = (Scores(val=val, val_loss=loss, test=test) for (val, loss), test in ((one, 0), (other, 1)))
        assert first.better_than(second) == better


class TestRecipe:
    @pytest.mark.parametrize(
        ("setting", "value", "rule"),
        [
            ("lr", 0.0, "lr must be positive"),
            ("lr", float("nan"), "lr must be positive"),
            ("weight_decay", -1.0, "weight_decay must not be negative"),
            ("weight_decay", float("nan"), "weight_decay must not be negative"),
        ],
    )
    def test_impossible_settings_are_refused(self, setting: str, value: float, rule: str) -> None:
        with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
            Recipe(**{setting: value})


class TestBest:
    def best_of(self, scores: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch) -> int | None:
        answers: Iterator[Scores] = iter([Scores(val=val, val_loss=loss, test=0.0) for val, loss in scores])
        monkeypatch.setattr(Training, "evaluate", lambda training: next(answers))
        training = training_of()
        for _ in scores:
            training.run_epoch(no_extra)
        return None if training.best is None else training.best.epoch

    def test_the_highest_validation_score(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.5, 1.0), (0.7, 0.9), (0.6, 0.1)], monkeypatch) == 2

    def test_a_tie_goes_to_the_lower_loss(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.7, 0.9), (0.7, 0.8), (0.7, 0.85)], monkeypatch) == 2

    def test_a_full_tie_goes_to_the_earlier(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.1, 1.0), (0.7, 0.8), (0.7, 0.8)], monkeypatch) == 2

    def test_only_epochs_at_the_target_counts_can_be_the_best(self) -> None:
        training = training_of()
        for target in ((60, 119), (59, 120), (60, 120)):
            training.target = target
            training.run_epoch(no_extra)
        assert training.best is not None
        assert training.best.epoch == 3

    def test_the_snapshot_is_a_copy(self) -> None:
        training = training_of()
        training.run_epoch(no_extra)
        assert training.best is not None
        before = {name: value.clone() for name, value in training.best.state.items()}
        best = training.best
        training.run_epoch(no_extra)
        assert all(torch.equal(best.state[name], before[name]) for name in before)


class TestMasks:
    def test_pruned_weights_and_their_moments_stay_exactly_zero(self) -> None:
        masks = some_masks()
        training = training_of(masks=masks)
        for _ in range(5):
            training.run_epoch(no_extra)
        for name, mask in masks.weights.items():
            weight = training.weights[name].detach()
            assert torch.equal(weight != 0, mask.kept)
            for moment in ("exp_avg", "exp_avg_sq"):
                assert torch.equal(training.optimizer.state[training.weights[name]][moment] != 0, mask.kept)

    def test_a_masked_network_trains_like_one_built_small(self) -> None:
        """Without hidden units 3–7, a network of eight is a network of three."""
        big, small = GCN(12, 8, 3, dropout=0.0), GCN(12, 3, 3, dropout=0.0)
        with torch.no_grad():
            small.layer1.weight.copy_(big.layer1.weight[:, :3])
            small.layer2.weight.copy_(big.layer2.weight[:3])
        columns, rows = torch.zeros(12, 8), torch.zeros(8, 3)
        columns[:, :3], rows[:3] = 1, 1
        weights = {"layer1.weight": Mask(columns), "layer2.weight": Mask(rows)}
        masked = training_of(network=big, masks=Masks(edges=drop(60, 3), weights=weights))
        shapes = {"layer1.weight": (12, 3), "layer2.weight": (3, 3)}
        full = Masks.full(60, shapes)
        plain = training_of(network=small, masks=Masks(edges=drop(60, 3), weights=full.weights))
        for _ in range(10):
            masked.run_epoch(no_extra)
            plain.run_epoch(no_extra)
        torch.testing.assert_close(masked.logits(None), plain.logits(None), rtol=1e-4, atol=1e-5)

    def test_a_mask_of_another_shape_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([60]), weights={"layer1.weight": Mask.full([8, 12])})
        with pytest.raises(InputError, match=r"'layer1.weight' must have its shape \(12, 8\) \(got \(8, 12\)\)"):
            training_of(masks=masks)

    def test_a_mask_of_too_few_edges_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([59]), weights={})
        with pytest.raises(InputError, match=r"each of 60 elements \(got shape \(59,\)\)"):
            training_of(masks=masks)

    def test_revising_notes_what_went_and_what_returned(self) -> None:
        training = training_of(masks=some_masks())
        training.run_epoch(no_extra)
        first = torch.zeros(12, 8)
        first[0] = 1
        weights = {"layer1.weight": Mask(first), "layer2.weight": Mask.full([8, 3])}
        old = some_masks().weights
        kept_in_row = int(old["layer1.weight"].kept[0].sum())
        training.revise(Masks(edges=drop(60, 0, 1), weights=weights))
        record = training.history[-1]
        assert (record.edges_dropped, record.edges_grown) == (1, 4)
        assert record.weights_dropped == old["layer1.weight"].count - kept_in_row
        assert record.weights_grown == 8 - kept_in_row + 24 - old["layer2.weight"].count


class TestSoftMasks:
    def test_soft_weights_multiply(self) -> None:
        training = training_of()
        training.begin_stage("soft", soft_weights=True)
        with torch.no_grad():
            training.weight_score["layer1.weight"].fill_(0.5)
        twin = training_of()
        with torch.no_grad():
            twin.weights["layer1.weight"].mul_(0.5)
        training.network.eval()
        twin.network.eval()
        torch.testing.assert_close(training.logits(None), twin.logits(None))

    def test_soft_edges_are_those_of_the_kept_edges(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("soft", soft_edges=True)
        assert training.edge_score is not None
        kept = some_masks().edges.kept
        with torch.no_grad():
            training.edge_score.copy_(torch.where(kept, torch.arange(60.0) / 60, 1e6))
        training.network.eval()
        expected = training.network(training.task.x, training.graph, (torch.arange(60.0) / 60)[kept])
        assert torch.equal(training.logits(None), expected)

    def test_scores_start_at_one_learn_and_do_not_decay(self) -> None:
        training = training_of()
        training.begin_stage("soft", soft_edges=True, soft_weights=True)
        assert training.edge_score is not None
        assert bool((training.edge_score == 1).all())
        groups = training.optimizer.param_groups
        assert [group["weight_decay"] for group in groups] == [5e-4, 0]
        assert [group["lr"] for group in groups] == [0.01, 0.01]
        training.run_epoch(no_extra)
        assert bool((training.edge_score != 1).any())
        assert all(bool((score != 1).any()) for score in training.weight_score.values())

    def test_edge_scores_go_on_in_the_next_stage_with_a_fresh_optimiser(self) -> None:
        training = training_of()
        training.begin_stage("one", soft_edges=True, soft_weights=True)
        training.run_epoch(no_extra)
        before = training.edge_score
        training.begin_stage("two", soft_edges=True)
        assert training.edge_score is before
        assert training.weight_score == {}
        assert not training.optimizer.state
        assert training.best is None


def test_gradients_are_summed_over_kept_and_pruned_weights_alike() -> None:
    training = training_of(masks=some_masks())
    training.begin_stage("sum", sum_gradients=True)
    expected = torch.zeros(12, 8)
    for _ in range(3):
        torch.manual_seed(derive(training.seed, "epoch", training.epoch))
        training.network.train()
        loss = training.task.loss(training.logits(training.task.train), training.task.train)
        expected += torch.autograd.grad(loss, training.weights["layer1.weight"])[0].abs()
        training.run_epoch(no_extra)
    pruned = ~some_masks().weights["layer1.weight"].kept
    assert bool((expected[pruned] > 0).any())
    torch.testing.assert_close(training.gradient_sum["layer1.weight"], expected)


def test_the_history_has_a_line_for_every_epoch() -> None:
    training = training_of(masks=some_masks())
    train(training, FixedMasks(budget=BUDGET))
    assert [record.epoch for record in training.history] == list(range(1, 25))
    assert [record.graph_sparsity for record in training.history] == [pytest.approx(5 / 60)] * 24
    assert {record.stage for record in training.history} == {"train"}
    assert training.history[-1].loss < training.history[0].loss


def test_an_extra_loss_is_added() -> None:
    plain, raised = training_of(), training_of()
    plain.run_epoch(no_extra)
    raised.run_epoch(lambda training, logits: logits.sum() * 0 + 5)
    assert raised.history[0].loss == pytest.approx(plain.history[0].loss + 5)


def test_training_learns() -> None:
    best = train(training_of(), FixedMasks(budget=BUDGET))
    assert best.scores.val > 0.5  # three classes: chance is a third


def test_a_diverging_loss_is_told() -> None:
    network = GCN(12, 8, 3)
    with torch.no_grad():
        network.layer1.weight.fill_(1e30)
        network.layer2.weight.fill_(1e30)
    with pytest.raises(InputError, match=r"the loss must stay finite \(got (nan|inf) in epoch 1\); try a lower lr"):
        training_of(network=network).run_epoch(no_extra)


def test_the_callers_network_and_random_state_are_left_alone() -> None:
    network = GCN(12, 8, 3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    train(training_of(network=network, masks=some_masks()), FixedMasks(budget=BUDGET))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_the_callers_random_state_does_not_matter() -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results.append(train(training_of(network=GAT(12, 4, 3, heads=2)), FixedMasks(budget=BUDGET)))
    assert all(torch.equal(value, results[1].state[name]) for name, value in results[0].state.items())


def test_no_test_nodes_give_no_test_score() -> None:
    task = toy_task()
    object.__setattr__(task, "test", torch.empty(0, dtype=torch.int64))
    training = Training(GCN(12, 8, 3), task, BUDGET.recipe, seed=0)
    assert math.isnan(training.evaluate().test)


def test_test_labels_have_no_influence() -> None:
    task, twin = toy_task(), toy_task()
    twin.y[twin.test] = (twin.y[twin.test] + 1) % 3
    bests = [
        train(Training(GCN(12, 8, 3), chosen, BUDGET.recipe, seed=0), FixedMasks(budget=BUDGET))
        for chosen in (task, twin)
    ]
    assert bests[0].epoch == bests[1].epoch
    assert all(torch.equal(value, bests[1].state[name]) for name, value in bests[0].state.items())


def test_features_are_shared_not_copied() -> None:
    training = training_of()
    assert isinstance(training.task.x, Features)
    assert training.graph is training.task.graph
