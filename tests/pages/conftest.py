"""A real run on a tiny graph, once for all tests of pages."""

from pathlib import Path

import pytest

from fastglt.runs.run_folder import RunFolder
from tests.runs.examples import experiment


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of six epochs, with its dense twin."""
    prepared = experiment("fastglt").prepare()
    folder = RunFolder(tmp_path_factory.mktemp("run") / "a", prepared.settings)
    with folder.open():
        prepared.run(folder)
    return folder.path
