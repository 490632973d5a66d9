import pytest

import fastglt
import fastglt.data


def test_data_is_there_without_an_import_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    load = fastglt.data.load
    monkeypatch.delattr(fastglt, "data")
    assert fastglt.data.load is load


def test_what_there_is_not_is_said() -> None:
    with pytest.raises(AttributeError, match="module 'fastglt' has no attribute 'dtaa'"):
        _ = fastglt.dtaa
