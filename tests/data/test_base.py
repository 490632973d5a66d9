from typing import Any

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
    assert normalised_rows(features).toarray().tolist() == [[0.25, 0.75], [0.0, 0.0], [0.25, 0.25]]


def test_normalised_rows_are_sorted_and_hold_no_zeros() -> None:
    entries = np.array([2.0, 3.0, 0.0, 4.0]), np.array([2, 0, 1, 2]), np.array([0, 3, 4])
    scaled = normalised_rows(csr_array(entries, shape=(2, 3)))
    assert scaled.has_sorted_indices
    assert (scaled.indices.tolist(), scaled.indptr.tolist()) == ([0, 2, 2], [0, 2, 3])
    assert scaled.data.tolist() == pytest.approx([0.6, 0.4, 1.0])
    assert scaled.dtype == np.float32


FEATURES = np.eye(6, dtype=np.float32) * np.array([1, 2, 0, 4, 5, 6], dtype=np.float32)


def parts(x: Any) -> Parts:
    labels = np.array([0, 1, 1, 0, 1, 0])
    edges = tidy_edges(np.array([0, 1]), np.array([2, 3]), nodes=6)
    return Parts(x=x, y=labels, edges=edges, masks=seeded_split(labels, 0))


@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_parts_become_tensors(form: Any) -> None:
    made = parts(form(FEATURES))
    tensors = made.dataset(name="toy", metric="accuracy").tensors
    assert list(tensors) == ["x", "y", "edge_index", "train_mask", "val_mask", "test_mask"]
    assert torch.equal(tensors["x"].to_dense(), torch.from_numpy(FEATURES))
    assert tensors["x"].layout == (torch.sparse_csr if form is csr_array else torch.strided)
    assert tensors["y"].tolist() == made.y.tolist()
    assert tensors["edge_index"].tolist() == made.edges.tolist()
    assert tensors["val_mask"].tolist() == made.masks.val.tolist()


def test_sparse_features_stay_as_they_are() -> None:
    x = csr_array(FEATURES)
    tensor = parts(x).dataset(name="toy", metric="accuracy").tensors["x"]
    assert tensor.values().tolist() == x.data.tolist() == [1, 2, 4, 5, 6]
    assert tensor.values().data_ptr() == x.data.ctypes.data  # not copied


@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_the_pyg_object_is_made_when_asked_for(form: Any) -> None:
    dataset = parts(form(FEATURES)).dataset(name="toy", metric="accuracy")
    assert "data" not in vars(dataset)
    assert dataset.data is dataset.data
    assert torch.equal(dataset.data.x, torch.from_numpy(FEATURES))  # with the zeros written out
    assert dataset.data.validate()
    assert dataset.data.x.dtype == torch.float32
    assert dataset.data.y.dtype == dataset.data.edge_index.dtype == torch.int64
    assert dataset.data.train_mask.dtype == torch.bool
    with pytest.raises(AttributeError):
        dataset.name = "other"  # type: ignore[misc]
