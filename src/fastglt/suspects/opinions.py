"""What small networks say about the classes of all nodes: from features alone, or along edges that are trusted."""

import numpy as np
import torch
from torch import Tensor

from fastglt.masks import Mask, Masks
from fastglt.models import make
from fastglt.suspects.evidence import Numbers, Pairs
from fastglt.system.seeds import own_random_state
from fastglt.tasks.node_classification import NodeClassification
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs
from fastglt.training.recipe import Recipe

RECIPE = Recipe(lr=0.01, weight_decay=5e-4)
WIDTH = 64
_AT_A_TIME = 1 << 18  # pairs


def opinion(task: NodeClassification, kept: Tensor, *, epochs: int, seed: int) -> Tensor:
    """The class probabilities of all nodes, by a two-layer GCN trained along some of the edges (none: an MLP)."""
    network = make("gcn", in_channels=task.x.num_features, hidden=WIDTH, out_channels=task.num_outputs, seed=seed)
    every = Masks.full(task.graph.num_edges, network.weight_shapes)
    masks = Masks(edges=Mask(kept), weights=every.weights)
    training = Training(network, task, RECIPE, seed=seed, masks=masks)
    with own_random_state(task.device):
        for _ in range(epochs):
            training.run_epoch(Hooks())
    return network_outputs(training, training.best).softmax(-1)


def with_labels(shares: Tensor, task: NodeClassification) -> Numbers:
    """Class probabilities in which training nodes have the class that they are known to have."""
    known = shares.detach().cpu().double().numpy().copy()
    train = task.train.cpu().numpy()
    known[train] = np.eye(known.shape[1])[task.y[task.train].cpu().numpy()]
    return known


def agreement(shares: Numbers, pairs: Pairs) -> Numbers:
    """The probability that both ends of each pair are of one class."""
    parts = np.split(pairs, range(_AT_A_TIME, pairs.shape[1], _AT_A_TIME), axis=1)
    return np.concatenate([np.einsum("ij,ij->i", shares[source], shares[target]) for source, target in parts])


def likelihood(agreed: Numbers, homophily: float, classes: int) -> Numbers:
    """How much likelier an edge of the graph agrees that far than a pair drawn at random; its logarithm."""
    other = max(1, classes - 1)
    ratio: Numbers = np.log(
        np.maximum(agreed * homophily * classes + (1 - agreed) * (1 - homophily) * classes / other, 1e-6)
    )
    return ratio


def no_edges(task: NodeClassification) -> Tensor:
    """A mask that keeps none."""
    return torch.zeros(task.graph.num_edges, dtype=torch.bool)
