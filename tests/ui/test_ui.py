"""`fastglt ui`: what it answers, to whom, and what it says of stores that it cannot read."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fastglt.runs.store import Store
from fastglt.serve.guard import Guard
from fastglt.ui import Live, make_app
from tests.pages.stores import dense, store, study


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store(tmp_path / "results.sqlite", study(2))


@pytest.fixture
def client(path: Path) -> Iterator[TestClient]:
    with TestClient(Guard(make_app(Live([path]))), base_url="http://127.0.0.1") as found:
        yield found


def test_the_page_is_the_reports_and_is_drawn_once(path: Path, client: TestClient) -> None:
    first = client.get("/")
    assert first.status_code == 200
    assert "What was found" in first.text
    assert 'id="live"' in first.text
    assert "connect-src 'self'" in first.text
    assert first.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert client.get("/").text == first.text  # the time of day is in it
    version = client.get("/progress.json").json()["version"]
    assert f'data-version="{version}"' in first.text
    Store(path).record(dense(77, 0.5))
    assert client.get("/progress.json").json()["version"] != version
    assert client.get("/").text != first.text


def test_other_hosts_and_other_verbs_are_refused(client: TestClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/").status_code == 405
    assert client.get("/../etc/passwd").status_code == 404


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.unlink(), "which is not there"),
        (lambda path: path.write_bytes(b"no store at all" * 400), "which is none of these, or damaged"),
        (_newer, "of version 99"),
    ],
    ids=["gone", "damaged", "newer"],
)
def test_a_store_that_cannot_be_read_is_told_on_the_page(path: Path, spoil: object, told: str) -> None:
    assert callable(spoil)
    spoil(path)
    with TestClient(make_app(Live([path])), base_url="http://127.0.0.1") as client:
        page = client.get("/")
        assert page.status_code == 200
        assert told in page.text
        assert client.get("/progress.json").json()["runs"] == []


def test_an_empty_store_is_told(tmp_path: Path) -> None:
    Store(tmp_path / "empty.sqlite").rows()
    page = Live([tmp_path / "empty.sqlite"]).page()
    assert "no run is recorded in" in page
    assert "No ticket has been found yet." in page


def test_another_host_is_refused_without_options_that_there_are_not(path: Path) -> None:
    guard = Guard(make_app(Live([path])), hint="open the address that was printed")
    for app, end in ((guard, "; open the address that was printed"), (Guard(make_app(Live([path]))), "")):
        with TestClient(app, base_url="http://127.0.0.1") as client:
            answer = client.get("/", headers={"Host": "evil.example"})
        told = f"the Host header must be a name of this service (got 'evil.example'){end}"
        assert (answer.status_code, answer.json()["detail"]) == (400, told)
