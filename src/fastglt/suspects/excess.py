"""Edges that labelled nodes have too many of.

Who poisons the training of a network does it where training looks: at labelled nodes. If the labelled ones were
drawn without regard to their edges, a known share of all edges ends at them; what goes beyond it was probably
added. No label is needed, only which nodes have one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastglt.suspects.evidence import Pairs

FLOOR = 0.02  # share of edges that are added ones for all we know before we look
MINORITY = 0.25  # share of labelled nodes up to which the others tell what is usual
_ERRORS = 2.0  # standard errors within which an excess is chance


@dataclass(frozen=True, kw_only=True)
class Excess:
    """How many edges have none, one or two labelled ends, and how many of each are too many."""

    found: npt.NDArray[np.float64]  # [3]
    excess: npt.NDArray[np.float64]  # [3], zeros where it may be chance
    ends: npt.NDArray[np.int64]  # of each edge: how many of its ends are labelled

    @classmethod
    def of(cls, edges: Pairs, labelled: npt.NDArray[np.bool_], *, look: bool = True) -> "Excess":
        """Of edges and of which nodes are labelled; there is none if nobody is to look.

        >>> star = np.array([[0] * 9, range(1, 10)])
        >>> Excess.of(star, np.array([True] + [False] * 9)).excess.tolist()
        [0.0, 9.0, 0.0]
        """
        ends = labelled[edges].sum(0)
        found = np.bincount(ends, minlength=3).astype(np.float64)
        share = labelled.mean()
        expected = (
            found[0]
            / max(1e-12, (1 - share) ** 2)
            * np.array([(1 - share) ** 2, 2 * share * (1 - share), share**2])
        )
        excess = np.maximum(found - expected, 0.0)
        degree = np.bincount(edges.ravel(), minlength=len(labelled))[~labelled]
        chance = np.sqrt(labelled.sum()) * (degree.std() if degree.size else 0.0)
        if not look or excess.sum() <= _ERRORS * chance:
            excess = np.zeros(3)
        return cls(found=found, excess=excess, ends=ends)

    @property
    def odds(self) -> npt.NDArray[np.float64]:
        """Of each edge: the logarithm of the odds that it was added, by its labelled ends alone."""
        share = np.clip(self.excess / np.maximum(self.found, 1), FLOOR, 1 - FLOOR)
        known: npt.NDArray[np.float64] = np.log(share / (1 - share))[self.ends]
        return known


def tells(labelled: npt.NDArray[np.bool_]) -> bool:
    """Whether labelled nodes are few enough for the others to tell what is usual."""
    return bool(0 < labelled.mean() <= MINORITY)
