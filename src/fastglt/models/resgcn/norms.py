"""The norms of a ResGCN: by channel, over nodes, or by row."""

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, layer_norm

_MOST_SCALE, _MOST_SHIFT = 3.0, 5.0  # of a correction, as published


class BatchRenorm(nn.BatchNorm1d):
    """Batch renormalisation (Ioffe, 2017): training normalises by what has been counted, as evaluation does.

    For steps on parts of a graph. A part's own mean and deviation tell what its nodes are about, and a batch norm
    takes just that away. Here a scale and a shift give it back. They count as constants: gradients go through the
    part's own statistics, as in a batch norm.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__(num_features)
        self.scale, self.shift = torch.ones(()), torch.zeros(())  # of the rows that were counted last

    @torch.no_grad()
    def count(self, mean: Tensor, variance: Tensor) -> None:
        """Find the correction of rows with these statistics, then take them into account."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = max(self.momentum or 0.0, 1 / int(self.num_batches_tracked))  # at first the mean of all so far
        away, deviation = mean - self.running_mean, (self.running_var + self.eps).sqrt()
        if share == 1:  # nothing to compare with
            away, deviation = torch.zeros_like(mean), (variance + self.eps).sqrt()
        self.scale = ((variance + self.eps).sqrt() / deviation).clamp_(1 / _MOST_SCALE, _MOST_SCALE)
        self.shift = (away / deviation).clamp_(-_MOST_SHIFT, _MOST_SHIFT)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance + away.square(), share)  # about the mean of all, not about the part's

    def corrected(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Weight and bias of a batch norm that gives the rows which were counted last what this norm does."""
        return weight * self.scale, bias + weight * self.shift


NORMS = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "renorm": BatchRenorm}


def normalise(norm: nn.Module, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A norm with these parameters. In training, where gradients are off, it counts what it sees."""
    if isinstance(norm, nn.LayerNorm):
        return layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)
    assert isinstance(norm, nn.BatchNorm1d)
    if not norm.training:
        return batch_norm(x, norm.running_mean, norm.running_var, weight, bias, training=False, eps=norm.eps)
    if isinstance(norm, BatchRenorm):
        if not torch.is_grad_enabled():
            variance, mean = torch.var_mean(x, 0, correction=0)
            norm.count(mean, variance)
        return batch_norm(x, None, None, *norm.corrected(weight, bias), training=True, eps=norm.eps)
    if torch.is_grad_enabled():
        return batch_norm(x, None, None, weight, bias, training=True, eps=norm.eps)
    norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
    counted = norm.running_mean, norm.running_var
    return batch_norm(x, *counted, weight, bias, training=True, eps=norm.eps)  # PyTorch's usual momentum


@torch.no_grad()
def count(norm: nn.Module | None, mean: Tensor, variance: Tensor, rows: int) -> None:
    """Let a norm by channel count the statistics of rows that it sees in training, as PyTorch's does."""
    if not isinstance(norm, nn.BatchNorm1d) or not norm.training:
        return
    if rows < 2:
        raise ValueError("a batch norm needs two rows or more to learn from")
    if isinstance(norm, BatchRenorm):
        norm.count(mean, variance)
        return
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    share = norm.momentum or 0.0
    norm.running_mean.lerp_(mean, share)
    norm.running_var.lerp_(variance * (rows / (rows - 1)), share)
