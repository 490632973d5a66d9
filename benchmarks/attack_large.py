"""A large graph poisoned by our own attack: what a GCN loses, and what the robust ticket's edges give back.

    python benchmarks/attack_large.py --dataset ogbn-arxiv --out docs/results/attack_arxiv.json

Goes on where it was; a poisoned graph is kept beside the results until all is done. Seconds are processor time of
one thread, memory is the process's largest until then.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fastglt import kernels
from fastglt.attacks.blocks import AttackSettings, attack_task_edges
from fastglt.data import load
from fastglt.masks import Mask, Masks
from fastglt.methods import Budget
from fastglt.models import make
from fastglt.suspects import rank_task_edges
from fastglt.system.storage import write_atomically
from fastglt.tasks.node_classification import NodeClassification
from fastglt.tickets.phases import train_fixed


def accuracy(task: NodeClassification, given: argparse.Namespace, kept: Tensor | None = None) -> dict[str, Any]:
    """A two-layer GCN along some of the edges, at its best epoch on validation nodes."""
    shape = {"in_channels": task.x.num_features, "hidden": given.hidden, "out_channels": task.num_outputs}
    network = make("gcn", **shape, seed=given.seed)
    budget = Budget(oneshot_epochs=1, denoise_epochs=given.epochs - 1, interval=1, lr=0.01, weight_decay=0.0)
    every = Masks.full(task.graph.num_edges, network.weight_shapes)
    masks = every if kept is None else Masks(edges=Mask(kept), weights=every.weights)
    began = time.process_time()
    best = train_fixed("dense", network, task, budget, seed=given.seed, masks=masks).best
    return {"val": best.scores.val, "test": best.scores.test, **cost(began)}


def cost(began: float) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"cpu_seconds": round(time.process_time() - began, 1), "peak_gib": round(peak, 2)}


def poison(task: NodeClassification, rate: float, given: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Attack, and keep the edges."""
    settings = AttackSettings(
        steps=given.steps, fresh=given.steps * 4 // 5, block=given.block, epochs=given.epochs, seed=given.seed
    )
    began = time.process_time()
    found = attack_task_edges(task, rate=rate, settings=settings, tell=lambda what: print(what, flush=True))
    spent = cost(began)
    np.savez(path, edges=found.edges.numpy())
    return {"added": found.added.shape[1], "removed": found.removed.shape[1], "lost": found.wrong_after, **spent}


def defend(clean: NodeClassification, task: NodeClassification, given: argparse.Namespace) -> dict[str, Any]:
    """Rank the edges, leave out as many as were probably added, and as many as were."""
    began = time.process_time()
    ranking = rank_task_edges(task, seed=given.seed, epochs=given.rank_epochs)
    spent = cost(began)
    nodes = task.graph.num_nodes
    keys = [graph.edges[0] * nodes + graph.edges[1] for graph in (task.graph, clean.graph)]
    added = ~torch.isin(*keys).numpy()
    return {
        "expected": ranking.expected,
        "auc": float(roc_auc_score(added, ranking.suspicion)),
        "precision": float(added[ranking.worst(int(added.sum())).numpy()].mean()),
        "ranking": spent,
        "robust": accuracy(task, given, ~ranking.worst()),
        "robust, as many as were added": accuracy(task, given, ~ranking.worst(int(added.sum()))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ogbn-arxiv")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.05, 0.01])
    parser.add_argument(
        "--poisoned", type=Path, help="what fastglt attack wrote, instead of an attack by each rate"
    )
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rank-epochs", type=int, default=50)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--block", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kernels.set_threads(1)
    loaded = load(given.dataset, root=given.data_root)
    clean = NodeClassification.from_tensors(loaded.tensors)
    known: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {"dataset": loaded.name}

    def keep(name: str, value: dict[str, Any]) -> None:
        known[name] = value
        write_atomically(given.out, (json.dumps(known, indent=1) + "\n").encode())
        print(name, value, flush=True)

    if given.poisoned is not None:
        task = NodeClassification.from_tensors(load(str(given.poisoned)).tensors)
        keep("gcn poisoned", accuracy(task, given))
        keep("gcn clean", accuracy(clean, given))
        keep("defence", defend(clean, task, given))
        return
    for rate in given.rates:
        path = given.out.with_name(f"{given.out.stem}-{rate:g}.npz")
        if f"attack {rate:g}" not in known or not path.exists():
            keep(f"attack {rate:g}", poison(clean, rate, given, path))
        edges = torch.from_numpy(np.load(path)["edges"])
        task = NodeClassification.from_tensors(
            {**loaded.tensors, "edge_index": torch.cat([edges, edges.flip(0)], 1)}
        )
        if f"gcn {rate:g}" not in known:
            keep(f"gcn {rate:g}", accuracy(task, given))
        if "gcn clean" not in known:
            keep("gcn clean", accuracy(clean, given))
        if f"defence {rate:g}" not in known:
            keep(f"defence {rate:g}", defend(clean, task, given))


if __name__ == "__main__":
    main()
