"""A trained GCN as a function of how much of each edge is there."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.kernels import CSR, aggregate
from fastglt.models import make
from fastglt.models.gcn.network import GCN
from fastglt.system.seeds import own_random_state
from fastglt.tasks.node_classification import NodeClassification
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe


@dataclass(frozen=True, eq=False, kw_only=True)
class Surrogate:
    """The network that is attacked: its weights are fixed, its edges are not.

    With weights of 1 for every edge it computes what the network does; the norms follow the weights, so that the
    gradient also tells what an edge does to the degrees of its ends.
    """

    product: Tensor  # x·W of the first layer, a row for each node
    bias: Tensor
    weight: Tensor  # of the second layer
    last_bias: Tensor

    @classmethod
    def train(cls, task: NodeClassification, *, width: int, epochs: int, seed: int) -> "Surrogate":
        """A two-layer GCN trained on the graph as it is, at its best epoch on validation nodes."""
        shape = {"in_channels": task.x.num_features, "hidden": width, "out_channels": task.num_outputs}
        training = Training(make("gcn", **shape, seed=seed), task, Recipe(lr=0.01, weight_decay=5e-4), seed=seed)
        with own_random_state(task.device):
            for _ in range(epochs):
                training.run_epoch(Hooks())
        assert training.best is not None, "it has been trained"
        training.network.load_state_dict(training.best.state)
        assert isinstance(training.network, GCN)
        return cls.of(training.network, task)

    @classmethod
    @torch.no_grad()
    def of(cls, network: GCN, task: NodeClassification) -> "Surrogate":
        """A network's weights, and the product with the features, which no edge changes."""
        one, two = network.layer1, network.layer2
        given = (task.x @ one.weight, one.bias, two.weight, two.bias)
        product, bias, weight, last = (part.detach().clone() for part in given)
        return cls(product=product, bias=bias, weight=weight, last_bias=last)

    def outputs(self, pattern: "Pattern", weights: Tensor) -> Tensor:
        """The outputs of all nodes, with a weight for each pair of the pattern."""
        values = pattern.norms(weights)
        hidden = aggregate(pattern.csr, values, self.product, self.bias, activation="relu")
        return aggregate(pattern.csr, values, hidden @ self.weight, self.last_bias)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern:
    """Where messages can go: both ways along each pair, and from each node to itself."""

    csr: CSR
    pair: Tensor  # of each entry: its pair's number; that of a node's own message is the number of pairs

    @classmethod
    def of(cls, pairs: Tensor, nodes: int) -> "Pattern":
        """Of distinct pairs of different nodes."""
        own, numbers = torch.arange(nodes), torch.arange(pairs.shape[1])
        rows = torch.cat([pairs[0], pairs[1], own])
        columns = torch.cat([pairs[1], pairs[0], own])
        csr, order = CSR.from_entries(rows, columns, (nodes, nodes))
        pair = torch.cat([numbers, numbers, torch.full((nodes,), pairs.shape[1])])
        return cls(csr=csr, pair=pair[order])

    def norms(self, weights: Tensor) -> Tensor:
        """GCN's norm of each entry: w_ij / √(d_i·d_j), d a node's sum of weights and 1 for itself."""
        spread = torch.cat([weights, weights.new_ones(1)]).index_select(0, self.pair)
        degree = weights.new_zeros(self.csr.num_rows).index_add(0, self.csr.rows, spread)
        scale = degree.clamp(min=1e-6).rsqrt()
        return spread * scale.index_select(0, self.csr.rows) * scale.index_select(0, self.csr.indices)
