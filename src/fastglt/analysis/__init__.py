"""What a ticket costs, what its masks have done, and how two tickets differ."""

from fastglt.analysis.cost import Cost, count_macs
from fastglt.analysis.difference import compare_tickets
from fastglt.analysis.effects import describe_graph, describe_weights

__all__ = ["Cost", "compare_tickets", "count_macs", "describe_graph", "describe_weights"]
