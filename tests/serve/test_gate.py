"""Bodies and requests that are too many, too long or too slow, on real connections."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from fastglt.serve import Limits, make_app

from .servers import ENOUGH, NEW, connect, metric, read_all, served, slow_predictor, small_predictor, wait_until

HEAD = "POST /predict HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with served(make_app(small_predictor(), limits=Limits(max_body=1000, timeout=0.5))) as address:
        yield address


def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(base: str) -> None:
    with connect(base) as connection:
        connection.sendall(f"{HEAD}Content-Length: 1001\r\n\r\n".encode())
        answer = read_all(connection)
    assert answer.startswith("HTTP/1.1 413 ")
    assert "at most 1000 bytes" in answer


def test_chunks_without_a_length_are_refused_while_they_come(base: str) -> None:
    with connect(base) as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(3):
            connection.sendall(b"190\r\n" + b" " * 400 + b"\r\n")  # 1200 bytes; the last chunk is never sent
        answer = read_all(connection)
    assert answer.startswith("HTTP/1.1 413 ")


def test_a_client_that_sends_everything_first_still_reads_why(base: str) -> None:
    body = b" " * 5_000_000
    for content in (body, iter([body])):  # with a length, and in chunks
        response = httpx.post(f"{base}/predict", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 413
        assert response.headers["connection"] == "close"


def test_a_body_of_just_the_limit_is_read(base: str) -> None:
    body = json.dumps({"nodes": [0]}).ljust(1000).encode()
    for content in (body, iter([body[:500], body[500:]])):
        response = httpx.post(f"{base}/predict", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 200


def test_a_body_that_does_not_come_is_given_up(base: str) -> None:
    with connect(base) as connection:
        connection.sendall(f"{HEAD}Content-Length: 10\r\n\r\n".encode())
        answer = read_all(connection)
    assert answer.startswith("HTTP/1.1 408 ")
    assert metric(base, "fastglt_requests_under_way") == 0


def test_a_client_that_leaves_is_forgotten(base: str) -> None:
    counted = 'fastglt_requests_total{path="/predict",status="499"}'
    before = metric(base, counted)
    with connect(base) as connection:
        connection.sendall(f"{HEAD}Content-Length: 10\r\n\r\n".encode())
        wait_until(base, "fastglt_requests_under_way", 1)
    wait_until(base, counted, before + 1)
    assert metric(base, "fastglt_requests_under_way") == 0


def test_one_request_too_many_is_told_to_come_again() -> None:
    app = make_app(slow_predictor(0.3), limits=Limits(queue=2))
    with served(app) as base, ThreadPoolExecutor(2) as threads:
        first = [threads.submit(httpx.post, f"{base}/predict", json=NEW) for _ in range(2)]
        wait_until(base, "fastglt_requests_under_way", 2)
        while metric(base, "fastglt_requests_unfinished"):
            time.sleep(0.01)
        refused = httpx.post(f"{base}/predict", json={"nodes": [0]})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "at most 2 requests" in refused.json()["detail"]
        assert httpx.get(f"{base}/healthz").status_code == 200  # asks nothing of the predictor
        assert [future.result().status_code for future in first] == [200, 200]
        assert httpx.post(f"{base}/predict", json={"nodes": [0]}).status_code == 200


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    slow = slow_predictor(0.6)
    with served(make_app(slow, limits=Limits(timeout=0.2))) as base, ThreadPoolExecutor(3) as threads:
        began = time.monotonic()
        futures = [threads.submit(httpx.post, f"{base}/predict", json=NEW) for _ in range(3)]
        answers = [future.result() for future in futures]
        assert time.monotonic() - began < ENOUGH
        assert [(answer.status_code, answer.headers["retry-after"]) for answer in answers] == [(503, "1")] * 3
        assert "may take 0.2 s" in answers[0].json()["detail"]
    assert len(slow.asked) == 1  # the others were gone before their turn


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{" + b'"a":0,' * 10_000, "at most 64 keys"),
        (b'{"nodes": ' + b"[" * 10_000, "nested at most 16 deep"),
        (b'{"nodes": [' + b"[]," * 30_000, "lists and objects"),
        (b'{"nodes": [' + b'"",' * 30_000, "strings"),
    ],
)
def test_what_no_question_has_is_refused_while_it_comes(body: bytes, reason: str) -> None:
    with served(make_app(small_predictor())) as base, connect(base) as connection:
        connection.sendall(f"{HEAD}Content-Length: 4000000\r\n\r\n".encode() + body)  # most of it is never sent
        answer = read_all(connection)
        assert answer.startswith("HTTP/1.1 422 ")
        assert reason in answer


def test_unfinished_bodies_take_no_place_from_others() -> None:
    limits = Limits(queue=2, max_unfinished=4)
    with served(make_app(small_predictor(), limits=limits)) as base:
        slow = [connect(base) for _ in range(8)]
        for number, one in enumerate(slow):
            one.sendall(f"{HEAD}Content-Length: 10\r\n\r\n".encode())
            wait_until(base, "fastglt_requests_unfinished", min(number + 1, 4))
        assert httpx.post(f"{base}/predict", json={"nodes": [0]}).status_code == 200
        assert metric(base, "fastglt_requests_unfinished") <= 4
        for one in slow[:4]:  # the oldest have made room
            answer = read_all(one)
            assert answer.startswith("HTTP/1.1 503 ")
            assert "retry-after: 1\r\n" in answer
        slow[7].sendall(b'{"nodes":0')
        assert slow[7].recv(100).startswith(b"HTTP/1.1 400 ")  # the newest is still listened to
        for one in slow:
            one.close()


def test_bytes_of_unfinished_bodies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.serve.limits._IN_FLIGHT", 0)
    with served(make_app(small_predictor(), limits=Limits(max_body=1000))) as base:  # 6000 bytes on their way
        slow = [connect(base) for _ in range(8)]
        for one in slow:
            one.sendall(f"{HEAD}Content-Length: 1000\r\n\r\n".encode() + b" " * 900)
            time.sleep(0.05)
        assert [one.recv(100)[:12] for one in slow[:2]] == [b"HTTP/1.1 503"] * 2
        assert httpx.post(f"{base}/predict", json={"nodes": [0]}).status_code == 200
        for one in slow:
            one.close()


def test_a_mounted_app_is_guarded_too() -> None:
    outer = Starlette(routes=[Mount("/under", make_app(small_predictor(), limits=Limits(max_body=100)))])
    response = TestClient(outer).post("/under/predict", json={"nodes": [0] * 100})
    assert (response.status_code, "at most 100 bytes" in response.text) == (413, True)
