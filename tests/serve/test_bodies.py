"""A body is read the same whether it is short or long; what cannot be read is explained."""

import asyncio
import json
import threading

import pytest

from fastglt.serve import Limits
from fastglt.serve.bodies import Aside, Reader, Wrong
from fastglt.serve.requests import PredictRequest, request_model

READER: Reader[PredictRequest] = Reader(request_model(7, 4, Limits()))


@pytest.mark.parametrize("length", [0, 10_000])
def test_questions(length: int) -> None:
    question = {"nodes": [0, 6], "new_nodes": {"features": [[1, 2.5, -1e-3, 0]], "edges": [[7, 1]]}}
    body = json.dumps(question).ljust(length).encode()
    for given in (body, b"\xef\xbb\xbf" + body):  # with a byte order mark
        found = READER.read(given)
        assert isinstance(found, PredictRequest)
        assert found.model_dump(exclude_unset=True) == question


@pytest.mark.parametrize("length", [0, 10_000])
@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b'{"nodes": [0}', Wrong(400, "the body must be JSON (got Expecting ',' delimiter, at character 12)")),
        ('{"nodes": [0]}'.encode("utf-16-le"), 400),
        (b'{"nodes": [' + b"9" * 5000 + b"]}", 400),
        (b'{"nodes": [NaN]}', Wrong(422, "body.nodes.0: Input should be a valid integer (got nan)")),
        (b'{"nodes": [0.5]}', Wrong(422, "body.nodes.0: Input should be a valid integer (got 0.5)")),
    ],
)
def test_what_is_no_question(body: bytes, wrong: Wrong | int, length: int) -> None:
    found = READER.read(body + b" " * length)
    assert isinstance(found, Wrong)
    assert wrong in (found, found.status)


def test_long_work_is_done_in_another_thread_one_at_a_time() -> None:
    most, inside, names = 0, 0, set()
    lock = threading.Lock()

    def work(pause: threading.Event) -> None:
        nonlocal most, inside
        with lock:
            inside += 1
            most = max(most, inside)
            names.add(threading.current_thread() is threading.main_thread())
        pause.wait(0.02)
        with lock:
            inside -= 1

    async def run() -> None:
        aside, never = Aside(), threading.Event()
        await asyncio.gather(*(aside.run(work, never, size=10**6) for _ in range(4)))
        assert (most, names) == (1, {False})
        await aside.run(work, never, size=1)
        assert names == {False, True}

    asyncio.run(run())


def test_the_parser_lets_others_run() -> None:
    """Four megabytes of numbers take a fifth of a second and more; the event loop goes on meanwhile."""
    body = b'{"nodes": [' + b"1.5," * 10**6 + b"0]}"

    async def run() -> int:
        task = asyncio.create_task(Aside().run(READER.read, body, size=len(body)))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert isinstance(task.result(), Wrong)
        return turns

    assert asyncio.run(run()) >= 5
