"""Read finished runs from the results store: one SQLite file that every command writes to.

python examples/read_runs.py [runs/results.sqlite]        (without a file, two short runs make one)
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from fastglt.runs.store import Store


def make_a_store(folder: Path) -> Path:
    """Two runs of `fastglt find`, with another seed each, on a graph that is generated."""
    store = folder / "results.sqlite"
    for seed in (0, 1):
        graph = "synthetic:nodes=80,edges=200,features=16,classes=3"
        short = "--hidden 8 --oneshot-epochs 2 --denoise-epochs 6 --interval 2 --threads 1 --quiet"
        words = f"find --dataset {graph} --seed {seed} {short}".split()
        places = ["--out", str(folder / f"run{seed}"), "--store", str(store)]
        subprocess.run([sys.executable, "-m", "fastglt", *words, *places], check=True, stdout=subprocess.DEVNULL)
    return store


with tempfile.TemporaryDirectory() as folder:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else make_a_store(Path(folder))

    # A row for each finished run, the oldest first. A row is a dict, with the columns that `fastglt runs` shows.
    rows = Store(path).rows()
    for row in rows:
        print(f"run {row['id']}: {row['kind']} by {row['command']} on {row['dataset']}, seed {row['seed']}", end="")
        print("" if row["search_test"] is None else f", test score {row['search_test']:.3f}")

    # `settings` has everything that decides a run's result, `metrics` everything that came out of it.
    tickets = [row for row in rows if row["kind"] == "ticket"]
    if tickets:
        last = tickets[-1]
        print("settings:", ", ".join(sorted(last["settings"])))
        print(f"{last['metrics']['edges_kept']} edges kept; the ticket is {last['ticket']}")
