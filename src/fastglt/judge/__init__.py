"""What a ticket is worth: scores in isolation, and cost."""

from fastglt.judge.cost import Cost, count_macs
from fastglt.judge.verdict import Verdict, evaluate

__all__ = ["Cost", "Verdict", "count_macs", "evaluate"]
