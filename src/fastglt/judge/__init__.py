"""What a ticket is worth: scores in isolation, and cost."""

from fastglt.judge.cost import Cost, count_macs
from fastglt.judge.evaluate import Contest, evaluate
from fastglt.judge.verdict import Verdict

__all__ = ["Contest", "Cost", "Verdict", "count_macs", "evaluate"]
