"""Cuts by whole units: exact counts, the weakest first, single weights for the remainder."""

import pytest
import torch
from torch import Tensor

from fastglt.graphs.features import Features
from fastglt.methods.parts.unit_cuts import UNIT_SCORES, keep_units, relative, unit_strengths
from fastglt.models import GCN, GIN
from fastglt.models.units import Units
from tests.helpers import house, randn


def units_of(hidden: int = 4) -> Units:
    """Of a GCN with three features and two classes: five weights a unit."""
    return GCN(3, hidden, 2).units(Features(randn(7, 3)), house())


def everything(units: Units) -> Tensor:
    return torch.ones(int(units.keep(torch.ones(units.count, dtype=torch.bool)).numel()), dtype=torch.bool)


class TestKeepUnits:
    def test_whole_units_for_a_count_that_fits(self) -> None:
        units = units_of()
        strength = torch.tensor([3.0, 1.0, 4.0, 2.0])
        kept = keep_units(units, everything(units), 10, strength=strength, single=None, seed=0)
        assert torch.equal(kept, units.keep(torch.tensor([True, False, True, False])))

    def test_single_weights_for_the_remainder(self) -> None:
        """Eight of ten: two units stay, and the two smallest of their weights go."""
        units = units_of()
        strength, single = torch.tensor([3.0, 1.0, 4.0, 2.0]), torch.arange(20.0)
        kept = keep_units(units, everything(units), 8, strength=strength, single=single, seed=0)
        whole = units.keep(torch.tensor([True, False, True, False]))
        expected = whole.clone()
        expected[whole.nonzero().squeeze(1)[:2]] = False
        assert torch.equal(kept, expected)

    @pytest.mark.parametrize("count", range(1, 21))
    def test_any_count_in_as_few_units_as_hold_it(self, count: int) -> None:
        units = units_of()
        kept = keep_units(units, everything(units), count, strength=None, single=None, seed=3)
        assert int(kept.sum()) == count
        assert int(units.alive(kept).sum()) <= -(-count // 5)

    def test_a_layer_never_loses_its_last_unit(self) -> None:
        network = GIN(3, 4, 2, depth=2)
        units = network.units(Features(randn(7, 3)), house())
        strength = units.layer.double()  # one layer weaker than the others
        everywhere = torch.ones(sum(shape.numel() for shape in network.weight_shapes.values()), dtype=torch.bool)
        kept = keep_units(units, everywhere, 20, strength=strength, single=None, seed=0)
        one_each = keep_units(units, everywhere, 1, strength=strength, single=torch.ones(kept.numel()), seed=0)
        assert int(one_each.sum()) == 1
        whole = units.alive(kept)
        assert [bool(whole[units.layer == layer].any()) for layer in range(3)] == [True] * 3

    def test_what_is_gone_stays_gone(self) -> None:
        units = units_of()
        alive = units.keep(torch.tensor([True, False, True, True]))
        kept = keep_units(units, alive, 10, strength=torch.tensor([1.0, 9.0, 2.0, 3.0]), single=None, seed=0)
        assert torch.equal(kept, units.keep(torch.tensor([False, False, True, True])))

    def test_equals_fall_by_the_seed(self) -> None:
        units = units_of(32)
        drawn = [keep_units(units, everything(units), 40, strength=None, single=None, seed=s) for s in (1, 1, 2)]
        assert torch.equal(drawn[0], drawn[1])
        assert not torch.equal(drawn[0], drawn[2])


class TestStrengths:
    def test_by_hand(self) -> None:
        """Unit 0 has a weight of 3 into it and one of 4 out of it, unit 1 has 6 and 1; all others are zero."""
        units = units_of(2)
        weights = torch.tensor([3.0, 6.0, 0, 0, 0, 0, 4.0, 0, 1.0, 0])
        masks = torch.ones(10)
        norm = unit_strengths(units, "norm", weights, masks, seed=0)
        assert norm.tolist() == pytest.approx([2 * 5 / (5 + 37**0.5), 2 * 37**0.5 / (5 + 37**0.5)])
        assert unit_strengths(units, "effect", weights, masks, seed=0).tolist() == pytest.approx([24 / 18, 12 / 18])
        assert unit_strengths(units, "mask", weights, masks, seed=0).tolist() == pytest.approx([1, 1])

    def test_soft_masks_count(self) -> None:
        units, weights = units_of(2), torch.ones(10)
        masks = units.keep(torch.tensor([True, False])).float()
        for rule in ("mask", "norm"):
            first, second = unit_strengths(units, rule, weights, masks, seed=0).tolist()
            assert first > second

    @pytest.mark.parametrize("rule", UNIT_SCORES)
    def test_each_rule_without_soft_masks(self, rule: str) -> None:
        found = unit_strengths(units_of(), rule, torch.arange(20.0), seed=0)
        assert found.shape == (4,)
        assert float(found.mean()) == pytest.approx(1)

    def test_layers_are_compared_by_their_means(self) -> None:
        units = GIN(3, 2, 2, depth=2).units(Features(randn(7, 3)), house())
        found = relative(units, torch.tensor([1.0, 3.0, 10.0, 30.0, 0.0, 0.0], dtype=torch.float64))
        assert found.tolist() == [0.5, 1.5, 0.5, 1.5, 0, 0]
