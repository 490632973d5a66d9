"""UGS (Chen et al., ICML'21): iterative magnitude pruning of soft masks over edges and weights, with rewinding."""

from dataclasses import dataclass

from fastglt.methods.base import STRUCTURES
from fastglt.methods.parts.rounds import Rounds


@dataclass(frozen=True, kw_only=True)
class UGS(Rounds):
    """Nothing but the rounds themselves: l1-pressed soft masks, cut at the best validation epoch."""

    name = "ugs"
    summary = "rounds of mask training, cut and rewind"
    paper = "Chen et al., A Unified Lottery Ticket Hypothesis for Graph Neural Networks, ICML 2021"
    structures = STRUCTURES
