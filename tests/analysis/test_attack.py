"""Attacks by their public function."""

import pytest

from fastglt import InputError, attack_edges
from tests.toy_data import toy_data


def test_a_setting_that_an_attack_has_not_is_told_with_those_that_it_has() -> None:
    with pytest.raises(InputError, match=r"the attack has no option 'foo'; it takes block, epochs, fresh, lr"):
        attack_edges(toy_data(), rate=0.1, foo=1)


def test_exactly_so_many_edges_are_changed() -> None:
    attack = attack_edges(toy_data(), rate=0.1, steps=4, fresh=2, block=500, width=4, epochs=5)
    assert attack.added.shape[1] + attack.removed.shape[1] == 6
