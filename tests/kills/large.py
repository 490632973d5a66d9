"""`python -m tests.kills.large [N]`: kill a deep search on a large graph N times (10), and compare the tickets.

The graph is ogbn-arxiv's (FASTGLT_DATA), the budget a few epochs, so that minutes are enough.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.kills.commands import Command
from tests.kills.picture import STORE

_SEARCH = (
    "-m fastglt find --dataset ogbn-arxiv --model resgcn --hidden 16 --model-option num_layers=3 "
    "--graph-sparsity 0.3 --weight-sparsity 0.7 --oneshot-epochs 1 --denoise-epochs 3 --interval 1 "
    f"--checkpoint-every 0 --threads 1 --quiet --json --out run --store {STORE}"
)
_SPREAD = 4.0  # seconds from the first file that is written to the kill, at most


def main(kills: int) -> int:
    """The exit code is 1 if a ticket differs; its folder is kept then."""
    if not os.environ.get("FASTGLT_DATA"):
        print("FASTGLT_DATA must name the folder that has ogbn_arxiv (got nothing)", file=sys.stderr)
        return 2
    folder, began = Path(tempfile.mkdtemp(prefix="fastglt-kills-")), time.monotonic()
    search = Command(tuple(_SEARCH.split()), folder, spread=_SPREAD)
    assert search.undisturbed
    print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)
    done, chains, flaws = 0, 0, list[str]()
    while done < kills and not flaws:
        now, flaws = search.chain(str(chains), kills - done, Random(f"large {chains}"))
        done, chains = done + now, chains + 1
        result = "; ".join(flaws) or "as if undisturbed"
        print(f"{now} kills, {result}  ({done} of {kills} after {time.monotonic() - began:.0f} s)", flush=True)
    if flaws:
        print(f"what is left of them is in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or ["10"])[0])))
