"""Many `fastglt find` runs, several at a time, and a table of mean ± standard deviation over seeds.

    python benchmarks/tickets.py --datasets cora --models gcn --sparsities 0:0.98 0:0.99 \\
        --methods fastglt oneshot "fastglt --start random" --seeds 5 --jobs 2 --out runs/tickets

Every run has its own folder below --out, so the same command goes on after an interruption and computes nothing
twice. Scores are those at the best validation epoch; `--part val` shows the validation scores, which choices may be
made by.
"""

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple


class Cell(NamedTuple):
    dataset: str
    model: str
    sparsities: str  # graph:weight
    method: str  # with its options


def run(cell: Cell, seed: int, out: Path, extra: Sequence[str]) -> dict[str, Any]:
    graph, weight = cell.sparsities.split(":")
    name = "-".join([cell.dataset, cell.model, f"g{graph}", f"w{weight}", cell.method.replace(" ", ""), f"s{seed}"])
    command = [sys.executable, "-m", "fastglt", "find", "--json", "--quiet", "--out", str(out / name)]
    command += ["--dataset", cell.dataset, "--model", cell.model, "--seed", str(seed), "--threads", "1"]
    command += ["--graph-sparsity", graph, "--weight-sparsity", weight, "--method", *cell.method.split(), *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    metrics: dict[str, Any] = json.loads(done.stdout)
    print(name, f"{metrics['search_seconds']:.0f} s", file=sys.stderr, flush=True)
    return metrics


def score(runs: Sequence[dict[str, Any]], key: str) -> str:
    values = [100 * metrics[key] for metrics in runs]
    return f"{fmean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def row(cell: Cell, runs: Sequence[dict[str, Any]], part: str) -> str:
    kept = {(metrics["edges_kept"], metrics["weights_kept"]) for metrics in runs}
    total = runs[0]["edges_total"], runs[0]["weights_total"]
    graph, weight = map(float, cell.sparsities.split(":"))
    exact = kept == {(total[0] - round(graph * total[0]), total[1] - round(weight * total[1]))}
    ratio = fmean(metrics["search_seconds"] / metrics["dense_seconds"] for metrics in runs)
    counts = "yes" if exact else f"NO: {kept} of {total}"
    scores = " | ".join(score(runs, f"{key}_{part}") for key in ("dense", "search", "isolated"))
    sparsities = f"{100 * graph:g} / {100 * weight:g} %"
    where = f"{cell.dataset} {cell.model} | {sparsities} | {cell.method}"
    return f"| {where} | {scores} | {counts} | {ratio:.2f}× | {len(runs)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["digits"])
    parser.add_argument("--models", nargs="+", default=["gcn"])
    parser.add_argument("--methods", nargs="+", default=["fastglt"])
    parser.add_argument("--sparsities", nargs="+", default=["0.2:0.9"], help="graph:weight")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0")
    parser.add_argument("--part", choices=["test", "val"], default="test")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/tickets"))
    known, extra = parser.parse_known_args()
    cells = [
        Cell(*cell) for cell in itertools.product(known.datasets, known.models, known.sparsities, known.methods)
    ]
    with ThreadPoolExecutor(known.jobs) as pool:
        pending = {
            cell: [pool.submit(run, cell, seed, known.out, extra) for seed in range(known.seeds)] for cell in cells
        }
        print("| graph, model | removed | method | dense | search | alone from Θ0 | exact | search time | n |")
        print("|---|---|---|---|---|---|---|---|---|")
        for cell, futures in pending.items():
            print(row(cell, [future.result() for future in futures], known.part), flush=True)


if __name__ == "__main__":
    main()
