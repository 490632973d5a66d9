"""Which edges look as if somebody had added them: evidence, what it is worth, and the ranking."""

from fastglt.suspects.ranking import EdgeRanking, rank_task_edges

__all__ = ["EdgeRanking", "rank_task_edges"]
