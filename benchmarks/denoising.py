"""What FastGLT's swaps do to the weights of one search: who returns, who stays, how large they are.

    python benchmarks/denoising.py --dataset citeseer --weight-sparsity 0.98

Every few swaps a row. *Size* is the median |w| of the weights kept since the one-shot cut, *old* their share of all
that is kept; *stayed* the share of what the swap before had regrown that this one leaves. *Inputs* have a weight of
the first matrix left.
"""

import argparse

import torch
from torch import Tensor

from fastglt.masks import as_vector
from fastglt.methods import Targets
from fastglt.methods.base import get_masks
from fastglt.methods.settings import budget_for
from fastglt.runs.experiment import Experiment
from fastglt.training.loop import Training, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--weight-sparsity", type=float, default=0.98)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=5, help="show one of so many swaps")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    experiment = Experiment(
        dataset=given.dataset,
        model=given.model,
        method="fastglt",
        targets=Targets(graph_sparsity=0.0, weight_sparsity=given.weight_sparsity),
        budget=budget_for(given.dataset, given.model),
        seed=given.seed,
        threads=given.threads,
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    method, budget = prepared.method, prepared.method.budget
    last: list[Tensor] = []  # masks of the cut and of swaps, at most three
    swaps, old = -1, torch.tensor(True)  # kept by the cut and by every swap
    print("| epoch | kept | size | regrown | stayed | old | inputs |\n|---|---|---|---|---|---|---|")

    def after_epoch(training: Training) -> None:
        denoised = training.epoch - budget.oneshot_epochs
        if denoised < 0 or (denoised % budget.interval and training.epoch < method.epochs):
            return
        nonlocal swaps, old
        kept = get_masks(training)[1]
        last[:] = [*last[-2:], kept]
        swaps, old = swaps + 1, kept & old
        if swaps < 2 or swaps % given.every:
            return
        new = last[1] & ~last[0]
        size = as_vector(training.weights).detach().abs().cpu()[old].median()
        stayed, share = 100 * kept[new].double().mean(), 100 * old.sum() / kept.sum()
        inputs = int(next(iter(training.masks.weights.values())).kept.any(1).sum())
        shown = f"{size:.3f} | {int((kept & ~last[1]).sum())} | {stayed:.1f} % | {share:.1f} % | {inputs}"
        print(f"| {training.epoch} | {int(kept.sum())} | {shown} |", flush=True)

    train(Training(prepared.network, prepared.task, method.recipe, seed=given.seed), method, after_epoch)


if __name__ == "__main__":
    main()
