"""What a network is trained for."""

from fastglt.tasks.node_classification import Task

__all__ = ["Task"]
