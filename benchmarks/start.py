"""What compiling and tuning add to a process: the first on a machine, and every later one.

    python benchmarks/start.py

Each line is the median of several fresh processes that run one epoch of each stage of a search, all three
backbones, on the digits. The plain back end needs no compiler: what the compiled one takes beyond it is what
compiling, or loading what was compiled, costs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

JOB = """
from fastglt.runs.experiment import Experiment
from fastglt.methods import (Budget, Targets)
from fastglt.training.loop import Training, train
for model in ("gcn", "gin", "gat"):
    budget = Budget(oneshot_epochs=1, denoise_epochs=1, interval=1)
    run = Experiment(dataset="digits", model=model, hidden=16, targets=Targets(), budget=budget).prepare()
    train(Training(run.network, run.task, run.method.recipe, seed=0), run.method)
"""


def seconds(command: list[str], **environment: str) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, env={**os.environ, **environment}, capture_output=True)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    job = [sys.executable, "-W", "ignore", "-c", JOB]
    with tempfile.TemporaryDirectory() as empty:
        cache = {"NUMBA_CACHE_DIR": empty}
        first = seconds(job, FASTGLT_BACKEND="numba", **cache)
        plain, later = [], []
        for _ in range(repeats):
            plain.append(seconds(job, FASTGLT_BACKEND="plain", **cache))
            later.append(seconds(job, FASTGLT_BACKEND="numba", **cache))
        tune = seconds([sys.executable, "-m", "fastglt", "tune"], FASTGLT_CACHE=empty, **cache)
    base = median(plain)
    print(f"plain back end, nothing to compile    {base:6.1f} s")
    print(f"first process, compiles a search's own{first:6.1f} s   {first - base:+.1f} s")
    print(f"every later process                   {median(later):6.1f} s   {median(later) - base:+.1f} s")
    print(f"fastglt tune, its own start included  {tune:6.1f} s")


if __name__ == "__main__":
    main()
