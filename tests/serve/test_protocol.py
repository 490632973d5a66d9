"""Connections that are too many or too slow, and bodies in crumbs."""

import json
import socket
import time
from contextlib import suppress

import httpx2 as httpx

from fastglt.serve import Limits, make_app

from .servers import ENOUGH, connect, read_all, served, small_predictor, wait_until

HEAD = b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"


def test_headers_that_do_not_come_end_the_connection() -> None:
    with served(make_app(small_predictor(), limits=Limits(timeout=0.3))) as base:
        for sent in (
            b"",
            HEAD,
            b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\nGET",
        ):  # nothing, part of one, one and a part
            with connect(base) as connection:
                connection.sendall(sent)
                began = time.monotonic()
                with suppress(ConnectionResetError):
                    read_all(connection)
                assert time.monotonic() - began < ENOUGH / 2


def test_one_connection_too_many_is_told_to_come_again() -> None:
    with served(make_app(small_predictor(), limits=Limits(max_connections=3))) as base:
        kept = [connect(base) for _ in range(3)]
        for one in kept:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 200 ")
        with connect(base) as refused:
            answer = read_all(refused)
        assert answer.startswith("HTTP/1.1 503 ")
        assert "retry-after: 1\r\n" in answer
        assert json.loads(answer.partition("\r\n\r\n")[2]) == {"detail": "too many connections; try again"}
        kept.pop().close()
        end = time.monotonic() + ENOUGH
        while httpx.get(f"{base}/healthz").status_code != 200:
            assert time.monotonic() < end
        for one in kept:
            one.close()


def test_crumbs_are_refused_and_chunks_are_not() -> None:
    with served(make_app(small_predictor())) as base:
        for size, status in ((1, b"400"), (100, b"200")):
            body = b'{"nodes": [0]}'.ljust(1000 * size)
            with connect(base) as connection:
                chunks = [b"%x\r\n%s\r\n" % (size, body[at : at + size]) for at in range(0, len(body), size)]
                connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n")
                assert connection.recv(100).split()[1] == status


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    limits = Limits(max_nodes=200_000, timeout=0.5)
    body = json.dumps({"nodes": [0] * 200_000, "probabilities": True}).encode()
    with served(make_app(small_predictor(), limits=limits)) as base:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((httpx.URL(base).host, httpx.URL(base).port))
            connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            wait_until(base, 'fastglt_requests_total{path="/predict",status="200"}', 1)
        assert (
            httpx.post(f"{base}/predict", content=body, headers={"Content-Type": "application/json"}).json()[
                "nodes"
            ]
            == [0] * 200_000
        )
