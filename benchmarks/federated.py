"""Federated tickets beside dense training and clients alone: accuracy and bytes.

    FASTGLT_DATA=… python benchmarks/federated.py --datasets cora pubmed coauthor-physics

Ten clients, parts by METIS and at random, three seeds, a GCN with 64 hidden units, 100 rounds. *ticket*: 95 % of
the weights go after two dense rounds. *dense*: the same with all weights. *fedavg*: dense, clients with Adam,
weights averaged. *alone*: each client with its own part only. *killed*: a ticket whose client 3 is gone after round
30. Messages are the very bytes that Flower would carry. Every finished run is in --out, so the same
command goes on.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import fastglt
from fastglt.data import load
from fastglt.federated import Federation, Plan
from fastglt.federated.rounds import InProcess
from fastglt.system.storage import write_atomically
from fastglt.tasks import NodeClassification
from fastglt.tickets.networks import named_network

KINDS: dict[str, dict[str, Any]] = {
    "ticket": {},
    "dense": {"weight_sparsity": 0.0, "warmup": 0},
    "killed": {},
    "alone": {"weight_sparsity": 0.0, "warmup": 0},
    "fedavg": {"weight_sparsity": 0.0, "warmup": 0, "server": "average", "lr": 0.01},
}
GONE_AFTER, GONE = 30, 3


def run(task: NodeClassification, kind: str, parts: str, seed: int) -> dict[str, Any]:
    """One federation, or ten clients alone."""
    plan = Plan(parts=parts, seed=seed, **KINDS[kind])
    network = named_network("gcn", task, hidden=64, seed=seed)
    federation = Federation(task=task, network=network, plan=plan)
    began = time.process_time()
    if kind == "alone":
        found: dict[str, Any] = {"parts": federation.alone()["pooled"]}
        return {**found, "seconds": time.process_time() - began}
    late = range(GONE_AFTER + 1, plan.rounds + 2) if kind == "killed" else ()
    faults = {(number, GONE): lambda reply: None for number in late}
    outcome = federation.run(InProcess(members=federation.members(), faults=faults))
    first, last = outcome.rounds[0], outcome.rounds[-2]
    return {
        "parts": outcome.on_parts,
        "whole": outcome.on_whole,
        "bytes": outcome.bytes_in_all,
        "bytes_first_round": [first.up, first.down],
        "bytes_last_round": [last.up, last.down],
        "best_round": outcome.best_round,
        "left_out": sum(bool(one.left_out) for one in outcome.rounds),
        "seconds": time.process_time() - began,
    }


def tell(known: dict[str, dict[str, Any]]) -> None:
    """The table that the docs have: mean ± deviation over seeds."""
    print("| graph | parts | what | n | own parts | whole graph | MB in all | MB, a late round |")
    print("|---|---|---|---|---|---|---|---|")
    groups = {tuple(key.split("|")[:3]): None for key in known}
    for group in groups:
        rows = [row for key, row in known.items() if tuple(key.split("|")[:3]) == group]
        cells = []
        for name in ("parts", "whole"):
            values = [100 * row[name] for row in rows if name in row]
            spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{fmean(values):.1f}{spread}" if values else "–")
        sizes = ["–", "–"]
        if "bytes" in rows[0]:
            late = fmean(sum(row["bytes_last_round"]) for row in rows)
            sizes = [f"{fmean(row['bytes'] for row in rows) / 1e6:.1f}", f"{late / 1e6:.2f}"]
        print(f"| {' | '.join(group)} | {len(rows)} | {' | '.join(cells + sizes)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed", "coauthor-physics"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs/results/federated.json"))
    chosen = parser.parse_args()
    fastglt.set_threads(1)
    done: dict[str, dict[str, Any]] = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    for dataset in chosen.datasets:
        one = NodeClassification.from_tensors(load(dataset).tensors)
        for kind, seed, parts in itertools.product(chosen.kinds, range(chosen.seeds), ("metis", "random")):
            key = f"{dataset}|{parts}|{kind}|{seed}"
            if key not in done:
                done[key] = run(one, kind, parts, seed)
                write_atomically(chosen.out, (json.dumps(done, indent=1) + "\n").encode())
                print(key, json.dumps(done[key]), flush=True)
    tell(done)
