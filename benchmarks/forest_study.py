"""The forest rule and its variants on nodes that have no other use: what choices were made by, what pruning did.

    python benchmarks/forest_study.py --datasets cora citeseer --sparsities 0.35 0.5 --seeds 3 --jobs 2

Planetoid's splits leave many nodes out. Their labels neither train a network, nor choose an epoch, nor count in a
test score, so a method can be developed on them; where a split leaves no node out, validation nodes have to do.
Each run is one line of --out, so the same command goes on after an interruption; no test score is looked at.

The table has the scores of tickets trained alone from Θ0 and of the search's own weights, both on those nodes; the
homophily of what is kept and of what is cut; components, lonely nodes, which have no neighbour, and to how many
nodes a node effectively listens: 1 / Σ p², p the shares that a GCN gives its neighbours and itself.
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastglt.graphs.graph import Graph

FOREST = "forest"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "forest": (FOREST, {}),
    "forest, edges between predicted classes like all others": (FOREST, {"classes": False}),
    "forest, without support": (FOREST, {"support": False}),
    "forest, agreement instead of standing": (FOREST, {"local": False}),
    "forest, agreement of all edges": (FOREST, {"classes": False, "local": False}),
    "no forest": (FOREST, {"forests": 0}),
    "no forest, agreement of all edges": (FOREST, {"classes": False, "local": False, "forests": 0}),
    "as many forests as fit": (FOREST, {"forests": None}),
    "forest chosen once": (FOREST, {"revise": False}),
    "forest from stage 1 on": (FOREST, {"wait": 0.0}),
    "forest chosen once, after stage 1": (FOREST, {"wait": 0.0, "revise": False}),
    "random forest": (FOREST, {"strength": "random", "local": False}),
    "degree forest": (FOREST, {"strength": "degree", "local": False}),
    "forest by the features' cosine": (FOREST, {"strength": "features", "local": False}),
    "forest by the features' standing": (FOREST, {"strength": "features"}),
    "forest, weights by effect": (FOREST, {"weight_score": "effect"}),
    "fastglt": ("fastglt", {}),
    "oneshot": ("oneshot", {}),
    "random": ("random", {}),
}
DENSE = "dense"
Job = tuple[str, str, str, float, float, int, int]  # dataset, model, variant, two sparsities, hidden units, seed


def run(job: Job) -> dict[str, Any]:
    """One ticket, or the dense network, in a process of its own."""
    import torch

    from fastglt.analysis.effects import describe_graph
    from fastglt.methods import Targets
    from fastglt.methods.settings import budget_for
    from fastglt.runs.experiment import Experiment
    from fastglt.tickets.find import find
    from fastglt.tickets.phases import train_fixed
    from fastglt.training.loop import Training
    from fastglt.training.records import Snapshot

    dataset, model, variant, sparsity, weight_sparsity, hidden, seed = job
    method, options = VARIANTS.get(variant, ("oneshot", {}))
    experiment = Experiment(
        dataset=dataset,
        model=model,
        method=method,
        options=options,
        targets=Targets(graph_sparsity=sparsity, weight_sparsity=weight_sparsity),
        budget=budget_for(dataset, model),
        hidden=hidden,
        seed=seed,
        threads=1,
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    network, task, budget = prepared.network, prepared.task, prepared.method.budget
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
        best = train_fixed("dense", network, task, budget, seed=seed).best
        return {**shown, "alone": score(best), "heard": effective_degree(task.graph)}
    phases = find(network, task, prepared.method, seed=seed, dense=False).phases
    masks = phases["search"].best.masks
    return {
        **shown,
        "alone": score(phases["isolated"].best),
        "search": score(phases["search"].best),
        "graph": asdict(describe_graph(task.graph, masks.edges, task.y)),
        "heard": effective_degree(task.graph.prune(masks.edges)),
    }


def effective_degree(graph: "Graph") -> float:
    """To how many nodes a node effectively listens, on average."""
    (hop,) = graph.hops(None, depth=1)
    norm, rows = hop.symmetric_norm, hop.csr.rows
    total, squares = (norm.new_zeros(graph.num_nodes).index_add_(0, rows, norm**power) for power in (1, 2))
    return float((total.square() / squares).mean())


def table(found: Sequence[Mapping[str, Any]]) -> None:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one["job"][:6]), []).append(one)
    print("| graph, model | removed | variant | alone | search | homophily kept/cut | parts | lonely | heard | n |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (dataset, model, variant, *sparsities, _), runs in groups.items():
        removed = ", ".join(f"{100 * sparsity:g} %" for sparsity in sparsities)
        cells = [f"{dataset} {model}", removed, variant, _score([one["alone"] for one in runs])]
        if variant == DENSE:
            cells += [""] * 4
        else:
            graphs = [one["graph"] for one in runs]
            shares = [fmean(graph["homophily"][part] for graph in graphs) for part in ("kept", "pruned")]
            counts = [fmean(graph[part] for graph in graphs) for part in ("components_after", "isolated_after")]
            cells += [
                _score([one["search"] for one in runs]),
                " / ".join(f"{100 * share:.1f} %" for share in shares),
            ]
            cells += [f"{count:.0f}" for count in counts]
        heard = [one["heard"] for one in runs if "heard" in one]
        cells.append(f"{fmean(heard):.2f}" if heard else "")
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
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.35], help="of edges")
    parser.add_argument("--weight-sparsity", type=float, default=0.0, help="0.98: joint tickets")
    parser.add_argument("--hidden", type=int, default=512, help="hidden units; of a GAT, of each head")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/forest-study.jsonl"))
    given = parser.parse_args()
    jobs: list[Job] = []
    for dataset, model in itertools.product(given.datasets, given.models):
        jobs += [(dataset, model, DENSE, 0.0, 0.0, given.hidden, seed) for seed in range(given.seeds)]
        for sparsity, variant, seed in itertools.product(given.sparsities, given.variants, range(given.seeds)):
            jobs.append((dataset, model, variant, sparsity, given.weight_sparsity, given.hidden, seed))
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
