"""The service of a ticket for links."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient

import fastglt
from fastglt.data.base import Names
from fastglt.deploy import Predictor
from fastglt.models.links import with_decoder
from fastglt.serve import Limits, make_app
from fastglt.tasks import LinkPrediction

from .servers import small_predictor

LIMITS = Limits(max_nodes=3, max_new_nodes=1, max_new_edges=3)


def link_predictor() -> Predictor:
    """The small predictor's rows, decoded."""
    small = small_predictor()
    network = with_decoder(small.network, {"name": "mlp"}, width=3, seed=0).eval().requires_grad_(False)
    return replace(small, network=network, task=LinkPrediction)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(link_predictor(), limits=LIMITS, ticket="f00d")) as client:
        yield client


def likely(predictor: Predictor, pairs: list[list[int]]) -> list[float]:
    return predictor.logits(pairs).double().sigmoid().squeeze(1).round(decimals=6).tolist()


def test_pairs_of_the_graph(client: TestClient) -> None:
    pairs = [[0, 5], [6, 2]]
    response = client.post("/predict", json={"pairs": pairs})
    assert response.status_code == 200, response.text
    assert response.json() == {
        "pairs": pairs,
        "probabilities": pytest.approx(likely(link_predictor(), pairs), abs=2e-6),
        "ticket": "f00d",
        "version": fastglt.__version__,
    }
    assert client.get("/").json()["classes"] is None


def test_pairs_with_a_new_node(client: TestClient) -> None:
    new = {"features": [[1.0, 0.0, 0.0, 2.0]], "edges": [[7, 0]]}
    found = client.post("/predict", json={"pairs": [[7, 3], [0, 1]], "new_nodes": new}).json()
    grown = link_predictor().with_nodes(torch.tensor(new["features"]), torch.tensor([[7], [0]]))
    assert found["probabilities"] == pytest.approx(likely(grown, [[7, 3], [0, 1]]), abs=2e-6)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({}, "pairs must be given"),
        ({"nodes": [1]}, "Extra inputs are not permitted"),
        ({"pairs": [[1]]}, "at least 2 items"),
        ({"pairs": [[1, 2, 3]]}, "at most 2 items"),
        ({"pairs": [[1, "2"]]}, "valid integer"),
        ({"pairs": [[0, 9]]}, "less than or equal to 7"),
        ({"pairs": [[0, 7]]}, "nodes must lie in 0 … 6 (got 7)"),
        ({"pairs": [[0, 1]] * 4}, "at most 3 items"),
        ({"ids": [["a", "b"]]}, "at most 0 items"),
    ],
)
def test_other_questions_are_refused(client: TestClient, question: dict[str, Any], reason: str) -> None:
    response = client.post("/predict", json=question)
    assert response.status_code == 422
    assert reason in response.json()["detail"].encode().decode("unicode_escape") or reason in response.text


def test_pairs_may_be_asked_for_by_their_ids() -> None:
    app = make_app(link_predictor(), limits=LIMITS, names=Names(nodes=tuple("abcdefg"), classes=()))
    with TestClient(app) as client:
        found = client.post("/predict", json={"pairs": [[0, 1]], "ids": [["g", "c"]]}).json()
        wrong = client.post("/predict", json={"ids": [["g", "x"]]})
        many = client.post("/predict", json={"pairs": [[0, 1]] * 3, "ids": [["g", "c"]]})
    assert found["pairs"] == [[0, 1], [6, 2]]
    assert (wrong.status_code, many.status_code) == (422, 422)
    assert "ids must be those of the graph's file" in wrong.text
    assert "pairs and ids must be at most 3 (got 4)" in many.text


def test_the_page_shows_pairs(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "PairRequest" in page
    assert "[[0, 5], [3, 7]]" in page
