"""What an epoch of a search with a deep network takes: seconds of the processor, and memory.

    python benchmarks/deep.py --dataset ogbn-arxiv --layers 3

One thread; both masks are trained, then cut (30 % of the edges, 70 % of the weights). An epoch is a step and an
evaluation. The first one of each stage, which also finds who hears whom, is left out.
"""

import argparse
import resource

from fastglt.bench.runs import SteppedSearch
from fastglt.data import load
from fastglt.methods import Budget, Targets, make
from fastglt.models import build
from fastglt.runs.experiment import use_machine
from fastglt.system.process import peak_memory
from fastglt.tasks import NodeClassification


def main() -> None:
    """Measure and print a line for each epoch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dataset", default="ogbn-arxiv")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2, help="of each stage")
    given = parser.parse_args()
    use_machine(1)
    found = load(given.dataset, root=given.data_root)
    task = NodeClassification.from_tensors(found.tensors)
    shape = {"in_channels": task.x.num_features, "hidden": given.hidden, "out_channels": int(task.y.max()) + 1}
    network = build({"name": "resgcn", **shape, "dropout": 0.5, "seed": 0, "num_layers": given.layers})
    stage = given.epochs + 1
    budget = Budget(oneshot_epochs=stage, denoise_epochs=10**9, interval=10**9)
    method = make("fastglt", targets=Targets(graph_sparsity=0.3, weight_sparsity=0.7), budget=budget)
    search = SteppedSearch(network, task, method, seed=0)
    print(f"{'stage':8}{'user s':>8}{'system s':>10}{'peak MB':>9}")
    for epoch in range(2 * stage):
        before = resource.getrusage(resource.RUSAGE_SELF)
        search.epoch()
        after = resource.getrusage(resource.RUSAGE_SELF)
        if epoch % stage:
            spent = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
            kind = "soft" if epoch < stage else "hard"
            print(f"{kind:8}{spent[0]:8.2f}{spent[1]:10.2f}{peak_memory() / 2**20:9.0f}", flush=True)


if __name__ == "__main__":
    main()
