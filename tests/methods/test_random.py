import pytest
import torch

from fastglt.models import GCN
from fastglt.training.loop import train
from tests.helpers import counts, method_of, training_of


def test_the_masks_stand_before_the_first_epoch_and_stay() -> None:
    training, method = training_of(), method_of("random", 0.5, 0.9)
    method.begin(training)
    masks = training.masks
    assert counts(masks) == (30, 12)
    assert train(training_of(), method).masks == masks


def test_it_trains_from_the_initial_weights_as_every_sparse_search_does() -> None:
    network = GCN(12, 8, 3)
    training = training_of(network=network)
    method_of("random", 0.5, 0.9).begin(training)
    assert training.soft_edge_mask is not None
    assert training.weight_decay == pytest.approx(training.recipe.weight_decay / 10)
    for name, mask in training.masks.weights.items():
        assert torch.equal(training.weights[name].detach(), network.get_parameter(name).detach() * mask.kept)
