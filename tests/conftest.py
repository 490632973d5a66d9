"""For every test: PyG is imported once, quietly, because its import warns and warnings are errors here.

A process that only hands out tests to others imports none of it.

One thread is the quickest on graphs this small, and leaves the other cores to whoever shares them. What was
measured for this machine or downloaded to it stays out: the cache folder is an empty one, and so is the results
store.
"""

import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from fastglt.system.quiet import quiet_import
from tests.compiled_once import compile_once
from tests.processes import FOLDER

if TYPE_CHECKING:
    from fastglt import Ticket

BACKENDS = ("numba", "torch", "plain")
_TURN = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported."""
    folder = tempfile.TemporaryDirectory(prefix="fastglt-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ.setdefault(FOLDER, f"{folder.name}:{os.getpid()}")  # processes of pytest-xdist share the first one's
    os.environ["FASTGLT_CACHE"] = folder.name
    os.environ["FASTGLT_STORE"] = str(Path(folder.name) / "results.sqlite")
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", default=None):
        if not sys.dont_write_bytecode and not (Path(__file__).parent / "kernels" / "__pycache__").exists():
            _take_turn(config)
        with quiet_import():
            import torch_geometric  # noqa: F401
        compile_once()


def _take_turn(config: pytest.Config) -> None:
    """In a fresh clone, one process at a time imports all tests: what it leaves compiled, the next one reads."""
    place = Path(os.environ[FOLDER].rpartition(":")[0]) / "imports.lock"
    config.stash[_TURN] = turn = os.open(place, os.O_CREAT | os.O_RDWR)
    fcntl.flock(turn, fcntl.LOCK_EX)


def pytest_collection_finish(session: pytest.Session) -> None:
    """All tests are imported."""
    if (turn := session.config.stash.get(_TURN, None)) is not None:
        os.close(turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """One thread, whatever the test before has set, also for what several tests share."""
    from fastglt import set_threads

    set_threads(1)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Methods, models and tasks that a test registers: the next one knows nothing of them."""
    from fastglt.methods import METHODS
    from fastglt.models import BACKBONES
    from fastglt.tasks import TASKS

    with patch.dict(METHODS), patch.dict(BACKBONES), patch.dict(TASKS):
        yield


@pytest.fixture(scope="session")
def ticket() -> "Ticket":
    """A backbone's ticket on the toy data, not trained in isolation."""
    from tests.toy_data import quick_ticket

    return quick_ticket(isolated=False)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test once with each back end of the kernels."""
    monkeypatch.setenv("FASTGLT_BACKEND", request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """The folder of real raw files, for tests that name a set in it; they skip where it is absent."""
    root = os.environ.get("FASTGLT_DATA")

    def find(folder: str) -> Path:
        if not root:
            pytest.skip("FASTGLT_DATA does not name a folder of real datasets")
        if not (Path(root) / folder / "raw").is_dir():
            pytest.skip(f"FASTGLT_DATA has no {folder}")
        return Path(root).resolve()

    return find


OwnModule = Callable[[str, str], Path]


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnModule]:
    """Writes a user's module into an empty current folder; imports are put back afterwards."""
    modules = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        return path

    yield write
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
