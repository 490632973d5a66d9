"""The only training loop, where a method reaches into it, and what it leaves behind."""

from fastglt.training.loop import Recipe, Training, train

__all__ = ["Recipe", "Training", "train"]
