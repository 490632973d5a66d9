"""How far apart two clouds of points are: the cost of moving one onto the other, smoothed by entropy."""

import math

import torch
from torch import Tensor

_NOTHING = -100.0  # 2 to this power adds nothing to 1, and is not yet so small that arithmetic becomes slow


def sinkhorn(
    left: Tensor,
    right: Tensor,
    *,
    eps: float = 1e-3,
    iterations: int = 10,
    left_real: Tensor | None = None,
    right_real: Tensor | None = None,
) -> Tensor:
    """The entropic transport distance of uniform clouds [..., n, d] and [..., m, d], with Euclidean costs C.

    It is the least ⟨P, C⟩ + eps·KL(P | uniform) over the plans P that move one cloud onto the other, found by
    Sinkhorn's iterations on the dual potentials in the log domain. Before they converge its value is the dual's,
    which rises towards the distance from below. The gradient is the envelope theorem's: dC counts by the plan of
    the moment. Unrolling the iterations instead would cost several times as much, and multiply what they have
    not settled yet by 1/eps. Rows that are not `real` only fill up a batch.

    >>> square = torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    >>> round(float(sinkhorn(square, square + torch.tensor([3.0, 0.0]))), 4)
    3.0007
    """
    cost = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
    with torch.no_grad():
        unit = eps * math.log(2)  # powers of 2 are cheaper than those of e
        rows, columns = _uniform(cost[..., 0], left_real), _uniform(cost[..., 0, :], right_real)
        by_row = cost / -unit
        by_column = by_row.transpose(-1, -2).contiguous()
        of_rows, of_columns = torch.zeros_like(rows), torch.zeros_like(columns)  # potentials
        for _ in range(iterations):
            of_rows = -_log_sum(by_row + (of_columns + columns.log2()).unsqueeze(-2))
            of_columns = -_log_sum(by_column + (of_rows + rows.log2()).unsqueeze(-2))
        potentials = (of_rows + rows.log2()).unsqueeze(-1) + of_columns.unsqueeze(-2)
        plan = potentials.add_(by_row).exp2_().mul_(columns.unsqueeze(-2))
        dual = unit * ((of_rows * rows).sum(-1) + (of_columns * columns).sum(-1))
    return dual + (plan * (cost - cost.detach())).sum((-1, -2))  # the last part is 0 and has the gradient


def _uniform(like: Tensor, real: Tensor | None) -> Tensor:
    """Equal weights that sum to 1, on what is real."""
    weight = torch.ones_like(like) if real is None else real.to(like.dtype).expand_as(like)
    return weight / weight.sum(-1, keepdim=True)


def _log_sum(powers: Tensor) -> Tensor:
    """The logarithm of each row's sum of powers of 2; overwrites them. Fast where most are next to nothing."""
    largest = powers.amax(-1, keepdim=True)
    terms = powers.sub_(largest).clamp_(min=_NOTHING).exp2_()
    return terms.sum(-1).log2_().add_(largest.squeeze(-1))
