"""A few thousand files of each kind; `FASTGLT_FUZZ=N` tries N in all."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.fuzz.campaign import Tally, scratch_folder, try_files
from tests.fuzz.subjects import SUBJECTS

COUNT = int(os.environ.get("FASTGLT_FUZZ", "30000"))


@pytest.mark.parametrize("name", SUBJECTS)
def test_mutated_files_are_refused_or_what_was_written(name: str) -> None:
    make, share = SUBJECTS[name]
    with tempfile.TemporaryDirectory(prefix="fastglt-fuzz-", dir=scratch_folder()) as folder:
        subject, tally = make(Path(folder)), Tally()
        try_files(subject, max(100, round(COUNT * share)), seed=len(name), tally=tally)
    assert (tally.crashed, tally.different) == (0, 0), "\n".join(tally.flaws)
    assert tally.refused > tally.tried / 20, "mutations that nothing notices test nothing"
