"""For every test: PyG is imported once, quietly, because its import warns and warnings are errors here.

One thread is the quickest on graphs this small, and leaves the other cores to whoever shares them. What was
measured for this machine or downloaded to it stays out: the cache folder is an empty one.
"""

import os
import tempfile

import pytest

from fastglt import Ticket, set_threads
from fastglt.data.base import quiet_import

with quiet_import():
    from tests.toy_data import quick_ticket

BACKENDS = ("numba", "torch", "plain")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported."""
    folder = tempfile.TemporaryDirectory(prefix="fastglt-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["FASTGLT_CACHE"] = folder.name


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Whatever the test before has set."""
    set_threads(1)


@pytest.fixture(scope="session")
def ticket() -> Ticket:
    """A backbone's ticket on the toy data, not trained in isolation."""
    return quick_ticket(isolated=False)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test once with each back end of the kernels."""
    monkeypatch.setenv("FASTGLT_BACKEND", request.param)
    return str(request.param)
