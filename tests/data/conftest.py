from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private, empty cache, and no data root unless a test asks for one."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FASTGLT_CACHE", str(folder))
    monkeypatch.delenv("FASTGLT_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    return folder
