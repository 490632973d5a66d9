"""How numbers are distributed: a mean, quantiles and a histogram, over bins that several groups can share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

_QUANTILES = {"min": 0.0, "p10": 0.1, "p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9, "max": 1.0}
_MAGNITUDE_BINS = 10


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A summary of some numbers; those of no numbers have neither mean nor quantiles.

    >>> import torch
    >>> found = Distribution.of(torch.tensor([0, 1, 1, 3]), (0, 1, 2, 4))
    >>> found.mean, found.quantiles["median"], found.counts
    (1.25, 1.0, (1, 2, 1))
    """

    count: int
    mean: float | None
    quantiles: Mapping[str, float]  # min, p10, p25, median, p75, p90, max
    counts: tuple[int, ...]  # how many lie in each bin
    bin_edges: tuple[float, ...]  # one more than bins; a bin has its lower edge, the last one both

    @staticmethod
    def of(values: Tensor, bin_edges: Sequence[float]) -> "Distribution":
        """Summarise numbers, none of them outside the bins."""
        array = values.detach().cpu().double().numpy().ravel()
        quantiles = np.quantile(array, list(_QUANTILES.values())).tolist() if array.size else []
        return Distribution(
            count=array.size,
            mean=float(array.mean()) if array.size else None,
            quantiles=dict(zip(_QUANTILES, quantiles, strict=False)),
            counts=tuple(np.histogram(array, np.asarray(bin_edges, dtype=np.float64))[0].tolist()),
            bin_edges=tuple(bin_edges),
        )


def degree_bins(largest: float) -> tuple[float, ...]:
    """None, one, two or three, four to seven, …: up to the largest.

    >>> degree_bins(4)
    (0, 1, 2, 4, 8)
    """
    edges = [0, 1]
    while edges[-1] <= largest:
        edges.append(2 * edges[-1])
    return tuple(edges)


def magnitude_bins(magnitudes: Tensor) -> tuple[float, ...]:
    """Ten bins for numbers that are not negative: two for each power of ten below the largest, the rest in one.

    >>> import torch
    >>> [f"{edge:.1e}" for edge in magnitude_bins(torch.tensor([0.0, 0.7]))[-3:]]
    ['1.0e-01', '3.2e-01', '1.0e+00']
    """
    largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
    top = math.floor(2 * math.log10(largest)) + 1 if largest > 0 else 0
    return (0.0, *(10 ** (half / 2) for half in range(top - _MAGNITUDE_BINS + 1, top + 1)))
