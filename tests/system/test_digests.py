from pathlib import Path

import pytest

from fastglt import InputError
from fastglt.system import digests


def test_what_was_recorded_is_told_from_what_was_not(tmp_path: Path) -> None:
    digests.record(tmp_path, {"run.json": b"one"})
    digests.record(tmp_path, {"metrics.json": b"two"})
    assert digests.is_as_recorded(tmp_path / "run.json", b"one") is True
    assert digests.is_as_recorded(tmp_path / "run.json", b"other") is False
    assert digests.is_as_recorded(tmp_path / "metrics.json", b"two") is True
    assert digests.is_as_recorded(tmp_path / "history.csv", b"two") is None
    assert digests.is_as_recorded(tmp_path / "elsewhere" / "run.json", b"one") is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff", b"{" * 9999, b" " * (1 << 20) + b"{}"])
def test_damaged_digests_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / digests.FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"\.digests\.json' is damaged; remove it"):
        digests.recorded(tmp_path)
