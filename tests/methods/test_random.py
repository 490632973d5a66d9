import pytest
import torch

from fastglt.models import GCN
from fastglt.training import train
from tests.helpers import GRID, counts, method_of, training_of


@pytest.mark.parametrize(("sparsities", "kept"), GRID)
def test_the_ticket_has_exactly_the_target_counts(sparsities: tuple[float, float], kept: tuple[int, int]) -> None:
    best = train(training_of(), method_of("random", *sparsities))
    assert counts(best.masks) == kept


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
    assert training.edge_score is not None
    assert training.weight_decay == pytest.approx(training.recipe.weight_decay / 10)
    for name, mask in training.masks.weights.items():
        assert torch.equal(training.weights[name].detach(), network.get_parameter(name).detach() * mask.kept)


def test_the_seed_decides() -> None:
    one, again, other = (train(training_of(seed=seed), method_of("random", 0.5, 0.9)) for seed in (1, 1, 2))
    assert one.masks == again.masks
    assert all(torch.equal(value, again.state[name]) for name, value in one.state.items())
    assert one.masks != other.masks
