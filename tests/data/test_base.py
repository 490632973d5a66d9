import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fastglt.data.base import Parts, normalised_rows, seeded_split, tidy_edges


@given(sizes=st.lists(st.integers(1, 120), min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_a_split_covers_every_node_once(sizes: list[int], seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    masks = seeded_split(labels, seed)
    assert (np.sum(masks, axis=0) == 1).all()
    for label, size in enumerate(sizes):
        train, val, test = (int(mask[labels == label].sum()) for mask in masks)
        assert 1 <= train <= 20
        assert val <= 30
        if size >= 3:
            assert min(val, test) >= 1
        if size >= 80:
            assert (train, val) == (20, 30)


def test_unlabelled_nodes_are_in_no_mask() -> None:
    masks = seeded_split(np.array([-1, 0, 0, 0, -1]), seed=0)
    assert np.sum(masks, axis=0).tolist() == [0, 1, 1, 1, 0]


def test_only_the_seed_moves_a_split() -> None:
    labels = np.arange(300) % 3
    one, again, other = (seeded_split(labels, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.train, other.train)


def test_undirected_edges_are_listed_both_ways_once() -> None:
    source, target = np.array([0, 1, 0, 2, 2]), np.array([1, 0, 1, 2, 1])
    assert tidy_edges(source, target, nodes=3).tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_directed_edges_keep_their_direction() -> None:
    source, target = np.array([0, 0, 2, 2]), np.array([1, 1, 2, 1])
    assert tidy_edges(source, target, nodes=3, directed=True).tolist() == [[0, 2], [1, 1]]


def test_no_edges_stay_no_edges() -> None:
    none = np.empty(0, dtype=np.int64)
    assert tidy_edges(none, none, nodes=3).shape == (2, 0)


def test_self_loops_stay_on_request() -> None:
    source, target = np.array([0, 1]), np.array([0, 2])
    assert tidy_edges(source, target, nodes=3, keep_loops=True).tolist() == [[0, 1, 2], [0, 2, 1]]


def test_rows_are_normalised_unless_they_sum_to_less_than_one() -> None:
    features = csr_array(np.array([[1.0, 3.0], [0.0, 0.0], [0.25, 0.25]]))
    assert normalised_rows(features).tolist() == [[0.25, 0.75], [0.0, 0.0], [0.25, 0.25]]


def test_parts_become_a_pyg_object() -> None:
    labels = np.array([0, 1, 1, 0, 1, 0])
    edges = tidy_edges(np.array([0, 1]), np.array([2, 3]), nodes=6)
    parts = Parts(x=np.eye(6, dtype=np.float32), y=labels, edges=edges, masks=seeded_split(labels, 0))
    dataset = parts.dataset(name="toy", metric="accuracy")
    assert dataset.data.validate()
    assert dataset.data.x.dtype == torch.float32
    assert dataset.data.y.dtype == dataset.data.edge_index.dtype == torch.int64
    assert dataset.data.train_mask.dtype == torch.bool
    with pytest.raises(AttributeError):
        dataset.name = "other"  # type: ignore[misc]
