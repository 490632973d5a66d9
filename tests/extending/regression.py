"""A task from outside the package, in one file: one number for each node."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

import fastglt


def r2(outputs: Tensor, labels: Tensor) -> float:
    """The share of the labels' variance that the outputs explain."""
    errors = (outputs.squeeze(-1) - labels).double().square().sum()
    return float(1 - errors / (labels - labels.mean()).double().square().sum())


@fastglt.register
@dataclass(frozen=True, eq=False, kw_only=True)
class NodeRegression(fastglt.NodeTask):
    """A number for each node: mean squared error, R²."""

    name = "node-regression"
    metrics = (fastglt.Metric(name="r2", title="R²", compute=r2),)
    answer, answers = "value", "values"
    num_outputs = 1

    @classmethod
    def read_labels(cls, y: object, num_nodes: int) -> Tensor:
        """Real numbers, one for each node."""
        if not isinstance(y, Tensor) or not y.is_floating_point() or y.shape != (num_nodes,):
            raise fastglt.InputError(f"data.y must hold a number for each of {num_nodes} nodes (got {y})")
        return y.float()

    def label_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The mean squared error."""
        return mse_loss(outputs.squeeze(-1), labels)

    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """The mean squared distance."""
        return mse_loss(student, teacher)

    @classmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """The number itself."""
        return outputs.squeeze(-1)


def example(nodes: int = 80) -> dict[str, Tensor]:
    """A ring with chords; each node's number is its first feature, averaged over its neighbourhood twice."""
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 6, generator=draws)
    ids = torch.arange(nodes)
    pairs = torch.cat([torch.stack([ids, (ids + step) % nodes]) for step in (1, 7)], 1)
    edge_index = torch.cat([pairs, pairs.flip(0)], 1)
    y = x[:, 0]
    for _ in range(2):
        y = (y + torch.zeros(nodes).index_add_(0, edge_index[1], y[edge_index[0]])) / 5
    y = y / y.std()
    masks = {name: (ids % 4 == i) for i, name in ((1, "val_mask"), (2, "test_mask"))}
    return {"x": x, "y": y, "edge_index": edge_index, "train_mask": ids % 4 % 3 == 0, **masks}
