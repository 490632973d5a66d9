"""How server and clients come to one mask, from the weights that the last warm-up round has brought.

A weight is strong if it is large and clients have moved it far: |θ|·|Δ|, which is what a soft mask at 1 would feel
of their loss (its gradient is θ times the weight's). What no client's data moves goes first. Each client's own
mask is computed from the weights that it has sent anyway, so that no agreement costs a message more.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fastglt.masks import Mask
from fastglt.methods.parts.ranking import keep_largest
from fastglt.methods.parts.schedules import kept_count
from fastglt.system.seeds import derive


def strength(weights: Tensor, moved: Tensor) -> Tensor:
    """What ranks weights.

    >>> strength(torch.tensor([2.0, -2.0, 0.5]), torch.tensor([0.0, 1.0, -0.5])).tolist()
    [0.0, 2.0, 0.25]
    """
    return (weights * moved).abs()


def agree(how: str, weights: Tensor, moved: Tensor, steps: Sequence[Tensor], *, sparsity: float, seed: int) -> Mask:
    """The common mask, from the weights, what all have moved on average, and each client's last step.

    With `server` the strongest weights by the average stay, with `vote` those that most clients would keep, the
    average's strength among equals: both to the exact count. A `union` keeps what any client would keep, so that
    it is less sparse.
    """
    count, ties = kept_count(sparsity, weights.numel()), derive(seed, "agreement")
    own = strength(weights, moved)
    if how == "server":
        return Mask(keep_largest(own, count, ties))
    proposals = [keep_largest(strength(weights, step), count, ties) for step in steps]
    votes = torch.stack(proposals).sum(0)
    if how == "union":
        return Mask(votes > 0)
    share = own / own.max().clamp(min=torch.finfo(own.dtype).tiny)  # below 1: less than a vote
    return Mask(keep_largest(votes.double() + 0.5 * share.double(), count, ties))
