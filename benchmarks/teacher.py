"""How a teacher should teach: ways to train a ticket alone, and to search, on nodes that decide nothing else.

    python benchmarks/teacher.py alone --datasets cora citeseer pubmed --seeds 2
    python benchmarks/teacher.py search --datasets cora --tickets w99 w99-oneshot --seeds 3
    python benchmarks/teacher.py masks --datasets cora
    python benchmarks/teacher.py alone --searched untaught --ways untaught "untaught, decay × density" --tickets w98
    python benchmarks/teacher.py table

Every ticket is found once for a seed, taught with weight 1 unless told (`alone`), or once for each way (`search`),
and trained alone from Θ0 in the way that is tried. Scores are those of nodes that a split leaves out (Cora,
Citeseer, PubMed), else of the validation nodes, in % at the best validation epoch; no test node is looked at. Each
line of the file is one training, so a kill costs one; finished lines are not computed again.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from fastglt.masks import Masks
from fastglt.methods import FixedMasks, Method, Targets, make
from fastglt.methods.settings import with_defaults
from fastglt.runs.experiment import Experiment, Prepared
from fastglt.tickets.phases import Journal, PhaseResult, run_phase, train_fixed
from fastglt.training.distillation import Teacher
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs
from fastglt.training.recipe import Recipe

TICKETS: dict[str, dict[str, Any]] = {  # edges, weights, hidden units, method
    "dense": {},
    "e75": {"edges": 0.75, "method": "forest"},
    "e90": {"edges": 0.9, "method": "forest"},
    "u16-e75": {"edges": 0.75, "method": "forest", "hidden": 16},
    "u16-e90": {"edges": 0.9, "method": "forest", "hidden": 16},
    "w98": {"weights": 0.98, "method": "fastglt"},
    "w99": {"weights": 0.99, "method": "fastglt"},
    "w99-oneshot": {"weights": 0.99, "method": "oneshot"},
}
WAYS: dict[
    str, dict[str, Any]
] = {  # weight of the teacher, of the labels, temperature, learning rate, decay, nodes
    "untaught": {"weight": 0.0},
    "1": {"weight": 1.0},
    "10": {"weight": 10.0},
    "100": {"weight": 100.0},
    "1000": {"weight": 1000.0},
    "100, decay × 100": {"weight": 100.0, "decay": 0.05},
    "untaught, decay / 100": {"weight": 0.0, "decay": 5e-6},
    "1, decay / 100": {"weight": 1.0, "decay": 5e-6},
    "untaught, decay × density": {"weight": 0.0, "decay": "density"},
    "100, temperature 2": {"weight": 100.0, "temperature": 2.0},
    "100, temperature 0.5": {"weight": 100.0, "temperature": 0.5},
    "100, no labels": {"weight": 100.0, "labels": 0.0},
    "100, other nodes": {"weight": 100.0, "nodes": "unlabelled"},
    "100, lr 0.003": {"weight": 100.0, "lr": 0.003},
    "100, lr 0.01": {"weight": 100.0, "lr": 0.01},
    "10, lr 0.01": {"weight": 10.0, "lr": 0.01},
    "untaught, lr 0.01": {"weight": 0.0, "lr": 0.01},
    "1, lr 0.01": {"weight": 1.0, "lr": 0.01},
    "100, lr 0.01, temperature 2": {"weight": 100.0, "lr": 0.01, "temperature": 2.0},
    "1, decay / 100, lr 0.01": {"weight": 1.0, "decay": 5e-6, "lr": 0.01},
}


class Bench:
    """One graph, network and seed: its teacher, and tickets that are found once."""

    def __init__(self, dataset: str, model: str, hidden: int, seed: int, teacher: "Bench | None" = None) -> None:
        budget, _ = with_defaults("forest", dataset, model)
        self.experiment = Experiment(
            dataset=dataset, model=model, targets=Targets(), budget=budget, hidden=hidden, seed=seed, threads=1
        )
        self.experiment.use_machine()
        self.prepared: Prepared = self.experiment.prepare()
        self.budget, self.seed = budget, seed
        task = self.prepared.task
        others = torch.ones(task.graph.num_nodes, dtype=torch.bool)
        others[torch.cat([task.train, task.val, task.test])] = False
        self.nodes = others.nonzero().squeeze(1) if others.any() else task.val
        self._of_teacher = teacher or self
        self._said: torch.Tensor | None = None
        self._found: dict[Any, PhaseResult] = {}

    def teacher(self, way: Mapping[str, Any]) -> Teacher | None:
        if way["weight"] == 0:
            return None
        task = self.prepared.task
        others = torch.ones(task.graph.num_nodes, dtype=torch.bool)
        others[task.train] = False
        nodes = others.nonzero().squeeze(1) if way.get("nodes") == "unlabelled" else None
        return Teacher(
            outputs=self._of_teacher.said,
            weight=way["weight"],
            temperature=way.get("temperature", 1.0),
            labels=way.get("labels", 1.0),
            nodes=nodes,
        )

    @property
    def said(self) -> torch.Tensor:
        """The outputs of the dense network, trained once."""
        if self._said is None:
            network, task = self.prepared.network, self.prepared.task
            best = train_fixed("teacher", network, task, self.budget, seed=self.seed).best
            training = Training(network, task, self.budget.recipe, seed=self.seed, masks=best.masks)
            self._said = network_outputs(training, best)
        return self._said

    def recipe(self, way: Mapping[str, Any]) -> Recipe:
        plain = self.budget.recipe
        return Recipe(lr=way.get("lr", plain.lr), weight_decay=way.get("decay", plain.weight_decay))

    def search(self, ticket: Mapping[str, Any], way: Mapping[str, Any]) -> PhaseResult | None:
        if not ticket:
            return None
        key = json.dumps([ticket, way], sort_keys=True)
        if key not in self._found:
            targets = Targets(graph_sparsity=ticket.get("edges", 0.0), weight_sparsity=ticket.get("weights", 0.0))
            method = make(ticket["method"], targets=targets, budget=self.budget)
            self._found[key] = self.run(method, way)
        return self._found[key]

    def run(self, method: Method, way: Mapping[str, Any], masks: Masks | None = None) -> PhaseResult:
        given = {"seed": self.seed, "masks": masks, "teacher": self.teacher(way)}
        network, task, recipe = self.prepared.network, self.prepared.task, self.recipe(way)
        return run_phase("", lambda: Training(network, task, recipe, **given), method, Journal())

    def alone(self, found: PhaseResult | None, way: Mapping[str, Any]) -> PhaseResult:
        if way.get("decay") == "density":
            density = 1.0 if found is None else 1 - found.best.masks.weight_sparsity
            way = {**way, "decay": self.budget.weight_decay * density}
        return self.run(FixedMasks(budget=self.budget), way, None if found is None else found.best.masks)

    @staticmethod
    def kept(found: PhaseResult) -> dict[str, list[int]]:
        """Of each weight matrix: kept weights, and rows and columns that keep any."""
        masks = {name: mask.kept for name, mask in found.best.masks.weights.items()}
        return {
            name: [int(mask.sum()), int(mask.any(1).sum()), int(mask.any(0).sum())] for name, mask in masks.items()
        }

    @staticmethod
    def cut_after(found: PhaseResult) -> int:
        """The epoch of stage 1 whose soft masks were cut: the best on validation nodes."""
        stage = [record for record in found.history if record.stage == "oneshot"]
        return max(stage, key=lambda record: (record.val, -record.val_loss)).epoch if stage else 0

    def score(self, result: PhaseResult) -> float:
        task, best = self.prepared.task, result.best
        training = Training(self.prepared.network, task, self.budget.recipe, seed=self.seed, masks=best.masks)
        training.network.load_state_dict(dict(best.state))
        training.soft_edge_mask = best.soft_edge_mask
        training.network.eval()
        with torch.no_grad():
            return float(task.score(training.outputs(self.nodes), self.nodes))


def jobs(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    places = itertools.product(range(given.first_seed, given.first_seed + given.seeds), given.datasets)
    for (seed, dataset), ticket in itertools.product(places, given.tickets):
        for way in given.ways:
            for search in [way, *given.cross] if given.what == "search" else [given.searched]:
                yield {
                    "dataset": dataset,
                    "model": given.model,
                    "ticket": ticket,
                    "search": search,
                    "way": way,
                    "seed": seed,
                }


def execute(given: argparse.Namespace) -> None:
    known = {key(line["job"]) for line in read(given.out)}
    benches: dict[Any, Bench] = {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("a") as out:
        for job in jobs(given):
            if key(job) in known:
                continue
            known.add(key(job))
            ticket, way = TICKETS[job["ticket"]], WAYS[job["way"]]
            place = (job["dataset"], job["model"], ticket.get("hidden", 512), job["seed"])
            if place not in benches:
                benches = {old: bench for old, bench in benches.items() if (old[0], old[3]) == (place[0], place[3])}
                whole = (*place[:2], 512, place[3])
                teacher = None if place == whole else benches.setdefault(whole, Bench(*whole))
                benches[place] = Bench(*place, teacher)
            bench = benches[place]
            found = bench.search(ticket, WAYS[job["search"]])
            result = bench.alone(found, way)
            scores = {"alone": bench.score(result), "alone_val": result.best.scores.val}
            if found is not None:
                scores |= {"search": bench.score(found), "search_val": found.best.scores.val}
                scores |= {"kept": bench.kept(found), "cut_after": bench.cut_after(found)}
            print(json.dumps({"job": job, "epoch": result.best.epoch, **scores}), file=out, flush=True)


def masks(given: argparse.Namespace) -> None:
    """Which words are read by the weights that stage 1 would keep at 99 %, by how strongly it is taught."""
    print(
        "| graph, teacher's weight | pushed up by half of the most | words kept | nodes with such a word, median |"
    )
    print("|---|---|---|---|")
    for dataset in given.datasets:
        bench = Bench(dataset, given.model, 512, given.first_seed)
        task, network = bench.prepared.task, bench.prepared.network
        method = make("oneshot", targets=Targets(graph_sparsity=0.0, weight_sparsity=0.99), budget=bench.budget)
        nodes_with = torch.bincount(task.x.csr.indices.long(), minlength=task.x.num_features)
        for way in ("untaught", "1", "100"):
            training = Training(network, task, bench.budget.recipe, seed=0, teacher=bench.teacher(WAYS[way]))
            method.begin(training)
            for _ in range(bench.budget.oneshot_epochs):
                training.run_epoch(method)
            soft = [mask.detach() for mask in training.soft_weight_masks.values()]
            every = torch.cat([part.flatten() for part in soft])
            up = float((every - 1 > (every.max() - 1) / 2).float().mean())
            border = every.kthvalue(round(0.99 * every.numel())).values
            kept = (soft[0] > border).sum(1)  # of each word
            median = nodes_with.repeat_interleave(kept).median()
            print(f"| {dataset}, {way} | {100 * up:.1f} % | {int((kept > 0).sum())} | {int(median)} |", flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def key(job: Mapping[str, Any]) -> str:
    return json.dumps(job, sort_keys=True)


def table(path: Path) -> None:
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[float]]] = {}
    for line in read(path):
        job = line["job"]
        place = groups.setdefault((job["model"], job["search"] != "1", job["ticket"]), {})
        place.setdefault((job["way"], job["dataset"]), []).append(line["alone"])
        if job["search"] != "1":
            place.setdefault((job["way"], f"{job['dataset']}, search"), []).append(line["search"])
    for (model, _, ticket), cells in groups.items():
        columns = sorted({column for _, column in cells})
        print(f"\n{model}, {ticket}\n\n| way | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
        for way in dict.fromkeys(way for way, _ in cells):
            shown = [_score(cells.get((way, column), [])) for column in columns]
            print(f"| {way} | {' | '.join(shown)} |")


def _score(values: list[float]) -> str:
    if not values:
        return ""
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):.2f}{spread} ({len(values)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["alone", "search", "masks", "table"])
    parser.add_argument("--datasets", nargs="+", default=["cora"])
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--tickets", nargs="+", default=["e90", "u16-e90", "w98", "e75", "dense"], choices=TICKETS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--cross", nargs="*", default=[], choices=WAYS, help="search in these ways too")
    parser.add_argument("--searched", default="1", choices=WAYS, help="how tickets are searched, for alone")
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/teacher.jsonl"))
    given = parser.parse_args()
    if given.what == "masks":
        masks(given)
        return
    if given.what != "table":
        execute(given)
    table(given.out)


if __name__ == "__main__":
    main()
