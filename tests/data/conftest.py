import os
from collections.abc import Callable
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


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """The folder of real raw files, for tests that name a set in it; they skip where it is absent."""
    root = os.environ.get("FASTGLT_DATA")

    def find(folder: str) -> Path:
        if not root:
            pytest.skip("FASTGLT_DATA does not name a folder of real datasets")
        if not (Path(root) / folder / "raw").is_dir():
            pytest.skip(f"FASTGLT_DATA has no {folder}")
        return Path(root).resolve()

    return find
