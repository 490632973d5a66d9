"""What the forest rule costs in a search, and how well agreement tells edges between classes from the others.

    python benchmarks/forest.py cost --dataset pubmed --graph-sparsity 0.5 --threads 2
    python benchmarks/forest.py precision --dataset cora --graph-sparsity 0.5
    python benchmarks/forest.py size --edges 10000000

`cost` times the parts of every choice of edges within one whole search. `size` times them on a graph that is drawn
at random, with a tenth as many nodes as edges. `precision` looks at all edges every few
epochs, with the labels of all nodes, test nodes included: something to look at, never to prune by. Its columns are
the share of pairs (an edge between classes, one within) that the strength puts in the right order [AUC], and the
share of edges between classes among as many of the weakest edges as there are such edges; for the agreement of the
predictions on the whole graph, and for each edge's standing with its ends. The last one is the homophily of what
is kept.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fastglt.methods import Method, Targets
from fastglt.methods.parts import agreement
from fastglt.methods.parts.forests import edge_standing, keep_forests
from fastglt.methods.parts.ranking import edge_agreement, lowest
from fastglt.methods.settings import budget_for
from fastglt.runs.experiment import Experiment
from fastglt.training.loop import Training, train
from fastglt.training.outputs import network_outputs

PARTS = {  # names in `fastglt.methods.parts.agreement`
    "network_outputs_and_support": "predictions on the whole graph, and each edge's support",
    "edge_agreement": "their agreement along edges",
    "edge_standing": "each edge's standing",
    "keep_forests": "the forest and the cut",
}


def cost(training: Training, method: Method) -> None:
    spent: dict[str, list[float]] = defaultdict(list)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **more: Any) -> Any:
            began = time.perf_counter()
            found = function(*given, **more)
            spent[name].append(time.perf_counter() - began)
            return found

        return run

    for name in PARTS:
        setattr(agreement, name, timed(name, getattr(agreement, name)))
    began = time.perf_counter()
    train(training, method)
    total = time.perf_counter() - began
    print(f"| part of a search of {training.epoch} epochs | times | ms each | seconds | share |")
    print("|---|---|---|---|---|")
    for name, about in PARTS.items():
        times, seconds = len(spent[name]), sum(spent[name])
        print(
            f"| {about} | {times} | {1000 * seconds / times:.1f} | {seconds:.2f} | {100 * seconds / total:.2f} % |"
        )
    print(f"| all | | | {total:.2f} | 100 % |")


def size(edges: int) -> None:
    nodes, draws = max(2, edges // 10), torch.Generator().manual_seed(0)
    pairs = torch.randint(nodes, (2, edges + edges // 100), generator=draws).sort(0).values
    keys = torch.unique(pairs[0] * nodes + pairs[1])
    ends = torch.stack([keys // nodes, keys % nodes])
    ends = ends[:, ends[0] != ends[1]][:, :edges]
    strength = torch.rand(ends.shape[1], generator=draws)
    print(f"{ends.shape[1]} edges, {nodes} nodes")
    for about, work in {
        PARTS["edge_standing"]: lambda: edge_standing(ends, strength, nodes),
        PARTS["keep_forests"]: lambda: keep_forests(ends, strength, nodes, ends.shape[1] // 2),
    }.items():
        began = time.perf_counter()
        work()
        print(f"{about}: {time.perf_counter() - began:.1f} s", flush=True)


def precision(training: Training, method: Method, every: int) -> None:
    graph, labels = training.task.graph, training.task.y.cpu()
    between = labels[graph.edges[0]] != labels[graph.edges[1]]
    print(f"{int(between.sum())} of {graph.num_edges} edges join two classes")
    print("| epoch | stage | agreement: AUC | precision | standing: AUC | precision | homophily of what is kept |")
    print("|---|---|---|---|---|---|---|")

    def told_apart(strength: Tensor) -> str:
        weakest = lowest(strength, int(between.sum()), seed=0)
        share = between[weakest].double().mean()
        return f"{roc_auc_score(between, -strength):.3f} | {100 * share:.1f} %"

    def after_epoch(training: Training) -> None:
        if training.epoch % every and training.epoch != method.budget.oneshot_epochs:
            return
        strength = edge_agreement(graph, network_outputs(training, whole=True))
        standing = edge_standing(graph.edges, strength, graph.num_nodes)
        kept = (~between)[training.masks.edges.kept].double().mean()
        shown = f"{told_apart(strength)} | {told_apart(standing)} | {100 * kept:.1f} %"
        print(f"| {training.epoch} | {training.stage} | {shown} |", flush=True)

    train(training, method, after_epoch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "precision", "size"])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--graph-sparsity", type=float, default=0.35)
    parser.add_argument("--weight-sparsity", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=50, help="epochs between two looks")
    parser.add_argument("--edges", type=int, default=10**7, help="for size")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.what == "size":
        size(given.edges)
        return
    experiment = Experiment(
        dataset=given.dataset,
        model=given.model,
        method="forest",
        targets=Targets(graph_sparsity=given.graph_sparsity, weight_sparsity=given.weight_sparsity),
        budget=budget_for(given.dataset, given.model),
        seed=given.seed,
        threads=given.threads,
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    prepared.warm_up()
    training = Training(prepared.network, prepared.task, prepared.method.recipe, seed=given.seed)
    if given.what == "cost":
        cost(training, prepared.method)
    else:
        precision(training, prepared.method, given.every)


if __name__ == "__main__":
    main()
