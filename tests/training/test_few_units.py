"""Where few units are left training computes those alone, and ends with the numbers of the whole network."""

import pytest
import torch

from fastglt.masks import Mask, Masks, unflatten
from fastglt.models import GCN, GIN, Backbone
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.helpers import toy_task

HIDDEN, LEFT = 16, (3, 8, 9)


def masks_of(network: Backbone) -> Masks:
    """Three of sixteen units, and a few of their weights gone as well."""
    task = toy_task()
    units = network.units(task.x, task.graph)
    kept = torch.zeros(units.count, dtype=torch.bool)
    kept[list(LEFT)] = True
    weights = unflatten(units.keep(kept), {name: network.get_parameter(name) for name in network.prunable})
    weights["layer1.weight"][:3, LEFT[0]] = False
    return Masks(
        edges=Mask(torch.ones(task.graph.num_edges, dtype=torch.bool)),
        weights={name: Mask(part) for name, part in weights.items()},
    )


def trained(network: Backbone, masks: Masks, *, whole: bool, monkeypatch: pytest.MonkeyPatch) -> Training:
    training = Training(network, toy_task(), Recipe(lr=0.01), seed=0, masks=masks)
    if whole:
        monkeypatch.setattr(training, "_read_units", None)
    for _ in range(5):
        training.run_epoch(Hooks())
    return training


@pytest.mark.parametrize("kind", [GCN, GIN])
def test_the_numbers_are_those_of_the_whole_network(
    kind: type[GCN] | type[GIN], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = kind(12, HIDDEN, 3, dropout=0.0)
    masks = masks_of(network)
    few, whole = (trained(network, masks, whole=whole, monkeypatch=monkeypatch) for whole in (False, True))
    assert few._read_units is not None
    assert few._read_units.tolist() == list(LEFT)
    theirs = whole.network.state_dict()
    for name, value in few.network.state_dict().items():
        torch.testing.assert_close(value, theirs[name], atol=1e-6, rtol=1e-5)
    assert few.evaluate().val_loss == pytest.approx(whole.evaluate().val_loss, abs=1e-6)


def test_only_three_columns_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = GCN(12, HIDDEN, 3)
    training = Training(network, toy_task(), Recipe(), seed=0, masks=masks_of(network))
    widths: list[int] = []
    training.network.get_submodule("layer1").register_forward_hook(lambda *given: widths.append(given[2].shape[1]))
    training.run_epoch(Hooks())
    assert set(widths) == {len(LEFT)}
    training.begin_stage("regrow", regrow=True)  # weights of other units may return: all are computed
    training.run_epoch(Hooks())
    assert set(widths) == {len(LEFT), HIDDEN}


def test_many_units_are_computed_as_ever() -> None:
    network = GCN(12, HIDDEN, 3)
    whole = Masks.full(toy_task().graph.num_edges, network.weight_shapes)
    assert network.read_units({name: mask.kept for name, mask in whole.weights.items()}) is None
    deeper = GIN(12, HIDDEN, 3, depth=2)
    assert deeper.read_units({name: mask.kept for name, mask in masks_of(deeper).weights.items()}) is None
