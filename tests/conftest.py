"""For every test: PyG is imported once, quietly, because its import warns and warnings are errors here.

One thread is the quickest on graphs this small, and leaves the other cores to whoever shares them.
"""

from collections.abc import Iterator

import pytest
import torch

from fastglt import set_threads
from fastglt.data.base import quiet_import

with quiet_import():
    import torch_geometric.nn  # noqa: F401

set_threads(1)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """The thread count of before, whatever the test sets."""
    before = torch.get_num_threads()
    yield
    set_threads(before)


@pytest.fixture(params=["numba", "plain"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test once with each back end of the kernels."""
    monkeypatch.setenv("FASTGLT_BACKEND", request.param)
    return str(request.param)
