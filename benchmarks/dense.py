"""Dense test scores over seeds: what a ticket has to match.

    python benchmarks/dense.py cora gat --seeds 0-4

The paper's budget for the pair, the public split, the test score at the best validation epoch.
"""

import argparse
from statistics import fmean, stdev

from fastglt.kernels import set_threads
from fastglt.methods import Targets
from fastglt.methods.settings import budget_for
from fastglt.runs.experiment import Experiment
from fastglt.system.process import keep_freed_memory
from fastglt.tickets.phases import train_fixed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", default="0-4", help="first-last")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    keep_freed_memory()
    set_threads(arguments.threads)
    budget = budget_for(arguments.dataset, arguments.model)
    first, last = map(int, arguments.seeds.split("-"))
    scores = []
    for seed in range(first, last + 1):
        experiment = Experiment(
            dataset=arguments.dataset, model=arguments.model, targets=Targets(), budget=budget, seed=seed
        )
        prepared = experiment.prepare()
        result = train_fixed("dense", prepared.network, prepared.task, budget, seed=seed)
        scores.append(100 * result.best.scores.test)
        print(
            f"{arguments.dataset} {arguments.model} seed {seed}: {scores[-1]:.2f} ({result.seconds:.0f} s)",
            flush=True,
        )
    if len(scores) > 1:
        print(
            f"{arguments.dataset} {arguments.model}: {fmean(scores):.2f} ± {stdev(scores):.2f}, n = {len(scores)}"
        )


if __name__ == "__main__":
    main()
