"""The service answers as its predictor does, and says what is wrong with everything else."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor
from torch_geometric.nn import GCNConv, GraphSAGE

import fastglt
from fastglt import InputError, compile_ticket
from fastglt.data.base import Names
from fastglt.deploy import Predictor
from fastglt.graphs.features import Features
from fastglt.serve import Limits, make_app
from tests.toy_data import quick_ticket, toy_data

from .servers import small_predictor

NEW = [[0.5, -1.0, 0.0, 2.0], [0.0, 0.0, 1.5, 0.0]]
SPARSE = {"indices": [[0, 1, 3], [2]], "values": [[0.5, -1.0, 2.0], [1.5]]}
EDGES = [[7, 0], [8, 7], [4, 8]]


@pytest.fixture
def client() -> Iterator[TestClient]:
    limits = Limits(max_nodes=5, max_new_nodes=2, max_new_edges=3)
    app = make_app(small_predictor(), limits=limits, ticket="f00d")
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient, **question: Any) -> Any:
    response = client.post("/predict", json=question)
    assert response.status_code == 200, response.text
    return response.json()


def test_nodes_of_the_graph(client: TestClient) -> None:
    answer = ask(client, nodes=[6, 2, 2])
    assert answer == {
        "nodes": [6, 2, 2],
        "classes": small_predictor().predict([6, 2, 2]).tolist(),
        "probabilities": None,
        "ticket": "f00d",
        "version": fastglt.__version__,
    }


class TestNames:
    NAMES = Names(nodes=tuple("abcdefg"), classes=("x", "y", "z"))

    def client(self, **names: Any) -> TestClient:
        app = make_app(small_predictor(), limits=Limits(max_nodes=3), names=self.NAMES._replace(**names))
        return TestClient(app)

    def test_nodes_may_be_asked_for_by_their_ids(self) -> None:
        with self.client() as client:
            answer = ask(client, ids=["g", "b"], nodes=[4], new_nodes={"features": [[1, 0, 0, 2]]})
        classes = small_predictor().with_nodes([[1, 0, 0, 2]], [[], []]).predict([4, 6, 1, 7]).tolist()
        assert (answer["nodes"], answer["ids"]) == ([4, 6, 1, 7], ["e", "g", "b", None])
        assert (answer["classes"], answer["labels"]) == (classes, ["xyz"[kind] for kind in classes])

    def test_classes_may_have_no_names(self) -> None:
        with self.client(classes=()) as client:
            answer = ask(client, ids=["c"])
        assert (answer["nodes"], answer["ids"], answer["labels"]) == ([2], ["c"], None)

    @pytest.mark.parametrize(
        ("question", "reason"),
        [
            ({"ids": ["a", "h"]}, "ids must be those of the graph's file (got 'h')"),
            ({"ids": [1]}, "valid string"),
            ({"ids": []}, "at least 1 item"),
            ({}, "nodes, ids, new_nodes or several of them must be given"),
            ({"nodes": [0, 1], "ids": ["a", "b"]}, "nodes and ids must be at most 3 (got 4)"),
        ],
    )
    def test_what_does_not_fit_is_explained(self, question: Any, reason: str) -> None:
        with self.client() as client:
            response = client.post("/predict", json=question)
        assert (response.status_code, reason in response.json()["detail"]) == (422, True), response.text

    def test_without_names_there_are_no_ids(self, client: TestClient) -> None:
        response = client.post("/predict", json={"ids": ["a"]})
        assert (response.status_code, "Extra inputs" in response.json()["detail"]) == (422, True)


def test_probabilities_on_request(client: TestClient) -> None:
    answer = ask(client, nodes=[0, 5], probabilities=True)
    expected = small_predictor().logits([0, 5]).softmax(1)
    torch.testing.assert_close(torch.tensor(answer["probabilities"]), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("features", [NEW, SPARSE])
def test_new_nodes_are_there_for_one_request(client: TestClient, features: Any) -> None:
    grown = small_predictor().with_nodes(torch.tensor(NEW), torch.tensor(EDGES).T)
    expected = grown.logits([0, 7, 8]).softmax(1)
    new = {"features": features, "edges": EDGES}
    answer = ask(client, nodes=[0], new_nodes=new, probabilities=True)
    assert answer["nodes"] == [0, 7, 8]
    torch.testing.assert_close(torch.tensor(answer["probabilities"]), expected, rtol=0, atol=1e-6)
    assert ask(client, new_nodes=new)["classes"] == expected[1:].argmax(1).tolist()
    assert not torch.allclose(expected[0], small_predictor().logits([0])[0].softmax(0))
    assert ask(client, nodes=[0], probabilities=True)["probabilities"][0] == pytest.approx(
        small_predictor().logits([0])[0].softmax(0).tolist(), abs=1e-6
    )
    assert client.post("/predict", json={"nodes": [7]}).status_code == 422


def test_a_new_node_needs_no_edge(client: TestClient) -> None:
    expected = small_predictor().with_nodes(torch.tensor(NEW), torch.zeros(2, 0, dtype=torch.int64))
    assert ask(client, new_nodes={"features": NEW})["classes"] == expected.predict([7, 8]).tolist()


def new(features: Any = NEW, edges: Any = ()) -> dict[str, Any]:
    return {"new_nodes": {"features": features, "edges": list(edges)}}


WRONG: list[tuple[Any, str]] = [
    ({"nodes": [0, 7]}, "nodes.1: Input should be less than or equal to 6 (got 7)"),
    ({"nodes": [-1]}, "nodes.0: Input should be greater than or equal to 0"),
    ({"nodes": [10**300]}, "nodes.0"),
    ({"nodes": [1.0]}, "valid integer"),
    ({"nodes": ["1"]}, "valid integer (got '1')"),
    ({"nodes": [True]}, "valid integer"),
    ({"nodes": [float("nan")]}, "valid integer (got nan)"),
    ({"nodes": []}, "at least 1 item"),
    ({"nodes": [0] * 6}, "at most 5 items"),
    ({"nodes": None}, "valid list (got None)"),
    ({"nodes": [0], "probabilities": "yes"}, "valid boolean"),
    ({"nodes": [0], "colour": 1}, "colour: Extra inputs are not permitted"),
    ({}, "nodes, new_nodes or both must be given"),
    ([0], "body"),
    (None, "body"),
    (new(features=[[1.0, 2.0]]), "features.dense.0: List should have at least 4 items"),
    (new(features=[[1.0] * 5]), "features.dense.0: List should have at most 4 items"),
    (new(features=[]), "at least 1 item"),
    (new(features=NEW + NEW), "at most 2 items"),
    (new(features=[[0.0, 0.0, float("nan"), 0.0]]), "finite number"),
    (new(features=[[0.0, 0.0, float("inf"), 0.0]]), "finite number"),
    (new(features=[[0.0, 0.0, 10**400, 0.0]]), "features.dense.0.2"),
    (new(features=[[0.0, 0.0, 1e31, 0.0]]), "less than or equal to"),
    (new(features=7), "features.sparse"),
    (new(features={"indices": [[4]], "values": [[1.0]]}), "less than or equal to 3 (got 4)"),
    (new(features={"indices": [[0, 0]], "values": [[1.0, 1.0]]}), "must be distinct"),
    (new(features={"indices": [[0]], "values": [[1.0, 1.0]]}), "the same number of nodes, and of entries"),
    (new(features={"indices": [[0]], "values": [[1.0], [1.0]]}), "the same number of nodes, and of entries"),
    (new(features={"indices": [[0]]}), "values: Field required"),
    (new(edges=[[0, 5]]), "every new edge must have one of the new nodes, 7 … 8"),
    (new(features=NEW[:1], edges=[[0, 8]]), "node ids in edge_index must lie in 0 … 7"),
    (new(edges=[[7, 9]]), "less than or equal to 8 (got 9)"),
    (new(edges=[[7]]), "edges.0: List should have at least 2 items"),
    (new(edges=[[7, 0, 1]]), "edges.0: List should have at most 2 items"),
    (new(edges=[[7, 0]] * 4), "at most 3 items"),
]


@pytest.mark.parametrize(("question", "reason"), WRONG)
def test_what_does_not_fit_is_explained(client: TestClient, question: Any, reason: str) -> None:
    response = client.post("/predict", content=json.dumps(question), headers={"Content-Type": "application/json"})
    assert response.status_code == 422, response.text
    assert reason in response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"nodes": [0]} {}',
        b'{"nodes": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"nodes": [' + b"9" * 5000 + b"]}",
        b'{"nodes": "\xff"}',
        b'{"nodes": "\\ud800", "\\ud800": 1}',
    ],
)
def test_what_is_no_json_is_refused(client: TestClient, body: bytes) -> None:
    response = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422), response.text
    assert "body" in response.json()["detail"]


def test_nothing_is_no_json(client: TestClient) -> None:
    response = client.post("/predict", headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()) == (400, {"detail": "the body must be JSON (got nothing)"})


def test_a_long_mistake_is_not_repeated(client: TestClient) -> None:
    response = client.post("/predict", json={"nodes": ["x" * 100_000], "y" * 100_000: 1})
    assert response.status_code == 422
    assert len(response.content) < 500


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/json5"])
def test_the_content_type_must_be_json(client: TestClient, kind: str) -> None:
    response = client.post("/predict", content=b'{"nodes": [0]}', headers={"Content-Type": kind})
    assert response.status_code == 415
    assert "must be application/json" in response.json()["detail"]


def test_json_with_a_charset_is_json(client: TestClient) -> None:
    kind = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/predict", content=b'{"nodes": [0]}', headers=kind).status_code == 200


def test_features_that_give_no_finite_score_are_refused() -> None:
    predictor = small_predictor()
    assert predictor.program is not None
    loud = replace(predictor, program=_louder(predictor))
    with TestClient(make_app(loud)) as client:
        response = client.post("/predict", json=new(features=[[1e30] * 4]))
        assert response.status_code == 422
        assert "must give finite outputs" in response.json()["detail"]
        assert ask(client, nodes=[0])["classes"] == loud.predict([0]).tolist()


def _louder(predictor: Predictor) -> Any:
    from fastglt.models.gcn.program import GCNProgram

    state = {name: value * 1e10 for name, value in predictor.network.state_dict().items()}
    return GCNProgram(state)


def test_a_ticket_without_finite_scores_is_not_served() -> None:
    with pytest.raises(InputError, match="must give finite outputs"):
        make_app(replace(small_predictor(), x=Features(torch.full((7, 4), torch.nan))))


def test_without_new_nodes() -> None:
    with TestClient(make_app(small_predictor(), limits=Limits(max_new_nodes=0))) as client:
        response = client.post("/predict", json=new())
        assert (response.status_code, "new_nodes: Input should be None" in response.text) == (422, True)
        assert len(ask(client, nodes=[0])["classes"]) == 1


def test_a_users_own_model_is_served() -> None:
    data, model = toy_data(), GraphSAGE(6, 8, num_layers=2, out_channels=3)
    predictor = compile_ticket(quick_ticket(model, data, isolated=False), data, model)
    with TestClient(make_app(predictor)) as client:
        assert ask(client, nodes=[3, 29])["classes"] == predictor.predict([3, 29]).tolist()
        grown = predictor.with_nodes(torch.ones(1, 6), torch.tensor([[30], [2]]))
        found = ask(client, new_nodes={"features": [[1, 1, 1, 1, 1, 1]], "edges": [[30, 2]]})
        assert found["classes"] == grown.predict([30]).tolist()


def test_a_model_that_is_made_for_its_nodes_says_that_it_takes_no_more() -> None:
    class Bound(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.conv = torch.nn.Embedding(30, 6), GCNConv(6, 3)

        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return self.conv(x + self.table.weight, edge_index)

    data, model = toy_data(), Bound()
    predictor = compile_ticket(quick_ticket(model, data, isolated=False), data, model)
    with TestClient(make_app(predictor)) as client:
        response = client.post("/predict", json={"new_nodes": {"features": [[1, 1, 1, 1, 1, 1]]}})
    assert response.status_code == 422
    assert response.json()["detail"].startswith("the model must run on this data (got RuntimeError: The size of")


class Broken(Predictor):
    """Fails with a secret."""

    def logits(self, nodes: Any = None) -> Tensor:
        if nodes is not None:
            raise ZeroDivisionError("/home/secret")
        return super().logits(nodes)


def test_a_failure_shows_nothing_of_the_inside() -> None:
    app = make_app(Broken(**vars(small_predictor())))
    with TestClient(app, raise_server_exceptions=False) as client:
        for _ in range(2):  # one failure does not stop the service
            response = client.post("/predict", json=new())
            assert (response.status_code, response.json()) == (500, {"detail": "internal error"})
        assert 'fastglt_requests_total{path="/predict",status="500"} 2.0' in client.get("/metrics").text


def test_ready_only_while_it_runs() -> None:
    app = make_app(small_predictor())
    outside = TestClient(app)
    assert (outside.get("/healthz").status_code, outside.get("/healthz").json()) == (503, {"status": "not ready"})
    refused = outside.post("/predict", json={"nodes": [0]})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    with TestClient(app) as client:
        assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (200, {"status": "ready"})
    assert outside.get("/healthz").status_code == 503


def test_metrics_count_what_was_asked(client: TestClient) -> None:
    ask(client, nodes=[0, 1, 2])
    ask(client, new_nodes={"features": NEW})
    client.post("/predict", json={})
    client.get("/made-up-1")
    client.get("/made-up-2")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = set(response.text.splitlines())
    assert {
        'fastglt_requests_total{path="/predict",status="200"} 2.0',
        'fastglt_requests_total{path="/predict",status="422"} 1.0',
        'fastglt_requests_total{path="other",status="404"} 2.0',
        'fastglt_request_seconds_count{path="/predict"} 3.0',
        "fastglt_nodes_predicted_total 5.0",
        "fastglt_queue_length 0.0",
        "fastglt_requests_under_way 0.0",
    } <= lines


def test_it_describes_itself(client: TestClient) -> None:
    about = client.get("/").json()
    assert (about["nodes"], about["edges"], about["features"], about["classes"]) == (7, 7, 4, 3)
    assert (about["ticket"], about["docs"], about["limits"]["max_nodes"]) == ("f00d", "/docs", 5)
    assert "/predict" in client.get("/docs").text
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["PredictRequest"]["properties"]["nodes"]["maxItems"] == 5
    assert schemas["PredictRequest"]["properties"]["nodes"]["items"]["maximum"] == 6


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"queue": 0}, "queue must be at least 1"),
        ({"max_body": 0}, "max_body must be at least 1"),
        ({"max_new_edges": -1}, "max_new_edges must not be negative"),
        ({"timeout": 0.0}, r"timeout must lie in \(0, 3600\] seconds \(got 0.0\)"),
        ({"timeout": float("nan")}, "timeout must lie in"),
        ({"timeout": float("inf")}, "timeout must lie in"),
    ],
)
def test_limits_that_are_none_are_refused(limits: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Limits(**limits)
