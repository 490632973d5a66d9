"""A compiled ticket behind HTTP: node ids or new nodes in, classes out. Needs the extra `fastglt[serve]`."""

from fastglt.serve.app import make_app
from fastglt.serve.limits import Limits
from fastglt.serve.server import run

__all__ = ["Limits", "make_app", "run"]
