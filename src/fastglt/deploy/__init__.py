"""A ticket put to work: compiled for this machine, for these nodes and for new ones."""

from fastglt.deploy.compiling import compile_ticket
from fastglt.deploy.predictor import Predictor

__all__ = ["Predictor", "compile_ticket"]
