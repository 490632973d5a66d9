"""A method of your own: one class that decides which edges and weights go.

python examples/own_method.py        (EPOCHS=400 for a real search)
"""

import os
from dataclasses import dataclass

import fastglt
from fastglt.data import load
from fastglt.masks import flatten
from fastglt.methods.base import cut_lowest, train_sparse
from fastglt.training import Training


@fastglt.register
@dataclass(frozen=True, kw_only=True)
class SmallestWeights(fastglt.Method):
    """Train the dense network for a while, then cut the smallest weights and the edges between hubs."""

    name = "smallest-weights"
    summary = "cuts the smallest weights, and edges between hubs, after some epochs of dense training"

    after: float = 0.2  # share of the epochs before the cut

    def begin(self, training: Training) -> None:
        """The first stage trains the dense network."""
        training.begin_stage("dense")

    def after_epoch(self, training: Training) -> None:
        """Cut once, by exact count; what has the lowest strength goes. Then train what is left."""
        if training.epoch == max(1, int(self.after * self.epochs)):
            graph = training.task.graph
            cut_lowest(
                training,
                self.targets.graph_sparsity,
                self.targets.weight_sparsity,
                edges=-graph.degree[graph.edges].sum(0).float(),
                weights=flatten(training.weights).detach().abs(),
            )
            train_sparse(training, self.targets, stage="sparse")


epochs = int(os.environ.get("EPOCHS", "40"))
budget = fastglt.Budget(oneshot_epochs=1, denoise_epochs=epochs, interval=1, lr=0.01)
for method in ("smallest-weights", "random"):
    ticket = fastglt.find_ticket("gcn", load("digits").data, method=method, hidden=32, budget=budget, seed=0)
    kept = f"{ticket.masks.edges.count} edges and {ticket.masks.weights_kept} weights"
    print(f"{method}: keeps {kept}, test accuracy {ticket.scores['search_test']:.3f}")
