"""Masks that move: what a ticket's mask is worth on another graph, or under another backbone.

    FASTGLT_DATA=… python benchmarks/transfer.py

Weight masks (95 % gone) between Cora and its poisoned form (Metattack, 25 %), and between two parts of ogbn-arxiv
by year, to 2013 and 2014 to 2015, each with a seeded split of 20 training and 30 validation nodes a class; graph
masks (30 % gone, forest) from a GCN to a GIN and a GAT on Cora. Each mask is judged as `fastglt transfer` does:
trained from initial weights, paired by seed with the dense network, five seeds, margin one point. Beside it stand
the mask that is searched for where it is used, and a random one of the same sparsity. Every finished row is in
--out.
"""

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

import fastglt
from fastglt.data import load
from fastglt.data.base import seeded_split
from fastglt.data.named import data_root
from fastglt.system.storage import write_atomically

SEEDS = range(5)
CORA = fastglt.Budget(lr=0.01, denoise_epochs=170)
ARXIV = fastglt.Budget(lr=0.01, denoise_epochs=120)


def poisoned(rate: str | None) -> Data:
    """Cora's largest component, clean or attacked, with the attack's split."""
    root = data_root(None)
    assert root is not None, "FASTGLT_DATA names the folder of raw sets"
    z = np.load(root / "poisoned/clean/cora.npz")
    a = sp.csr_matrix((z["adj_data"], z["adj_indices"], z["adj_indptr"]), z["adj_shape"])
    a = a + a.T
    part = connected_components(a, directed=False)[1]
    keep = np.flatnonzero(part == np.bincount(part).argmax())
    graph = a[keep][:, keep] > 0
    if rate is not None:
        graph = sp.load_npz(root / f"poisoned/meta/cora_meta_adj_{rate}.npz") > 0
    x = sp.csr_matrix((z["attr_data"], z["attr_indices"], z["attr_indptr"]), z["attr_shape"])[keep].toarray()
    x = x / np.maximum(x.sum(1, keepdims=True), 1)
    graph = sp.coo_matrix(graph)
    proper = graph.row != graph.col
    index = np.stack([graph.row[proper], graph.col[proper]]).astype(np.int64)
    split = json.loads((root / "poisoned/splits/cora_prognn_splits.json").read_text())
    masks = {}
    for name in ("train", "val", "test"):
        masks[f"{name}_mask"] = torch.zeros(len(keep), dtype=torch.bool)
        masks[f"{name}_mask"][split[f"idx_{name}"]] = True
    labels = torch.from_numpy(z["labels"][keep].astype(np.int64))
    return Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(index), y=labels, **masks)


def of_years(first: int, last: int) -> Data:
    """The papers of some years and the citations among them."""
    root = data_root(None)
    assert root is not None, "FASTGLT_DATA names the folder of raw sets"
    with gzip.open(root / "ogbn_arxiv/raw/node_year.csv.gz", "rt") as file:
        years = torch.from_numpy(np.loadtxt(file, dtype=np.int64))
    data = load("ogbn-arxiv").data.subgraph((years >= first) & (years <= last))
    split = seeded_split(data.y.numpy(), 0)
    for name, mask in split._asdict().items():
        data[f"{name}_mask"] = torch.from_numpy(mask)
    return data


Source = Callable[[], Data]
GRAPHS: dict[str, tuple[Source, Source, fastglt.Budget]] = {
    "Cora, clean → poisoned": (lambda: poisoned(None), lambda: poisoned("0.25"), CORA),
    "Cora, poisoned → clean": (lambda: poisoned("0.25"), lambda: poisoned(None), CORA),
    "arxiv, to 2013 → 2014–2015": (lambda: of_years(0, 2013), lambda: of_years(2014, 2015), ARXIV),
}


def judged(ticket: fastglt.Ticket, data: Data) -> dict[str, Any]:
    """The verdict, in a few numbers."""
    verdict = fastglt.evaluate(ticket, None, data, seeds=SEEDS)
    return {
        "ticket": list(verdict.ticket_scores),
        "dense": list(verdict.dense_scores),
        "outcome": verdict.outcome,
        "graph_sparsity": ticket.graph_sparsity,
        "weight_sparsity": ticket.weight_sparsity,
    }


def weights(name: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """A weight mask from there, from here, and from nowhere."""
    there, here, budget = GRAPHS[name]
    given: dict[str, Any] = {"budget": budget, "hidden": 64, "isolated": False}
    target: dict[str, Any] = {"graph_sparsity": 0.0, "weight_sparsity": 0.95}

    def moved() -> dict[str, Any]:
        ticket, data = fastglt.find_ticket("gcn", there(), **given, **target), here()
        return judged(fastglt.transfer_ticket(ticket, "gcn", data, budget=budget, hidden=64), data)

    def found(method: str) -> dict[str, Any]:
        data = here()
        return judged(fastglt.find_ticket("gcn", data, method=method, **given, **target), data)

    return {"taken over": moved, "searched here": lambda: found("fastglt"), "random": lambda: found("random")}


def graphs(model: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """A graph mask from a GCN under another backbone, one that is found under it, and a random one."""
    data = load("cora").data
    given: dict[str, Any] = {"budget": CORA, "hidden": 16, "isolated": False}
    target: dict[str, Any] = {"graph_sparsity": 0.3, "weight_sparsity": 0.0}

    def moved() -> dict[str, Any]:
        ticket = fastglt.find_ticket("gcn", data, method="forest", **given, **target)
        return judged(fastglt.transfer_ticket(ticket, model, data, budget=CORA, hidden=16), data)

    def found(method: str) -> dict[str, Any]:
        return judged(fastglt.find_ticket(model, data, method=method, **given, **target), data)

    return {"taken over": moved, "searched here": lambda: found("forest"), "random": lambda: found("random")}


def tell(known: dict[str, dict[str, Any]]) -> None:
    """The table that the docs have."""
    print("| what moves | mask | n | dense | ticket | difference | verdict |")
    print("|---|---|---|---|---|---|---|")
    for key, row in known.items():
        ticket, dense = (100 * np.array(row[side]) for side in ("ticket", "dense"))
        cells = [f"{scores.mean():.2f} ± {scores.std(ddof=1):.2f}" for scores in (dense, ticket)]
        difference = f"{(ticket - dense).mean():+.2f}".replace("-", "−")
        print(
            f"| {key.replace('|', ' | ')} | {len(ticket)} | {' | '.join(cells)} | {difference} | {row['outcome']} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/transfer.json"))
    chosen = parser.parse_args()
    fastglt.set_threads(1)
    done: dict[str, dict[str, Any]] = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    rows = {f"weights, {name}": weights(name) for name in GRAPHS}
    rows |= {f"edges, Cora, gcn → {model}": graphs(model) for model in ("gin", "gat")}
    for title, kinds in rows.items():
        for kind, make in kinds.items():
            if (key := f"{title}|{kind}") not in done:
                done[key] = make()
                write_atomically(chosen.out, (json.dumps(done, indent=1) + "\n").encode())
                print(key, json.dumps(done[key]), flush=True)
    tell(done)
