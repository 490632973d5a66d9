"""Bodies are counted as a parser would, however they are cut, and refused as soon as there is too much."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastglt.serve import Limits
from fastglt.serve.scan import Most, Scan, ScanError

VALUES: Any = st.recursive(
    st.none() | st.integers() | st.text('"\\:[]{}aé\n', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('"\\:[{x', max_size=4), inner, max_size=4),
    max_leaves=20,
)


def counts(value: Any) -> tuple[int, int, int, int]:
    """Keys, depth, strings and containers of a parsed value."""
    if isinstance(value, str):
        return 0, 0, 1, 0
    if not isinstance(value, list | dict):
        return 0, 0, 0, 0
    inside = [counts(one) for one in (value.values() if isinstance(value, dict) else value)]
    keys = len(value) if isinstance(value, dict) else 0
    return (
        keys + sum(one[0] for one in inside),
        1 + max((one[1] for one in inside), default=0),
        keys + sum(one[2] for one in inside),
        1 + sum(one[3] for one in inside),
    )


def passes(pieces: list[bytes], keys: int, depth: int, strings: int, containers: int) -> bool:
    scan = Scan(Most(keys=keys, depth=depth, strings=strings, containers=containers))
    try:
        for piece in pieces:
            scan.feed(piece)
    except ScanError:
        return False
    return True


@given(VALUES, st.booleans(), st.lists(st.integers(0, 200), max_size=5))
def test_what_a_parser_would_count(value: Any, ascii_only: bool, cuts: list[int]) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    ends = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in pairwise(ends)]
    exact = counts(value)
    assert passes(pieces, *exact)
    for place in range(4):
        if exact[place]:
            assert not passes(pieces, *(count - (i == place) for i, count in enumerate(exact)))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a":1,' * 65, "may be nested at most 16 deep"),
        (b'{"a":1' + b',"a":1' * 64, "may have at most 64 keys"),
        (b"[" + b'"",' * 25, "may have at most 24 strings"),
        (b"[" + b"[]," * 36, "may have at most 36 lists and objects"),
    ],
)
def test_what_is_too_much_is_told(body: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.serve.scan._MORE", 10)
    scan = Scan(Most.of(Limits(max_nodes=7, max_new_nodes=2, max_new_edges=9)))
    with pytest.raises(ScanError, match=reason):
        scan.feed(body)


def test_the_largest_question_passes() -> None:
    limits = Limits(max_nodes=50, max_new_nodes=20, max_new_edges=30)
    new = {"features": {"indices": [[0]] * 20, "values": [[1.0]] * 20}, "edges": [[7, 0]] * 30}
    Scan(Most.of(limits)).feed(json.dumps({"nodes": [0], "ids": ["a"] * 49, "new_nodes": new}).encode())
