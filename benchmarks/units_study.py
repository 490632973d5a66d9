"""Which hidden units stay: rules and variants on nodes that have no other use, and single weights for comparison.

    python benchmarks/units_study.py --datasets cora citeseer pubmed --sparsities 0 0.75 --seeds 3 --jobs 2

Planetoid's splits leave many nodes out. Their labels neither train a network, nor choose an epoch, nor count in a
test score, so a choice can be made on them; where a split leaves no node out, validation nodes have to do. Edges go
by the forest rule. Each run is one line of --out, so the same command goes on after an interruption; no test score
is looked at. Tickets are taught as `fastglt find --distill` teaches them, unless --distill says otherwise here.
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

UNITS, WEIGHTS = "units", "weights"
VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {  # method, structure, options
    "units by mask, no swaps": ("forest", UNITS, {"unit_score": "mask"}),
    "units by norm, no swaps": ("forest", UNITS, {"unit_score": "norm"}),
    "units by effect, no swaps": ("forest", UNITS, {"unit_score": "effect"}),
    "units at random, no swaps": ("forest", UNITS, {"unit_score": "random"}),
    "units by mask": ("forest", UNITS, {"unit_score": "mask", "unit_swap_fraction": 0.3}),
    "units by effect": ("forest", UNITS, {"unit_score": "effect", "unit_swap_fraction": 0.3}),
    "single weights": ("forest", WEIGHTS, {}),
}
DENSE, USUAL = "dense", "usual"
Job = tuple[str, str, str, float, float, str, float, int]  # graph, model, variant, sparsities, teacher, lr, seed


def run(job: Job) -> dict[str, Any]:
    """One ticket, or the dense network, in a process of its own."""
    from dataclasses import replace

    import torch

    from fastglt.methods import Targets
    from fastglt.methods.settings import budget_for
    from fastglt.methods.teaching import with_teacher
    from fastglt.runs.experiment import Experiment
    from fastglt.tickets.find import find
    from fastglt.tickets.phases import train_fixed
    from fastglt.training.loop import Training
    from fastglt.training.records import Snapshot

    dataset, model, variant, graph_sparsity, weight_sparsity, distill, lr, seed = job
    method, structure, options = VARIANTS.get(variant, ("forest", WEIGHTS, {}))
    targets = Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity, structure=structure)
    budget = with_teacher(replace(budget_for(dataset, model), lr=lr), True if distill == USUAL else float(distill))
    given = {"dataset": dataset, "model": model, "method": method, "options": options}
    experiment = Experiment(**given, targets=targets, budget=budget, seed=seed, threads=1)
    experiment.use_machine()
    prepared = experiment.prepare()
    network, task = prepared.network, prepared.task
    others = torch.ones(task.graph.num_nodes, dtype=torch.bool)
    others[torch.cat([task.train, task.val, task.test])] = False
    nodes = others.nonzero().squeeze(1) if others.any() else task.val

    def score(best: Snapshot) -> float:
        training = Training(network, task, budget.recipe, seed=seed, masks=best.masks)
        training.network.load_state_dict(dict(best.state))
        with torch.no_grad():
            return task.score(training.network.eval()(task.x, training.graph, None, nodes), nodes)

    shown: dict[str, Any] = {"job": job, "nodes": len(nodes), "unused": bool(others.any())}
    if variant == DENSE:
        return {**shown, "alone": score(train_fixed("dense", network, task, budget, seed=seed).best)}
    found = find(network, task, prepared.method, seed=seed, dense=False)
    best = {name: found.phases[name].best for name in ("isolated", "search")}
    val = {f"{name}_val": one.scores.val for name, one in best.items()}
    return {**shown, "alone": score(best["isolated"]), "search": score(best["search"]), **val}


def table(found: Sequence[Mapping[str, Any]]) -> None:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one["job"][:-1]), []).append(one)
    print("| graph, model | edges, weights removed | teacher | lr | variant | alone | end of search | n |")
    print("|---|---|---|---|---|---|---|---|")
    for (dataset, model, variant, *sparsities, distill, lr), runs in groups.items():
        removed = ", ".join(f"{100 * sparsity:g} %" for sparsity in sparsities)
        cells = [f"{dataset} {model}", removed, distill, f"{lr:g}", variant]
        cells.append(_score([one["alone"] for one in runs]))
        cells.append("" if variant == DENSE else _score([one["search"] for one in runs]))
        print(f"| {' | '.join(cells)} | {len(runs)} |")
    for dataset, nodes, unused in sorted({(one["job"][0], one["nodes"], one["unused"]) for one in found}):
        print(f"\n{dataset}: scores on {nodes} {'nodes without other use' if unused else 'validation nodes'}")


def _score(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):.2f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora"])
    parser.add_argument("--models", nargs="+", default=["gcn"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.75], help="of edges")
    parser.add_argument("--weight-sparsities", nargs="+", type=float, default=[0.97])
    parser.add_argument("--distill", nargs="+", default=[USUAL], help="as --distill, or weights of it; 0: none")
    parser.add_argument("--lr", nargs="+", type=float, default=[0.001])
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/units-study.jsonl"))
    given = parser.parse_args()
    jobs: list[Job] = []
    for dataset, model in itertools.product(given.datasets, given.models):
        jobs += [(dataset, model, DENSE, 0.0, 0.0, "0", 0.001, seed) for seed in range(given.seeds)]
        grid = (given.sparsities, given.weight_sparsities, given.distill, given.lr, range(given.seeds))
        for g, w, distill, lr, seed in itertools.product(*grid):
            jobs += [(dataset, model, variant, g, w, distill, lr, seed) for variant in given.variants]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    known = {tuple(one["job"]): one for one in map(json.loads, lines)}
    waiting = [job for job in jobs if job not in known]
    print(f"{len(jobs) - len(waiting)} of {len(jobs)} runs are finished already", flush=True)
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool, given.out.open("a") as out:
        for future in as_completed([pool.submit(run, job) for job in waiting]):
            done = future.result()
            print(json.dumps(done), file=out, flush=True)
            known[tuple(done["job"])] = done
            print(f"{sum(job in known for job in jobs)} of {len(jobs)}: {done['job']}", flush=True)
    table([known[job] for job in jobs])


if __name__ == "__main__":
    main()
