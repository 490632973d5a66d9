import json

import pytest

from fastglt.system.plain_json import DEPTH, loads


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


@pytest.mark.parametrize("value", [1, None, "a", [], {}, {"a": [1, {"b": 2.5}]}])
def test_plain_values_come_back(value: object) -> None:
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value).encode()) == value


def test_what_is_nested_too_deep_is_refused() -> None:
    assert loads(nested(DEPTH)) is not None
    for depth in (DEPTH + 1, 500, 100_000):
        with pytest.raises(ValueError, match="nested at most 32 deep expected"):
            loads(nested(depth))
    with pytest.raises(ValueError, match="nested at most"):
        loads('{"a":' * 100_000)


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe\x00", b"\xff", "1" * 5000, None, 3])
def test_what_is_no_json_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each says something else
        loads(text)
