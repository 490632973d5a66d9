"""Many runs as one: planned ahead, each in its own process and folder, dense twins shared."""

from fastglt.batch.plan import Run, plan
from fastglt.batch.workers import Outcome, Workers

__all__ = ["Outcome", "Run", "Workers", "plan"]
