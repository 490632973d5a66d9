"""What UGS, WD-GLT and ACE have in common, shown on UGS."""

from typing import Any

import pytest
import torch

from fastglt import InputError
from fastglt.masks import Mask, flatten
from fastglt.methods.base import best_soft_masks, get_masks
from fastglt.methods.parts.rounds import Rounds
from fastglt.models import GCN
from fastglt.training.loop import Training, train
from tests.helpers import counts, method_of, training_of


def rounds(graph: float, weight: float, **options: Any) -> Rounds:
    """Rounds of 3 + 3 epochs that remove 30 % of the remaining edges and 60 % of the remaining weights."""
    chosen = {"round_epochs": 3, "edge_share": 0.3, "weight_share": 0.6, **options}
    method = method_of("ugs", graph, weight, **chosen)
    assert isinstance(method, Rounds)
    return method


def at(method: Rounds, epoch: int, training: Training | None = None) -> Training:
    """A training after an epoch, with what the method does after it."""
    training = training or training_of()
    method.begin(training)
    while training.epoch < epoch:
        training.run_epoch(method)
        method.after_epoch(training)
    return training


class TestStages:
    def test_each_round_trains_masks_and_then_its_ticket(self) -> None:
        # 0.7² = 0.49 of the edges are left after two rounds, 0.4² = 0.16 of the weights
        method = rounds(0.5, 0.8)
        assert method.rounds == 2
        assert method.stages == ((1, "mask", 3), (1, "train", 6), (2, "mask", 9), (2, "train", 12))
        assert method.epochs == 12
        training = training_of()
        train(training, method)
        assert [record.stage for record in training.history] == (["mask"] * 3 + ["train"] * 3) * 2

    def test_the_slower_mask_decides_how_many_rounds_there_are(self) -> None:
        assert rounds(0.5, 0.95).rounds == 4  # the weights need 0.4⁴ = 0.0256
        assert rounds(0.9, 0.6).rounds == 7  # the edges need 0.7⁷ = 0.082
        assert rounds(0.0, 0.6).rounds == 1
        assert rounds(0.0, 0.0).rounds == 1  # nothing to remove: one round all the same

    def test_only_the_last_ticket_may_be_trained(self) -> None:
        method = rounds(0.5, 0.8, train_rounds=False)
        assert method.stages == ((1, "mask", 3), (2, "mask", 6), (2, "train", 9))
        training = training_of()
        best = train(training, method)
        assert [record.stage for record in training.history] == ["mask"] * 6 + ["train"] * 3
        assert [counts(snapshot.masks) for snapshot in training.rounds] == [(30, 24)]
        assert best is training.rounds[0]

    def test_masks_are_the_same_whether_the_tickets_on_the_way_are_trained_or_not(self) -> None:
        first = at(rounds(0.5, 0.8), 3).masks
        assert first == at(rounds(0.5, 0.8, train_rounds=False), 3).masks


class TestCuts:
    def test_counts_of_every_round_and_each_mask_stops_at_its_own_target(self) -> None:
        training = training_of()
        train(training, rounds(0.5, 0.95))
        # Edges, of 60: 18 go, then 30.6 would, but half is the target.
        # Weights, of 120: 72 go, 100.8 → 101, 112.32 → 112, and 0.9744 would be beyond 0.95.
        expected = [(42, 48), (30, 19), (30, 8), (30, 6)]
        assert [counts(snapshot.masks) for snapshot in training.rounds] == expected
        dropped = {r.epoch: (r.edges_dropped, r.weights_dropped) for r in training.history if r.weights_dropped}
        assert dropped == {3: (18, 72), 9: (12, 29), 15: (0, 11), 21: (0, 2)}
        assert not any(record.edges_grown or record.weights_grown for record in training.history)

    def test_the_smallest_masks_of_the_best_epoch_go_of_what_is_left(self) -> None:
        method = rounds(0.5, 0.8, edge_l1=0.0, weight_l1=0.0)  # what has gone stays at 1, above many others
        training = at(method, 8)  # the second round's last mask epoch is still to come
        training.run_epoch(method)
        before, sizes = get_masks(training), best_soft_masks(training)
        method.after_epoch(training)
        for was, size, kept in zip(before, sizes, get_masks(training), strict=True):
            assert size is not None
            assert not bool((kept & ~was).any())
            assert float(size[~was].min()) > float(size[was].min())
            assert float(size[kept].min()) >= float(size[was & ~kept].max())

    def test_only_the_tickets_own_training_counts(self) -> None:
        training = training_of()
        best = train(training, rounds(0.5, 0.8))
        for number, snapshot in enumerate(training.rounds):
            own = training.history[6 * number + 3 : 6 * number + 6]
            winner = max(own, key=lambda record: (record.val, -record.val_loss, -record.epoch))
            assert (snapshot.epoch, snapshot.scores.val) == (winner.epoch, winner.val)
        assert best is training.rounds[-1]
        assert best.soft_edge_mask is None


class TestRewinding:
    @pytest.mark.parametrize("end", [3, 6, 9])
    def test_every_stage_starts_from_the_initial_weights_under_the_masks(self, end: int) -> None:
        network = GCN(12, 8, 3)
        with torch.no_grad():
            network.layer1.bias.fill_(0.25)
        training = at(rounds(0.5, 0.8), end, training_of(network=network))
        for name, value in training.network.state_dict().items():
            mask = training.masks.weights.get(name, Mask.full(value.shape))
            assert torch.equal(value, network.state_dict()[name] * mask.kept)
        assert not training.optimizer.state
        assert training.best is None

    def test_soft_masks_start_anew_at_one_with_a_little_noise(self) -> None:
        seen = []
        for end in (0, 6):
            training = at(rounds(0.5, 0.8), end)
            assert training.soft_edge_mask is not None
            scores = torch.cat([training.soft_edge_mask, flatten(training.soft_weight_masks)]).detach()
            assert 0 < float((scores - 1).abs().max()) <= 1.1e-5
            assert len(scores.unique()) > 100  # type: ignore[no-untyped-call]
            seen.append(scores)
        assert not torch.equal(*seen)

    def test_a_ticket_is_trained_without_soft_masks(self) -> None:
        training = at(rounds(0.5, 0.8), 3)
        assert (training.stage, training.soft_edge_mask, training.soft_weight_masks) == ("train", None, {})
        assert training.target == (42, 48)


class TestPressure:
    def test_only_mask_training_has_l1_terms(self) -> None:
        method = rounds(0.5, 0.8, edge_l1=0.5, weight_l1=0.25)
        training = training_of()
        method.begin(training)
        assert training.l1 == (0.5, 0.25)
        assert at(method, method.round_epochs).l1 == (0.0, 0.0)

    def test_masks_that_the_loss_does_not_move_shrink_by_the_learning_rate(self) -> None:
        method = rounds(0.5, 0.8, edge_l1=1e6, weight_l1=1e6)  # beside which the loss is nothing
        training = at(method, 1)
        assert training.soft_edge_mask is not None
        scores = torch.cat([training.soft_edge_mask, flatten(training.soft_weight_masks)]).detach()
        torch.testing.assert_close(scores, torch.full_like(scores, 0.99), rtol=0, atol=2e-5)


class TestOptions:
    def test_the_search_has_a_recipe_of_its_own(self) -> None:
        method = rounds(0.5, 0.8, search_lr=0.008, search_weight_decay=8e-5)
        assert (method.recipe.lr, method.recipe.weight_decay) == (0.008, 8e-5)
        assert (method.budget.recipe.lr, method.budget.recipe.weight_decay) == (0.01, 5e-4)

    @pytest.mark.parametrize(
        ("option", "value", "rule"),
        [
            ("round_epochs", 0, "round_epochs must be at least 1"),
            ("edge_share", 0.0, r"edge_share must lie in \(0, 1\)"),
            ("weight_share", 1.0, r"weight_share must lie in \(0, 1\)"),
            ("edge_l1", -1.0, "edge_l1 must not be negative"),
            ("weight_l1", float("nan"), "weight_l1 must not be negative"),
            ("search_lr", 0.0, "search_lr must be positive"),
            ("search_weight_decay", -1.0, "search_weight_decay must not be negative"),
        ],
    )
    def test_impossible_options_are_refused(self, option: str, value: float, rule: str) -> None:
        with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
            rounds(0.5, 0.8, **{option: value})
