from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fastglt.masks import Masks, as_vector
from fastglt.models import GCN
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from tests.helpers import drop, training_of
from tests.training.trainings import some_masks


class TestStages:
    def test_with_regrow_pruned_weights_are_trained_and_keep_their_moments(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("regrow", regrow=True)
        training.run_epoch(Hooks())
        name, pruned = "layer2.weight", ~some_masks().weights["layer2.weight"].kept
        weight = training.weights[name]
        assert bool(weight[pruned].any())
        training.apply(training.masks)
        assert not weight[pruned].any()
        assert bool(training.optimizer.state[weight]["exp_avg"][pruned].any())

    def test_without_it_they_lose_both(self) -> None:
        training = training_of()
        training.run_epoch(Hooks())
        training.apply(some_masks())
        name, pruned = "layer2.weight", ~some_masks().weights["layer2.weight"].kept
        assert not training.weights[name][pruned].any()
        assert not training.optimizer.state[training.weights[name]]["exp_avg"][pruned].any()

    def test_regrowing_ends_with_its_stage(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("regrow", regrow=True)
        training.begin_stage("train")
        training.run_epoch(Hooks())
        for name, mask in some_masks().weights.items():
            assert not training.weights[name][~mask.kept].any()

    def test_extra_tensors_are_trained_without_decay(self) -> None:
        class Pulling(Hooks):
            def extra_loss(self, training: Training, logits: Tensor) -> Tensor:
                return -training.extra["pulled"].sum()

        given = {"pulled": torch.tensor([1.0, 2.0]), "idle": torch.ones(3)}
        training = training_of()
        training.begin_stage("extra", extra=given, weight_decay=100.0)
        training.run_epoch(Pulling())
        assert training.extra["pulled"].tolist() == pytest.approx([1.01, 2.01])  # one step of Adam
        assert training.extra["idle"].tolist() == [1, 1, 1]
        assert given["pulled"].tolist() == [1, 2]  # the caller's stay as they are
        training.begin_stage("plain")
        assert training.extra == {}

    def test_method_state_outlives_stages(self) -> None:
        training = training_of()
        training.method_state["seen"] = torch.ones(2)
        training.begin_stage("next")
        training.rewind()
        assert list(training.method_state) == ["seen"]


class TestRewind:
    def rewound(self) -> Training:
        training = training_of(masks=some_masks())
        training.begin_stage("soft", soft_edges=True, soft_weights=True)
        for _ in range(3):
            training.run_epoch(Hooks())
        training.apply(Masks(edges=drop(60, 4), weights=some_masks().weights))
        training.rewind()
        return training

    def test_the_weights_lie_side_by_side_as_before(self) -> None:
        training = self.rewound()
        vector = as_vector(training.weights)
        assert all(part.untyped_storage().data_ptr() == vector.data_ptr() for part in training.weights.values())

    def test_the_network_is_the_initial_one_under_the_masks_in_force(self) -> None:
        training = self.rewound()
        fresh = training_of(masks=Masks(edges=drop(60, 4), weights=some_masks().weights))
        for name, value in fresh.network.state_dict().items():
            assert torch.equal(training.network.state_dict()[name], value)
        training.network.eval()
        fresh.network.eval()
        assert torch.equal(training.outputs(None), fresh.outputs(None))

    def test_soft_masks_moments_and_the_best_epoch_are_gone_but_not_what_happened(self) -> None:
        training = self.rewound()
        assert training.soft_edge_mask is None
        assert training.soft_weight_masks == {}
        assert not training.optimizer.state
        assert training.best is None
        assert (training.epoch, len(training.history)) == (3, 3)

    def test_it_trains_on_as_from_the_start(self) -> None:
        training = self.rewound()
        fresh = training_of(masks=training.masks)
        fresh.epoch = training.epoch  # the same random numbers
        for one in (training, fresh):
            one.begin_stage("train")
            one.run_epoch(Hooks())
        for name, value in fresh.network.state_dict().items():
            assert torch.equal(training.network.state_dict()[name], value)

    def test_the_start_itself_is_left_alone(self) -> None:
        network = GCN(12, 8, 3)
        training = training_of(network=network)
        training.rewind()
        training.run_epoch(Hooks())
        assert all(torch.equal(a, b) for a, b in zip(network.parameters(), GCN(12, 8, 3).parameters(), strict=True))


def test_a_round_keeps_its_best_epoch() -> None:
    training = training_of()
    training.run_epoch(Hooks())
    first = training.best
    assert first is not None
    training.end_round(1)
    training.rewind()
    training.begin_stage("again")
    for _ in range(3):
        training.run_epoch(Hooks())
    training.end_round(2)
    assert training.best is not None
    assert training.rounds == [replace(first, round=1), training.best]
    assert training.best.round == 2
    assert first.epoch == 1 < training.rounds[1].epoch
