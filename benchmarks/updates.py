"""A ticket that follows its graph through ten updates, beside a fresh search after each of them.

    FASTGLT_DATA=… python benchmarks/updates.py --datasets coauthor-physics ogbn-arxiv

Nodes arrive in an order: of ogbn-arxiv by the papers' years, of Coauthor Physics, which has none, training and
validation nodes first and then the others as a seed draws them. A node brings its edges to those that are there.
The search is on the first nodes, which have 80 % of the edges among themselves; ten updates follow, of 2 % of the
edges each. After each update three tickets are scored on the test nodes that have arrived: the updated one, one
whose weights stay through all updates, and one that is searched for afresh. Processor seconds are of the search,
and of the update alone, on graphs that were prepared anew for each of them. Every finished step is in --out, with
its tickets in --work, so the same command goes on after an interruption.
"""

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import fastglt
from fastglt.data import load
from fastglt.data.named import data_root
from fastglt.graphs.graph import Graph
from fastglt.methods import Budget, Targets, make
from fastglt.system.seeds import permutation
from fastglt.system.storage import write_atomically
from fastglt.tasks import NodeClassification
from fastglt.tickets.change import Change
from fastglt.tickets.find import find
from fastglt.tickets.networks import named_network
from fastglt.tickets.ticket import Ticket
from fastglt.tickets.update import EPOCHS, update

FIRST, STEP, UPDATES = 0.80, 0.02, 10
DATASETS = ("coauthor-physics", "ogbn-arxiv")
BUDGET = Budget(lr=0.01)  # the usual one for a search, 430 epochs; an update has its usual number of epochs too
TARGETS = Targets(graph_sparsity=0.3, weight_sparsity=0.9)


class Growth:
    """A dataset as it was after some of its nodes had arrived."""

    def __init__(self, dataset: str, seed: int) -> None:
        tensors = load(dataset).tensors
        self.whole = NodeClassification.from_tensors(tensors)
        self.order = by_year() if dataset == "ogbn-arxiv" else drawn(self.whole, seed)
        arrival = torch.empty_like(self.order)
        arrival[self.order] = torch.arange(self.order.numel())
        self.ends = arrival[self.whole.graph.edges]
        times = self.ends.amax(0).sort().values
        shares = [FIRST + STEP * number for number in range(UPDATES + 1)]
        self.sizes = [int(times[round(share * times.numel()) - 1]) + 1 for share in shares]

    def task(self, number: int) -> NodeClassification:
        """After so many updates; nodes are numbered as they arrived."""
        size, whole = self.sizes[number], self.whole
        nodes = self.order[:size]
        pairs = self.ends[:, self.ends.amax(0) < size]
        index = torch.cat([pairs, pairs.flip(0)], dim=1)
        parts: dict[str, Tensor] = {}
        for name in ("train", "val", "test"):
            chosen = torch.zeros(whole.graph.num_nodes, dtype=torch.bool)
            chosen[getattr(whole, name)] = True
            parts[name] = chosen[nodes].nonzero().squeeze(1)
        graph = Graph.from_edge_index(index, size)
        return NodeClassification(graph=graph, x=whole.x.take(nodes), y=whole.y[nodes], **parts)


def by_year() -> Tensor:
    """The nodes of ogbn-arxiv by the years of their papers; of one year in the order of their numbers."""
    root = data_root(None)
    assert root is not None, "FASTGLT_DATA names the folder of raw sets"
    with gzip.open(root / "ogbn_arxiv" / "raw" / "node_year.csv.gz", "rt") as file:
        years = np.loadtxt(file, dtype=np.int64)
    return torch.from_numpy(np.argsort(years, kind="stable"))


def drawn(task: NodeClassification, seed: int) -> Tensor:
    """Training and validation nodes, then the others, each in an order that a seed draws."""
    order = permutation(task.graph.num_nodes, seed)
    first = torch.zeros(task.graph.num_nodes, dtype=torch.bool)
    first[torch.cat([task.train, task.val])] = True
    return torch.cat([order[first[order]], order[~first[order]]])


def search(task: NodeClassification, seed: int) -> tuple[Ticket, float]:
    """A ticket, and the processor seconds that its search took."""
    method = make("forest", targets=TARGETS, budget=BUDGET)
    network = named_network("gcn", task, hidden=64, seed=seed)
    began = time.process_time()
    found = find(network, task, method, seed=seed, isolated=False, dense=False).ticket
    return found, time.process_time() - began


def step(growth: Growth, number: int, tickets: dict[str, Ticket]) -> Any:
    """One update of both chains; the seconds of preparing graphs count for nobody."""
    made, row = {}, {}
    for name, length in (("updated", EPOCHS), ("stays", 0)):
        before, after = growth.task(number - 1), growth.task(number)
        nodes = torch.arange(after.graph.num_nodes)
        nodes = torch.where(nodes < before.graph.num_nodes, nodes, -1)
        began = time.process_time()
        change = Change(before=before, after=after, nodes_before=nodes)
        made[name] = update(tickets[name], None, change, epochs=length)
        row[f"{name}_seconds"] = time.process_time() - began
        row[f"{name}_test"], row[f"{name}_val"] = (made[name].scores[f"search_{part}"] for part in ("test", "val"))
        record = made[name].config["update"]
        row[f"{name}_agreed"], row[f"{name}_search_again"] = record["agreed"], record["search_again"]
        row |= {key: record[key] for key in ("nodes_added", "edges_added", "changed")}
    graph = growth.task(number).graph
    row |= {"nodes": graph.num_nodes, "edges": graph.num_edges, "kept": made["updated"].masks.edges.count}
    return made, row


def fresh(growth: Growth, number: int, seed: int) -> tuple[Ticket, dict[str, Any]]:
    """A search on the graph after so many updates."""
    task = growth.task(number)
    ticket, seconds = search(task, seed)
    scores = {f"fresh_{part}": ticket.scores[f"search_{part}"] for part in ("val", "test")}
    sizes = {"nodes": task.graph.num_nodes, "edges": task.graph.num_edges, "kept": ticket.masks.edges.count}
    return ticket, {"fresh_seconds": seconds, **scores, **sizes}


def run(dataset: str, seed: int, out: Path, work: Path, *, searches: bool) -> None:
    """All that is not there yet of one dataset: the updates, then the searches, the last one first."""
    known: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    growth, key = Growth(dataset, seed), f"{dataset}, seed {seed}"
    rows = known.setdefault(key, {})

    def keep(number: int, found: dict[str, Any]) -> None:
        before = rows.get(str(number), {})
        assert before.get("kept", found["kept"]) == found["kept"], "the same sparsity, exactly"
        rows[str(number)] = {**before, **found}
        write_atomically(out, (json.dumps(known, indent=1) + "\n").encode())
        print(dataset, number, json.dumps(rows[str(number)]), flush=True)

    for number in range(UPDATES + 1):
        files = {name: work / f"{dataset}-{seed}-{number}-{name}.safetensors" for name in ("updated", "stays")}
        if all(file.exists() for file in files.values()) and "kept" in rows.get(str(number), {}):
            tickets = {name: Ticket.load(file) for name, file in files.items()}
            continue
        if number == 0:
            ticket, found = fresh(growth, 0, seed)
            tickets = {"updated": ticket, "stays": ticket}
        else:
            tickets, found = step(growth, number, tickets)
        for name, file in files.items():
            tickets[name].save(file)
        keep(number, found)
    for number in sorted(range(1, UPDATES + 1) if searches else (), key=lambda number: (number % 5, -number)):
        if "fresh_seconds" not in rows[str(number)]:
            keep(number, fresh(growth, number, seed)[1])


def tell(out: Path) -> None:
    """The table that the docs have."""
    for key, rows in json.loads(out.read_text()).items():
        print(f"\n{key}: per cent of test nodes that have arrived; processor seconds")
        print("| update | nodes | edges | updated | weights stay | fresh search | s, update | s, search | times |")
        print("|---|---|---|---|---|---|---|---|---|")
        for number, row in rows.items():
            sizes = f"| {number} | {row['nodes']:,} | {row['edges']:,} "
            if number == "0":
                print(f"{sizes}| – | – | {100 * row['fresh_test']:.2f} | – | {row['fresh_seconds']:.1f} | – |")
                continue
            scores = " | ".join(f"{100 * row[f'{name}_test']:.2f}" for name in ("updated", "stays"))
            took = row["updated_seconds"]
            if "fresh_seconds" not in row:
                print(f"{sizes}| {scores} | – | {took:.2f} | – | – |")
                continue
            searched, score = row["fresh_seconds"], f"{100 * row['fresh_test']:.2f}"
            print(f"{sizes}| {scores} | {score} | {took:.2f} | {searched:.1f} | {searched / took:.0f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/updates.json"))
    parser.add_argument("--work", type=Path, default=Path("runs/updates"), help="where tickets are kept on the way")
    parser.add_argument("--no-search", action="store_true", help="the updates alone, for now")
    chosen = parser.parse_args()
    fastglt.set_threads(1)
    chosen.work.mkdir(parents=True, exist_ok=True)
    for one in chosen.datasets:
        run(one, chosen.seed, chosen.out, chosen.work, searches=not chosen.no_search)
    tell(chosen.out)
