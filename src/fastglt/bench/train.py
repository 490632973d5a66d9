"""One epoch of ours, masks on, against one of stock PyG."""

from dataclasses import replace
from typing import Any

from fastglt.bench import Note, silent
from fastglt.bench.memory import peaks
from fastglt.bench.runs import SteppedSearch, Work, interleaved, stock_epochs
from fastglt.bench.stock import FORMS
from fastglt.methods import FixedMasks
from fastglt.runs.experiment import Experiment, Prepared
from fastglt.system.seeds import own_random_state

_FOREVER = 10**9  # epochs: a stage that does not end while it is measured


def measure(experiment: Experiment, *, repeats: int, note: Note = silent) -> dict[str, Any]:
    """A row: milliseconds per epoch, medians over interleaved rounds, and peak memory.

    Ours is the mean epoch of a search: its stages, soft masks and hard ones, by how long each lasts. PyG's is the
    faster of its two ways to hold a graph. An epoch is a training step and an evaluation.
    """
    prepared = experiment.prepare()
    memory, device = peaks(prepared, note), prepared.task.device
    with own_random_state(device):
        sides: dict[str, Work] = {stage: run.epoch for stage, run in our_stages(prepared).items()}
        sides |= {f"pyg_{form}": epoch for form, epoch in stock_epochs(prepared).items()}
        medians = interleaved(sides, repeats=repeats, device=device, note=note)
    ms = {f"{side}_ms": 1000 * seconds for side, seconds in medians.items()}
    budget, faster = experiment.budget, min(FORMS, key=lambda form: ms[f"pyg_{form}_ms"])
    ours = (budget.oneshot_epochs * ms["soft_ms"] + budget.denoise_epochs * ms["hard_ms"]) / budget.epochs
    pyg = ms[f"pyg_{faster}_ms"]
    return {
        "dataset": experiment.dataset,
        "model": experiment.model,
        "ours_ms": ours,
        "pyg_ms": pyg,
        "ratio_to_pyg": pyg / ours,
        **ms,
        "pyg_faster": faster,
        **memory,
        "peak_mb_pyg": memory[f"peak_mb_pyg_{faster}"],
    }


def our_stages(prepared: Prepared) -> dict[str, SteppedSearch]:
    """Runs that stay in a stage: soft masks on edges and weights, hard masks after the cut, and dense."""
    method = prepared.method
    soft = replace(method.budget, oneshot_epochs=_FOREVER)
    hard = replace(method.budget, oneshot_epochs=1, denoise_epochs=_FOREVER, interval=_FOREVER)
    stages = {
        "soft": replace(method, budget=soft),
        "hard": replace(method, budget=hard),
        "dense": FixedMasks(budget=method.budget),
    }
    runs = {
        name: SteppedSearch(prepared.network, prepared.task, stage, seed=prepared.experiment.seed)
        for name, stage in stages.items()
    }
    runs["hard"].epoch()  # the one before the cut
    return runs
