import numpy as np
import pytest
import torch

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.suspects import evidence
from fastglt.suspects.evidence import Numbers, Surroundings, row_dots, unit_rows
from tests.helpers import both_ways

PAIRS = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]


@pytest.fixture
def around() -> Surroundings:
    words = torch.zeros(5, 20)
    words[[0, 0, 1, 1, 2, 3, 4], [0, 1, 1, 2, 2, 3, 0]] = 1.0
    return Surroundings(Graph.from_edge_index(both_ways(PAIRS), num_nodes=5), Features(words))


def reference(around: Surroundings, i: int, j: int, *, linked: bool) -> tuple[float, float, float]:
    """The evidence of one pair with dense matrices, after its own edge was taken out."""
    rows, links = around.rows.toarray(), around.links.toarray()
    weights = 1 / np.log(np.maximum(links.sum(1), 2))
    common = float((links[i] * links[j] * weights).sum())
    links = links.copy()
    if linked:
        links[i, j] = links[j, i] = 0
    sums = links @ rows

    def cosine(a: Numbers, b: Numbers) -> float:
        length = np.linalg.norm(a) * np.linalg.norm(b)
        return float(np.dot(a, b) / length) if length else 0.0

    return cosine(rows[i], rows[j]), (cosine(rows[i], sums[j]) + cosine(rows[j], sums[i])) / 2, common


@pytest.mark.parametrize("linked", [True, False])
def test_evidence_is_that_of_the_graph_without_the_pairs_own_edge(around: Surroundings, linked: bool) -> None:
    pairs = np.array(PAIRS if linked else [(0, 3), (1, 4), (0, 4)]).T
    found = around.of(pairs, linked=linked)
    for place, (i, j) in enumerate(pairs.T.tolist()):
        expected = reference(around, i, j, linked=linked)
        names = ("feature_similarity", "neighbour_similarity", "common_neighbours")
        assert [found[name][place] for name in names] == pytest.approx(expected, abs=1e-5)


def test_parts_of_the_work_do_not_matter(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = np.array(PAIRS).T
    whole = row_dots(around.rows, around.links @ around.rows, i, j)
    monkeypatch.setattr(evidence, "_AT_A_TIME", 3)
    np.testing.assert_array_equal(row_dots(around.rows, around.links @ around.rows, i, j), whole)


def test_features_that_are_no_words_are_standardised() -> None:
    x = torch.tensor([[1.0, 101.0], [3.0, 99.0], [2.0, 100.0]])
    rows = unit_rows(Features(x)).toarray()
    half = float(np.sqrt(0.5))
    np.testing.assert_allclose(rows, np.array([[-half, half], [half, -half], [0.0, 0.0]]), atol=1e-9)
