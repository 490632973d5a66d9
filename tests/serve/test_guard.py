"""Requests by another name, and requests without the token."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from fastglt.errors import InputError
from fastglt.serve import make_app
from fastglt.serve.guard import Guard, is_loopback, require_host, require_token

from .servers import ENOUGH, served, small_predictor

TOKEN = "s3cret-token"


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    guard = Guard(
        make_app(small_predictor()), hosts=["My.Example", "fe80::1"], token=TOKEN, hint="--allowed-host adds one"
    )
    with served(guard) as address:
        yield address


def get(base: str, path: str, **headers: str) -> tuple[int, str]:
    place = urlsplit(base)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=ENOUGH)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:81",
        "localhost",
        "LOCALHOST.:8000",
        "[::1]:80",
        "my.example",
        "[fe80::1]",
        "[fe80:0::1]:1",
    ],
)
def test_own_names(base: str, host: str) -> None:
    assert get(base, "/healthz", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
        "[",
        "*",
    ],
)
def test_other_names(base: str, host: str) -> None:
    status, text = get(base, "/healthz", Host=host)
    assert (status, "--allowed-host" in text) == (400, True)


def test_any_name() -> None:
    with served(Guard(make_app(small_predictor()), hosts=["*"])) as base:
        assert get(base, "/", Host="evil.example")[0] == 200


def test_the_token_is_needed_everywhere_but_for_health(base: str) -> None:
    assert get(base, "/healthz")[0] == 200
    for path in ("/", "/predict", "/metrics", "/docs", "/openapi.json", "/none", "/healthz/", "//healthz"):
        assert get(base, path)[0] == 401
        assert get(base, path, Authorization=f"Bearer {TOKEN}")[0] != 401


@pytest.mark.parametrize("given", [TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xe9"])
def test_what_is_not_the_token(base: str, given: str) -> None:
    assert get(base, "/", Authorization=given)[0] == 401


def test_tokens_are_checked() -> None:
    assert require_token(" a-b\n", "here") == "a-b"
    for wrong in ("", " \n", "a b", "é"):
        with pytest.raises(InputError, match=r"printable ASCII without spaces .* in here\)") as caught:
            require_token(wrong, "here")
        assert "é" not in str(caught.value)


def test_hosts_are_checked() -> None:
    for right in ("*", "a.example", "::1", "[::1]", "10.0.0.1"):
        assert require_host(right) == right
    for wrong in ("", "http://a", "a:80", "a/b", "*.a"):
        with pytest.raises(InputError, match="without a port, or \\*"):
            require_host(wrong)


def test_loopback() -> None:
    found = {
        address: is_loopback(address) for address in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "10.0.0.1")
    }
    assert [address for address, loopback in found.items() if loopback] == ["127.0.0.1", "127.9.9.9", "::1"]
