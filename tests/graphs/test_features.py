import pytest
import torch
from torch import Tensor

from fastglt.graphs import features as module
from fastglt.graphs.features import DenseRows, Features, SparseRows
from fastglt.kernels import Table, use_table
from tests.helpers import csr_tensor, randn, sparse_features, values_and_gradients

DENSE, SPARSE = randn(7, 20), sparse_features(7, 20).dense
MATRICES = {"dense": DENSE, "sparse": SPARSE, "with empty rows": SPARSE * (torch.arange(7) % 2).view(-1, 1)}


def given(matrix: Tensor, layout: str) -> Features:
    """The same features from a tensor of either layout."""
    return Features(csr_tensor(matrix) if layout == "csr" else matrix)


each_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
each_layout = pytest.mark.parametrize("layout", ["strided", "csr"])


@pytest.mark.usefixtures("backend")
@each_matrix
@each_layout
def test_the_product_equals_the_dense_one(matrix: Tensor, layout: str) -> None:
    features, weight = given(matrix, layout), randn(20, 5, seed=1)
    ours = values_and_gradients(lambda w: features @ w, weight)
    torch.testing.assert_close(ours, values_and_gradients(lambda w: matrix @ w, weight))
    assert torch.equal(features.dense, matrix)


@each_matrix
def test_a_sparse_tensor_is_the_same_features_as_a_dense_one(matrix: Tensor) -> None:
    one, other = given(matrix, "strided"), given(matrix, "csr")
    for name in ("num_nodes", "num_features", "num_nonzero", "is_sparse", "fingerprint", "device"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("indptr", "indices"):
        assert torch.equal(getattr(one.csr, name), getattr(other.csr, name)), name
        assert getattr(one.csr, name).dtype == getattr(other.csr, name).dtype, name
    assert torch.equal(one.values, other.values)
    weight, nodes = randn(20, 5, seed=1), torch.tensor([5, 0, 3])
    assert torch.equal(one @ weight, other @ weight)
    assert torch.equal(one.of(nodes) @ weight, other.of(nodes) @ weight)
    assert one.of(nodes).width == other.of(nodes).width


@each_layout
def test_few_non_zeros_make_the_product_sparse(layout: str) -> None:
    matrix = torch.zeros(10, 10)
    matrix.view(-1)[:15] = 1
    assert given(matrix, layout).is_sparse
    assert isinstance(given(matrix, layout).of(None), SparseRows)
    matrix.view(-1)[:16] = 1
    assert not given(matrix, layout).is_sparse
    assert isinstance(given(matrix, layout).of(None), DenseRows)


def test_the_table_says_what_is_few() -> None:
    with use_table(Table(features=((torch.inf, "sparse"),))):
        features = Features(DENSE)
        assert features.is_sparse
        torch.testing.assert_close(features @ randn(20, 5), DENSE @ randn(20, 5))
    with use_table(Table(features=((torch.inf, "dense"),))):
        assert not Features(SPARSE).is_sparse
        assert features.is_sparse  # decided already


@each_layout
def test_counts_and_width(layout: str) -> None:
    sparse = given(SPARSE, layout)
    assert (sparse.num_nodes, sparse.num_features, sparse.num_nonzero, sparse.of(None).width) == (7, 20, 7, 1.0)
    assert given(DENSE, layout).of(None).width == 20


@each_matrix
@each_layout
def test_rows_of_some_nodes_multiply_as_those_rows(matrix: Tensor, layout: str) -> None:
    features, nodes, weight = given(matrix, layout), torch.tensor([5, 0, 3]), randn(20, 5, seed=1)
    ours = values_and_gradients(lambda w: features.of(nodes) @ w, weight)
    torch.testing.assert_close(ours, values_and_gradients(lambda w: matrix[nodes] @ w, weight))
    assert features.of(nodes) is features.of(nodes)


@each_layout
def test_values_are_the_non_zeros_row_by_row(layout: str) -> None:
    features = given(torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]), layout)
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
@each_layout
def test_the_fingerprint_tells_features_apart(changed: Tensor, layout: str) -> None:
    base = torch.tensor([[1.0, 2.0, 0.0]])
    assert given(base, layout).fingerprint == Features(base.clone()).fingerprint
    assert given(base, layout).fingerprint != given(changed, layout).fingerprint


@each_layout
def test_all_zero_features_are_fine(layout: str) -> None:
    assert (given(torch.zeros(2, 3), layout) @ randn(3, 4)).tolist() == [[0] * 4] * 2


@each_layout
def test_to_moves_only_when_it_must(layout: str) -> None:
    features = given(SPARSE, layout)
    assert features.to("cpu") is features
    assert features.to(torch.device("cpu")) is features


def test_only_a_few_sets_of_rows_are_remembered() -> None:
    features = Features(SPARSE)
    sets = [torch.tensor([node]) for node in range(7)] + [torch.tensor([0, 1]), torch.tensor([1, 2])]
    first = features.of(sets[0])
    for nodes in sets[1:8]:
        features.of(nodes)
    assert features.of(sets[0]) is first
    features.of(sets[8])
    assert features.of(sets[0]) is not first


class TestHandover:
    """Evaluation on some nodes leaves the next training step its product."""

    TRAIN = torch.tensor([1, 4, 6, 2])
    JUDGED: dict[str, list[int]] = {  # noqa: RUF012
        "every training row": [0, 6, 1, 2, 3, 4, 5],
        "some of them": [4, 0, 5, 2],
        "none of them": [0, 3, 5],
    }

    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """For each product under gradients, whether it was known beforehand."""
        noted: list[bool] = []
        multiply = SparseRows.multiply

        def noting(rows: SparseRows, weight: Tensor, known: Tensor | None = None) -> Tensor:
            if torch.is_grad_enabled():
                noted.append(known is not None)
            return multiply(rows, weight, known)

        monkeypatch.setattr(module.SparseRows, "multiply", noting)
        return noted

    @pytest.fixture
    def features(self) -> Features:
        matrix = randn(7, 30, seed=1) * (randn(7, 30, seed=2) > 1.2)
        matrix[3] = 0
        features = Features(matrix)
        assert features.is_sparse
        return features

    def train(self, features: Features, weight: Tensor) -> list[Tensor]:
        """The product of a training step, and its gradient."""
        out = features.of(self.TRAIN) @ weight
        (gradient,) = torch.autograd.grad((out * randn(*out.shape, seed=9)).sum(), weight)
        return [out.detach().clone(), gradient]

    def evaluate(self, features: Features, weight: Tensor, nodes: Tensor) -> None:
        with torch.no_grad():
            out = features.of(nodes) @ weight
        torch.testing.assert_close(out, features.dense[nodes] @ weight.detach())

    def fresh(self, features: Features, weight: Tensor) -> list[Tensor]:
        """What a step without any evaluation before gives."""
        return self.train(Features(features.dense), weight.detach().clone().requires_grad_())

    @pytest.mark.usefixtures("backend")
    @pytest.mark.parametrize("judged", JUDGED)
    @pytest.mark.parametrize("width", [1, 7, 64])
    def test_a_step_has_the_same_bits_with_it(
        self, features: Features, judged: str, width: int, known: list[bool]
    ) -> None:
        weight, nodes = randn(30, width, seed=3).requires_grad_(), torch.tensor(self.JUDGED[judged])
        expected = self.fresh(features, weight)
        self.train(features, weight)
        for _ in range(2):  # the second time, the plan is there
            with torch.no_grad():
                weight.mul_(0.5)
            expected = self.fresh(features, weight)
            self.evaluate(features, weight, nodes)
            del known[:]
            ours = self.train(features, weight)
            assert known == [True]
            assert all(torch.equal(one, other) for one, other in zip(ours, expected, strict=True))

    def test_what_was_left_is_taken_once(self, features: Features, known: list[bool]) -> None:
        weight = randn(30, 4).requires_grad_()
        self.train(features, weight)
        self.evaluate(features, weight, torch.arange(7))
        for _ in range(2):
            self.train(features, weight)
        assert known == [False, True, False]

    def test_not_after_the_weight_has_changed_in_place(self, features: Features, known: list[bool]) -> None:
        weight, nodes = randn(30, 4, seed=3).requires_grad_(), torch.arange(7)
        self.train(features, weight)
        self.evaluate(features, weight, nodes)
        with torch.no_grad():
            weight.mul_(2)
        ours = self.train(features, weight)
        assert known == [False, False]
        assert all(torch.equal(one, other) for one, other in zip(ours, self.fresh(features, weight), strict=True))

    def test_not_for_another_weight(self, features: Features, known: list[bool]) -> None:
        weight, other = (randn(30, 4, seed=seed).requires_grad_() for seed in (3, 4))
        self.train(features, weight)
        self.evaluate(features, weight, torch.arange(7))
        ours = self.train(features, other)
        assert known == [False, False]
        assert all(torch.equal(one, two) for one, two in zip(ours, self.fresh(features, other), strict=True))

    def test_not_for_other_rows(self, features: Features, known: list[bool]) -> None:
        weight = randn(30, 4, seed=3).requires_grad_()
        self.train(features, weight)
        self.evaluate(features, weight, torch.arange(7))
        rows = torch.tensor([0, 1, 2, 4])
        out = features.of(rows) @ weight
        assert known == [False, False]
        torch.testing.assert_close(out, features.dense[rows] @ weight)

    def test_not_for_what_is_computed_from_a_weight(self, features: Features, known: list[bool]) -> None:
        weight = randn(30, 4, seed=3).requires_grad_()
        for _ in range(2):
            computed = weight * 2
            out = features.of(self.TRAIN) @ computed
            torch.testing.assert_close(out, features.dense[self.TRAIN] @ computed)
            self.evaluate(features, computed, torch.arange(7))
        assert known == [False, False]

    def test_nor_is_it_lost_to_such_a_product(self, features: Features, known: list[bool]) -> None:
        """Attention multiplies the features with its weight and with a product of it."""
        weight, nodes = randn(30, 4, seed=3).requires_grad_(), torch.arange(7)
        self.train(features, weight)
        self.evaluate(features, weight, nodes)
        self.evaluate(features, weight.detach() * 2, nodes)
        features.of(self.TRAIN) @ (weight * 2)
        self.train(features, weight)
        assert known == [False, False, True]

    def test_other_nodes_may_be_judged_and_trained_next(self, features: Features, known: list[bool]) -> None:
        weight = randn(30, 4, seed=3).requires_grad_()
        for train in (self.TRAIN, torch.tensor([6, 0, 3])):
            for judged in self.JUDGED.values():
                nodes, expected = torch.tensor(judged), features.dense[train] @ weight.detach()
                features.of(train) @ weight
                self.evaluate(features, weight, nodes)
                del known[:]
                torch.testing.assert_close((features.of(train) @ weight).detach(), expected)
                assert known == [True]

    def test_a_product_in_between_does_no_harm(self, features: Features, known: list[bool]) -> None:
        """Two products with the same rows, as a network with two first layers takes them."""
        one, two = (randn(30, 4, seed=seed).requires_grad_() for seed in (3, 4))
        for _ in range(2):
            ours = [self.train(features, weight) for weight in (one, two)]
            for weight, (out, _) in zip((one, two), ours, strict=True):
                torch.testing.assert_close(out, features.dense[self.TRAIN] @ weight.detach())
            for weight in (one, two):
                self.evaluate(features, weight, torch.arange(7))
        assert known[:2] == [False, False]

    def test_evaluation_alone_leaves_nothing(self, features: Features, known: list[bool]) -> None:
        weight = randn(30, 4, seed=3).requires_grad_()
        self.evaluate(features, weight, torch.arange(7))
        self.train(features, weight)
        assert known == [False]

    def test_the_result_may_be_changed_in_place(self, features: Features) -> None:
        """What a caller does with one product does not reach another."""
        weight, nodes = randn(30, 4, seed=3).requires_grad_(), torch.arange(7)
        self.train(features, weight)
        with torch.no_grad():
            product = features.of(nodes) @ weight
            product.zero_()
        ours = self.train(features, weight)
        assert all(torch.equal(one, other) for one, other in zip(ours, self.fresh(features, weight), strict=True))


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_more_nodes_come_after_the_last(share: float) -> None:
    draw = torch.Generator().manual_seed(0)
    dense = torch.randn(9, 40, generator=draw) * (torch.rand(9, 40, generator=draw) < share)
    before = Features(dense[:6])
    grown = before.append(dense[6:])
    assert grown.is_sparse == before.is_sparse == (share < 0.5)
    assert torch.equal(grown.dense, dense)
    assert torch.equal(grown.append(dense[:0]).dense, dense)
    weight = torch.randn(40, 3, generator=draw)
    torch.testing.assert_close(grown @ weight, dense @ weight)
