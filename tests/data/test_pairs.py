import numpy as np
import pytest

from fastglt.data.pairs import Blocks, distinct_pairs

SIZES = np.array([3, 4, 5])
ROOM = {True: 3 + 6 + 10, False: 66 - 19}


def blocks(propensity: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None) -> Blocks:
    return Blocks.of(SIZES, np.ones(12) if propensity is None else propensity)


@pytest.mark.parametrize("inside", [True, False])
def test_the_list_of_every_pair_is_complete(inside: bool) -> None:
    keys = blocks().every_pair(inside=inside)
    assert len(np.unique(keys)) == len(keys) == ROOM[inside]
    labels = blocks().labels
    assert ((labels[keys // 12] == labels[keys % 12]) == inside).all()


@pytest.mark.parametrize("inside", [True, False])
def test_any_number_of_pairs_up_to_all_of_them(inside: bool) -> None:
    every = blocks().every_pair(inside=inside)
    hubs = np.array([1e6, 1, 1] * 4)
    for count in range(ROOM[inside] + 1):
        keys = distinct_pairs(np.random.default_rng(count), blocks(hubs), count, inside=inside, room=ROOM[inside])
        assert len(keys) == count
        assert len(np.unique(keys)) == count
        assert np.isin(keys, every).all()


def test_draws_follow_the_propensities() -> None:
    weights = np.ones(12)
    weights[0] = 20
    keys = blocks(weights).draw(np.random.default_rng(0), 10_000, inside=False)
    assert np.mean(keys // 12 == 0) == pytest.approx(1 - (11 / 31) * (8 / 29), abs=0.05)
