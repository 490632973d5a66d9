"""The only training loop, where a method reaches into it, and what it leaves behind."""

from fastglt.training.loop import Training, train
from fastglt.training.recipe import Recipe

__all__ = ["Recipe", "Training", "train"]
