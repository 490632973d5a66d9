"""`python -m tests.fuzz [N [SECONDS]]`: try N mutated files, or as many as there is time for; print the counts."""

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from fastglt import set_threads
from fastglt.system.process import peak_memory
from fastglt.system.quiet import quiet_import

with quiet_import():
    from tests.fuzz.campaign import Tally, scratch_folder, try_files
    from tests.fuzz.subjects import SUBJECTS

MOST_MEMORY = 256 * 2**20  # bytes above what there was before the first file
ROUND = 20_000  # files, of all kinds in turn


def main(count: int, seconds: float) -> int:
    """The exit code is 1 if a file crashed something, was taken for what it is not, or took too much memory."""
    set_threads(1)
    warnings.simplefilter("error")
    began = time.monotonic()
    deadline = began + seconds
    with tempfile.TemporaryDirectory(prefix="fastglt-fuzz-", dir=scratch_folder()) as folder:
        subjects = {}
        for number, (name, (make, _)) in enumerate(SUBJECTS.items()):
            (Path(folder) / str(number)).mkdir()
            subjects[name] = make(Path(folder) / str(number))
        tallies = {name: Tally() for name in subjects}
        before, tried, turn = peak_memory(), 0, 0
        while tried < count and time.monotonic() < deadline:
            for name, subject in subjects.items():
                share = round(min(ROUND, count) * SUBJECTS[name][1])
                try_files(
                    subject,
                    max(1, share),
                    1_000_003 * turn + len(name),
                    tallies[name],
                    lambda: time.monotonic() > deadline,
                )
            turn, tried = turn + 1, sum(tally.tried for tally in tallies.values())
    print(f"{'':36}{'tried':>10}{'refused':>10}{'unchanged':>10}{'different':>10}{'crashed':>9}{'ms each':>9}")
    bad = 0
    for name, tally in tallies.items():
        checked = subjects[name].is_checked
        bad += tally.crashed + tally.different * checked
        different = f"{tally.different:>10,}" if checked else f"{'–':>10}"
        each = 1000 * tally.seconds / max(1, tally.tried)
        print(
            f"{name:36}{tally.tried:>10,}{tally.refused:>10,}{tally.unchanged:>10,}{different}{tally.crashed:>9,}{each:>9.2f}"
        )
    peak = peak_memory()
    told = f"peak memory {peak / 2**20:.0f} MB, {before / 2**20:.0f} MB before the first"
    print(f"{tried:,} files in {time.monotonic() - began:.0f} s; {told}")
    if peak - before > MOST_MEMORY:
        print(f"a small file took more than {MOST_MEMORY / 2**20:.0f} MB", file=sys.stderr)
        bad += 1
    for name, tally in tallies.items():
        for flaw in tally.flaws:
            print(f"\n{name}\n{flaw}", file=sys.stderr)
    return min(1, bad)


if __name__ == "__main__":
    given = [*sys.argv[1:], *[""] * 2]
    sys.exit(main(int(given[0] or os.environ.get("FASTGLT_FUZZ", "1000000")), float(given[1] or "inf")))
