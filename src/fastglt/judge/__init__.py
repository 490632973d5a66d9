"""What a ticket is worth: scores in isolation, cost, and what its masks did."""

from fastglt.judge.analysis import describe_graph, describe_weights
from fastglt.judge.cost import Cost, count_macs
from fastglt.judge.difference import compare_tickets
from fastglt.judge.evaluate import Contest, evaluate
from fastglt.judge.verdict import Verdict

__all__ = [
    "Contest",
    "Cost",
    "Verdict",
    "compare_tickets",
    "count_macs",
    "describe_graph",
    "describe_weights",
    "evaluate",
]
