"""Which edge rule suits a graph, and whether a short trial on validation nodes can tell.

    python benchmarks/edge_rules.py --datasets cora citeseer pubmed --sparsities 0.5 --seeds 2
    python benchmarks/edge_rules.py --datasets synthetic:nodes=2000,edges=30000,features=100,classes=5,homophily=0.8
    python benchmarks/edge_rules.py table

For each graph, sparsity and seed one search goes as far as the forest rule's first choice of edges. Each rule then
chooses edges by the network of that moment, and two trainings follow from Θ0: a short one, the trial, of which only
validation scores are kept, and that of a ticket alone, with its score on nodes that decide nothing: those that a
split leaves out or, where there are none, half of the test nodes, which are not test nodes in these runs.
"""

import argparse
import contextlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from fastglt.masks import Mask, Masks
from fastglt.methods import FixedMasks, Targets, make
from fastglt.methods.parts.agreement import ForestRule
from fastglt.methods.parts.schedules import kept_count
from fastglt.methods.settings import with_defaults
from fastglt.runs.experiment import Experiment
from fastglt.system.seeds import derive
from fastglt.tasks import NodeTask
from fastglt.tickets.phases import Journal, run_phase
from fastglt.training.loop import Training, train
from fastglt.training.recipe import Recipe
from fastglt.training.records import Snapshot

RULES = {
    "forest": ForestRule(),
    "quarter": ForestRule(random_share=0.25),
    "half": ForestRule(random_share=0.5),
    "random": ForestRule(random_share=1.0),
    "degree": ForestRule(strength="degree", local=False),
}
TRIAL_EPOCHS, TRIAL_LR = 60, 0.01


def with_spare_nodes(task: NodeTask, seed: int) -> tuple[NodeTask, torch.Tensor]:
    """The task, and nodes to score rules on."""
    others = torch.ones(task.graph.num_nodes, dtype=torch.bool)
    others[torch.cat([task.train, task.val, task.test])] = False
    if others.any():
        return task, others.nonzero().squeeze(1)
    order = torch.randperm(task.test.numel(), generator=torch.Generator().manual_seed(seed))
    half = task.test.numel() // 2
    return replace(task, test=task.test[order[half:]].sort().values), task.test[order[:half]].sort().values


def half_search(network: Any, task: NodeTask, budget: Any, sparsity: float, weights: float, seed: int) -> Training:
    """A search as it is when edges are chosen for the first time."""
    targets = Targets(graph_sparsity=sparsity, weight_sparsity=weights)
    method = make("forest", targets=targets, budget=budget)
    training = Training(network, task, method.recipe, seed=seed)
    end = budget.oneshot_epochs + int(0.5 * budget.denoise_epochs / budget.interval) * budget.interval - 1

    class UntilThen(type(method)):  # type: ignore[misc]
        def finished(self, training: Training) -> bool:
            return training.epoch >= end

    until = UntilThen(targets=targets, budget=budget)
    training.target = None
    with contextlib.suppress(ValueError):  # no epoch has the target's counts yet, which nobody asks here
        train(training, until)
    return training


def score(training: Training, best: Snapshot, nodes: torch.Tensor) -> float:
    training.network.load_state_dict(best.state)
    training.network.eval()
    with torch.no_grad():
        return float(training.task.score(training.outputs(nodes), nodes))  # type: ignore[attr-defined]


def run(dataset: str, sparsity: float, weights: float, hidden: int, seed: int) -> dict[str, Any]:
    budget, _ = with_defaults("forest", dataset, "gcn")
    experiment = Experiment(dataset=dataset, targets=Targets(), budget=budget, hidden=hidden, seed=seed, threads=1)
    experiment.use_machine()
    prepared = experiment.prepare()
    network = prepared.network
    task, nodes = with_spare_nodes(prepared.task, seed)  # type: ignore[arg-type]
    begun = half_search(network, task, budget, sparsity, weights, seed)
    count = kept_count(sparsity, task.graph.num_edges)
    source, target = task.y[task.graph.edges]
    found: dict[str, Any] = {
        "mean_degree": 2 * task.graph.num_edges / task.graph.num_nodes,
        "homophily": float((source == target).float().mean()),
    }
    for name, rule in RULES.items():
        edges = rule.choose(begun, count, seed=derive(seed, "forest", 0))
        masks = Masks(edges=Mask(edges), weights=begun.masks.weights)
        trial = Training(network, task, Recipe(lr=TRIAL_LR), seed=seed, masks=masks)
        fixed = FixedMasks(budget=replace(budget, oneshot_epochs=1, denoise_epochs=TRIAL_EPOCHS - 1, interval=1))
        train(trial, fixed)
        history = [(record.val, record.val_loss) for record in trial.history]
        alone = Training(network, task, budget.recipe, seed=seed, masks=masks)
        best = run_phase("", lambda alone=alone: alone, FixedMasks(budget=budget), Journal()).best  # type: ignore[misc]
        found[name] = {
            "trial": history,
            "alone": score(alone, best, nodes),
            "alone_val": best.scores.val,
            "alone_val_loss": best.scores.val_loss,
        }
    return found


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(path: Path) -> None:
    print(f"| graph | degree | homophily | removed | {' | '.join(RULES)} | best trial | n |")
    print("|---" * (len(RULES) + 6) + "|")
    groups: dict[Any, list[dict[str, Any]]] = {}
    for line in read(path):
        groups.setdefault((line["dataset"], line["sparsity"], line["weights"]), []).append(line)
    for (dataset, sparsity, weights), lines in groups.items():
        scores = {rule: fmean(line[rule]["alone"] for line in lines) for rule in RULES}
        trials = {rule: fmean(tail(line[rule]["trial"]) for line in lines) for rule in RULES}
        cells = [f"{100 * scores[rule]:.2f} ({100 * trials[rule]:.2f})" for rule in RULES]
        chosen = fmean(line[max(RULES, key=lambda rule: tail(line[rule]["trial"]))]["alone"] for line in lines)
        facts = f"{lines[0]['mean_degree']:.1f} | {lines[0]['homophily']:.2f}"
        removed = f"{100 * sparsity:g}, {100 * weights:g} %"
        loss = 100 * (chosen - max(scores.values()))
        print(f"| {dataset} | {facts} | {removed} | {' | '.join(cells)} | {loss:+.2f} | {len(lines)} |")


def tail(trial: list[list[float]]) -> float:
    """A trial's validation score: the mean over its second half."""
    return fmean(val for val, _ in trial[len(trial) // 2 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "table"], default="run")
    parser.add_argument("--datasets", nargs="+", default=["cora"])
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.5])
    parser.add_argument("--weight-sparsity", type=float, default=0.0)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/edge-rules.jsonl"))
    given = parser.parse_args()
    names = ("dataset", "sparsity", "weights", "hidden", "seed")
    known = {tuple(line[name] for name in names) for line in read(given.out)}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    jobs = itertools.product(range(given.seeds), given.datasets, given.sparsities)
    for seed, dataset, sparsity in jobs if given.what == "run" else ():
        job = (dataset, sparsity, given.weight_sparsity, given.hidden, seed)
        if job not in known:
            found = run(*job)
            with given.out.open("a") as out:
                print(json.dumps({**dict(zip(names, job, strict=True)), **found}), file=out, flush=True)
    table(given.out)


if __name__ == "__main__":
    main()
