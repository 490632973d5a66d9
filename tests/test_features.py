import pytest
import torch
from torch import Tensor

from fastglt.features import Features
from tests.helpers import randn, sparse_features, values_and_gradients


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("features", [Features(randn(7, 20)), sparse_features(7, 20)], ids=["dense", "sparse"])
def test_the_product_equals_the_dense_one(features: Features) -> None:
    weight = randn(20, 5, seed=1)
    ours = values_and_gradients(lambda w: features @ w, weight)
    torch.testing.assert_close(ours, values_and_gradients(lambda w: features.dense @ w, weight))


def test_few_non_zeros_make_the_product_sparse() -> None:
    dense = torch.zeros(10, 10)
    dense.view(-1)[:14] = 1
    assert Features(dense).is_sparse
    dense.view(-1)[:15] = 1
    assert not Features(dense).is_sparse


def test_counts_and_width() -> None:
    sparse = sparse_features(7, 20)
    assert (sparse.num_nodes, sparse.num_features, sparse.num_nonzero, sparse.of(None).width) == (7, 20, 7, 1.0)
    assert Features(randn(7, 20)).of(None).width == 20


@pytest.mark.parametrize("features", [Features(randn(7, 20)), sparse_features(7, 20)], ids=["dense", "sparse"])
def test_rows_of_some_nodes_multiply_as_those_rows(features: Features) -> None:
    nodes, weight = torch.tensor([5, 0, 3]), randn(20, 5, seed=1)
    ours = values_and_gradients(lambda w: features.of(nodes) @ w, weight)
    torch.testing.assert_close(ours, values_and_gradients(lambda w: features.dense[nodes] @ w, weight))
    assert features.of(nodes) is features.of(nodes)


def test_values_are_the_non_zeros_row_by_row() -> None:
    features = Features(torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]))
    assert features.values.tolist() == [2, 3, 5]
    assert features.csr.indices.tolist() == [1, 2, 0]
    assert features.csr.indptr.tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(
    "changed",
    [
        torch.tensor([[1.0, 0.0, 2.0]]),  # another place
        torch.tensor([[1.0, 2.0, 0.5]]),  # one more number
        torch.tensor([[1.0, 2.5, 0.0]]),  # another number
        torch.tensor([[1.0, 2.0]]),  # another shape
    ],
)
def test_the_fingerprint_tells_features_apart(changed: Tensor) -> None:
    base = torch.tensor([[1.0, 2.0, 0.0]])
    assert Features(base).fingerprint == Features(base.clone()).fingerprint
    assert Features(base).fingerprint != Features(changed).fingerprint


def test_all_zero_features_are_fine() -> None:
    assert (Features(torch.zeros(2, 3)) @ randn(3, 4)).tolist() == [[0] * 4] * 2


def test_to_moves_only_when_it_must() -> None:
    features = Features(randn(2, 3))
    assert features.to("cpu") is features
