"""`python -m tests.kills [N]`: kill commands N times (or FASTGLT_KILLS, or 500) and count what becomes of them."""

import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from fastglt.runs.experiment import available_threads
from tests.kills.campaign import kill_all


def main(kills: int) -> int:
    """The exit code is 1 if anything ended otherwise than undisturbed; its folder is kept then."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="fastglt-kills-"))
    seed = int(os.environ.get("FASTGLT_KILLS_SEED", "0"))
    tallies = kill_all(kills, folder, jobs=available_threads(), seed=seed, tell=partial(print, flush=True))
    print(f"\n{'':16}{'kills':>8}{'chains':>8}{'other':>8}{'s a kill':>10}")
    for name, tally in tallies.items():
        each = tally.seconds / max(1, tally.kills)
        print(f"{name:16}{tally.kills:>8}{tally.chains:>8}{len(tally.flaws):>8}{each:>10.1f}")
    total = sum(tally.kills for tally in tallies.values())
    flaws = sum(len(tally.flaws) for tally in tallies.values())
    print(f"{total} kills in {time.monotonic() - began:.0f} s, {flaws} that were noticed in what was left")
    if flaws:
        print(f"what is left of them is in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or [os.environ.get("FASTGLT_KILLS", "500")])[0])))
