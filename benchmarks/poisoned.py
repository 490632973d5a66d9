"""Metattack and Nettack on Cora and Citeseer: who finds the added edges, and what is left of the accuracy.

    python benchmarks/poisoned.py --out docs/results/poisoned.json            # goes on where it was
    python benchmarks/poisoned.py --out docs/results/poisoned.json --show

The files are others' (`fastglt.data.poisoned` has their layout; --data-root or FASTGLT_DATA). Protocol of the
field: largest component, the split of the files, a GCN of 16 hidden units, dropout 0.5, Adam at 0.01 with decay
5e-4, 200 epochs, the epoch that is best on validation nodes. Each run has a seed of its own for everything that is
random. How many edges go is what the ranking expects to have been added; no test label and no clean graph has a say
in it. The clean graph only scores the rankings.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fastglt import kernels
from fastglt.data import load
from fastglt.data.poisoned import PoisonedGraph
from fastglt.masks import Mask, Masks
from fastglt.methods import Budget, Targets, make
from fastglt.models import make as make_network
from fastglt.suspects import EdgeRanking, rank_task_edges
from fastglt.system.seeds import derive
from fastglt.system.storage import write_atomically
from fastglt.tasks.node_classification import NodeClassification
from fastglt.tickets.find import find
from fastglt.tickets.phases import train_fixed

GRAPHS, RATES, CHANGES = ("cora", "citeseer"), (0.0, 0.25, 0.15, 0.05, 0.1, 0.2), (5, 3, 1, 2, 4)
BUDGET = Budget(oneshot_epochs=20, denoise_epochs=180, interval=10, lr=0.01, weight_decay=5e-4)
HIDDEN = 16
JACCARD = 0.01  # the threshold of Wu et al., 2019
PRINTED = {  # Pro-GNN's own table (Jin et al., 2020)
    "poisoned:cora": "83.0",
    "poisoned:cora,meta=0.05": "82.3",
    "poisoned:cora,meta=0.1": "79.0",
    "poisoned:cora,meta=0.15": "76.4",
    "poisoned:cora,meta=0.2": "73.3",
    "poisoned:cora,meta=0.25": "69.7",
    "poisoned:citeseer": "73.3",
    "poisoned:citeseer,meta=0.1": "72.5",
    "poisoned:citeseer,meta=0.25": "69.0",
}


class Graph:
    """One attacked graph, and which of its edges were added."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.nettack = name, "nettack" in name
        self.task = NodeClassification.from_tensors(load(name, root=root).tensors)
        nodes, edges = self.task.graph.num_nodes, self.task.graph.edges.numpy()
        clean = PoisonedGraph.parse(name.removeprefix("poisoned:")).clean_edges(root)
        self.added = ~np.isin(edges[0] * nodes + edges[1], clean[0] * nodes + clean[1])
        self.jaccard = jaccard(self.task)

    def ranking(self, seed: int) -> EdgeRanking:
        """As the robust search of that seed has it."""
        return rank_task_edges(self.task, seed=derive(seed, "suspects"))


def jaccard(task: NodeClassification) -> Any:
    """The share of common words of both ends of each edge."""
    words = (task.x.dense > 0).float()
    source, target = words[task.graph.edges[0]], words[task.graph.edges[1]]
    both = (source * target).sum(1)
    return (both / (source.sum(1) + target.sum(1) - both).clamp(min=1)).numpy()


def train(graph: Graph, seed: int, kept: Tensor | None = None) -> dict[str, Any]:
    """A GCN along some of the edges."""
    network = network_of(graph, seed)
    every = Masks.full(graph.task.graph.num_edges, network.weight_shapes)
    masks = every if kept is None else Masks(edges=Mask(kept), weights=every.weights)
    best = train_fixed("dense", network, graph.task, BUDGET, seed=seed, masks=masks).best
    return {"val": best.scores.val, "test": best.scores.test, "removed": int((~masks.edges.kept).sum())}


def network_of(graph: Graph, seed: int, hidden: int = HIDDEN) -> Any:
    task = graph.task
    return make_network(
        "gcn", in_channels=task.x.num_features, hidden=hidden, out_channels=task.num_outputs, seed=seed
    )


def ticket(
    graph: Graph,
    seed: int,
    *,
    method: str,
    weights: float,
    hidden: int = HIDDEN,
    budget: Budget = BUDGET,
    **options: Any,
) -> dict[str, Any]:
    """A ticket that removes as many edges as were probably added, retrained from its initial weights."""
    share = graph.ranking(seed).share
    targets = Targets(graph_sparsity=share, weight_sparsity=weights)
    search = make(method, targets=targets, budget=budget, **options)
    found = find(network_of(graph, seed, hidden), graph.task, search, seed=seed, dense=False).ticket
    gone = ~found.masks.edges.kept.numpy()
    return {
        "val": found.scores["isolated_val"],
        "test": found.scores["isolated_test"],
        "search_test": found.scores["search_test"],
        "removed": int(gone.sum()),
        "removed_added": int((gone & graph.added).sum()),
    }


def rank(graph: Graph, seed: int) -> dict[str, Any]:
    """How well rankings tell added edges from others; ours also without a look at who has too many edges."""
    alone = rank_task_edges(graph.task, seed=derive(seed, "suspects"), excess=False) if seed < 3 else None
    began = time.process_time()
    ranking = graph.ranking(seed)  # the last: others ask for it again
    seconds = time.process_time() - began
    degree = graph.task.graph.degree[graph.task.graph.edges].sum(0).numpy()
    rules = {
        "suspects": ranking.suspicion.numpy(),
        **({} if alone is None else {"without excess": alone.suspicion.numpy()}),
        "jaccard": -graph.jaccard,
        "degree": degree,
        "random": np.random.default_rng(seed).random(len(degree)),
    }
    found: dict[str, Any] = {"added": int(graph.added.sum()), "expected": ranking.expected, "seconds": seconds}
    if graph.added.any():
        for name, values in rules.items():
            found[name] = {"auc": float(roc_auc_score(graph.added, values)), "precision": precision(graph, values)}
    return found


def precision(graph: Graph, values: Any) -> float:
    """The share of added edges among the most suspicious, as many as were added."""
    worst = np.argsort(-values, kind="stable")[: int(graph.added.sum())]
    return float(graph.added[worst].mean())


def robust(graph: Graph, seed: int, share: float | None = None) -> dict[str, Any]:
    """The robust ticket with all of its weights."""
    ranking = graph.ranking(seed)
    worst = ranking.worst(None if share is None else round(share * len(graph.added)))
    found = train(graph, seed, ~worst)
    return {**found, "removed_added": int((worst.numpy() & graph.added).sum())}


WIDE = Budget(oneshot_epochs=30, denoise_epochs=400, interval=10, lr=0.001, weight_decay=5e-4)
Job = Callable[[Graph, int], dict[str, Any]]
EVERY: dict[str, Job] = {  # ten runs of each; in this order, as they share a ranking
    "gcn": train,
    "jaccard": lambda graph, seed: train(graph, seed, torch.from_numpy(graph.jaccard >= JACCARD)),
    "rank": rank,
    "robust": robust,  # after the ranking, which is remembered
}
TICKETS: dict[str, Job] = {
    "forest robust": partial(ticket, method="forest", weights=0.5, robust=True),
    "forest": partial(ticket, method="forest", weights=0.5),
    "fastglt": partial(ticket, method="fastglt", weights=0.5),
    "ugs": partial(ticket, method="ugs", weights=0.5),
}
WIDE_TICKETS: dict[str, Job] = {
    "forest robust, 512 units": partial(ticket, method="forest", weights=0.9, hidden=512, budget=WIDE, robust=True),
}
TARGETED: dict[str, Job] = {**EVERY, "robust 10 %": partial(robust, share=0.1)}


def plan(given: argparse.Namespace) -> list[tuple[str, str, int, Job]]:
    """All that is asked for: graph, what, seed, job; run by run, so that a table is there early."""
    meta = [f"poisoned:{graph}" + (f",meta={rate:g}" if rate else "") for rate in RATES for graph in GRAPHS]
    nettack = [f"poisoned:{graph},nettack={changes}" for changes in CHANGES for graph in GRAPHS]
    runs, few, targeted = range(given.runs), range(given.ticket_runs), range(given.nettack_runs)
    parts = [  # clean and worst first; a little of everything before all of something
        (meta[:4], EVERY, runs[:4]),
        (meta[2:4], TICKETS, few[:2]),
        (meta[4:], EVERY, runs[:2]),
        (nettack[:6], TARGETED, targeted[:1]),
        (meta[:4], EVERY, runs),
        (meta[:4], TICKETS, few),
        (meta[4:], EVERY, runs),
        (nettack, TARGETED, targeted),
        (meta, TICKETS, few),
        (meta[:4], WIDE_TICKETS, range(given.wide_runs)),
    ]
    return [
        (graph, name, seed, job)
        for graphs, what, seeds in parts
        for seed in seeds
        for graph in graphs
        for name, job in what.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FASTGLT_DATA"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--ticket-runs", type=int, default=3)
    parser.add_argument("--nettack-runs", type=int, default=3)
    parser.add_argument("--wide-runs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the tables of what is there")
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out.exists() else {}
    if given.show:
        show(known)
        return
    kernels.set_threads(1)
    graphs: dict[str, Graph] = {}
    for graph, what, seed, job in plan(given):
        runs = known.setdefault(graph, {}).setdefault(what, {})
        if str(seed) in runs:
            continue
        if graph not in graphs:
            graphs[graph] = Graph(graph, Path(given.data_root))
        began = time.process_time()
        found = job(graphs[graph], seed)
        runs[str(seed)] = {**found, "cpu_seconds": round(time.process_time() - began, 2)}
        write_atomically(given.out, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())
        print(graph, what, seed, found, flush=True)


def cell(runs: dict[str, Any], *path: str, scale: float = 100) -> str:
    """Mean ± standard deviation and how many."""
    values = []
    for run in runs.values():
        for name in path:
            run = run.get(name) if isinstance(run, dict) else None  # noqa: PLW2901
        if isinstance(run, int | float):
            values.append(scale * run)
    if not values:
        return "–"
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{spread} ({len(values)})"


def show(known: dict[str, Any]) -> None:
    """Accuracy, then rankings, as Markdown."""
    every = ("gcn", "jaccard", "robust", *TICKETS, *WIDE_TICKETS, "robust 10 %")
    columns = [name for name in every if any(graph.get(name) for graph in known.values())]
    print(f"| graph | {' | '.join(columns)} | Pro-GNN printed |\n|---{'|---' * (len(columns) + 1)}|")
    for graph in sorted(known):
        cells = [cell(known[graph].get(name, {}), "test") for name in columns]
        print(f"| {graph.removeprefix('poisoned:')} | {' | '.join(cells)} | {PRINTED.get(graph, '–')} |")
    rules = ("suspects", "without excess", "jaccard", "degree", "random")
    print(f"\n| graph | added | expected | {' | '.join(rules)} |\n|---|---|---{'|---' * len(rules)}|")
    for graph in sorted(known):
        runs = known[graph].get("rank", {})
        if not any("suspects" in run for run in runs.values()):  # a clean graph
            expected = cell(runs, "expected", scale=1)
            print(f"| {graph.removeprefix('poisoned:')} | 0 | {expected} |{' – |' * len(rules)}")
            continue
        sizes = [cell(runs, name, scale=1) for name in ("added", "expected")]
        both = [f"{cell(runs, rule, 'auc')}, {cell(runs, rule, 'precision')}" for rule in rules]
        print(f"| {graph.removeprefix('poisoned:')} | {' | '.join([*sizes, *both])} |")


if __name__ == "__main__":
    main()
