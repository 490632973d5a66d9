"""Which sparsities are tried, and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastglt.errors import InputError, require
from fastglt.methods import Targets
from fastglt.studies.extreme.walks import Walk, bisect, climb, descend_front

_STEP = 0.01  # to which bisection goes
_MOST = 1000  # levels, of which each is a series of runs


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The shares of edges, or of weights, that may be removed: one alone stays as it is."""

    values: tuple[float, ...]
    bisected: bool = False  # else tried one by one
    start: int = 0  # where in `values` bisection begins

    @classmethod
    def read(cls, name: str, text: str, *, start: float = 0.99) -> "Levels":
        """A number, a list, FIRST:LAST:STEP, bisect, or bisect:START.

        >>> Levels.read("graph_sparsity", "0.1:0.3:0.1").values
        (0.1, 0.2, 0.3)
        """
        word, _, rest = text.partition(":")
        try:
            if word.strip() == "bisect":
                values = tuple(round(_STEP * step, 10) for step in range(1, round(1 / _STEP)))
                start = float(rest or start)
                require("lie in [0, 1)", **{name: start})
                return cls(values=values, bisected=True, start=_nearest(values, start))
            if ":" in text:
                first, last, step = (float(part) for part in text.split(":"))
                require("lie in [0, 1)", **{name: first})
                require("lie in [0, 1)", **{name: last})
                require("be positive", step=step)
                if last - first > _MOST * step:
                    raise InputError(f"{name} must have at most {_MOST} levels (got '{text}')")
                count = int((last - first) / step + 1e-9) + 1
                values = tuple(round(first + place * step, 10) for place in range(count))
            else:
                values = tuple(float(part) for part in text.split(","))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            rule = "must be a number, a list such as 0.1,0.2, FIRST:LAST:STEP, bisect or bisect:START"
            raise InputError(f"{name} {rule} (got '{text}')") from None
        if not values or list(values) != sorted(set(values)):
            raise InputError(f"{name} must rise from one value to the next (got '{text}')")
        return cls(values=values)

    @property
    def fixed(self) -> bool:
        """Whether there is nothing to vary."""
        return len(self.values) == 1


def plan_walk(edges: Levels, weights: Levels) -> Callable[[], Walk[Targets]]:
    """A walk along the edges or the weights, whichever vary; where both do, along the front."""
    rows = [
        [Targets(graph_sparsity=graph, weight_sparsity=weight) for graph in edges.values]
        for weight in weights.values
    ]
    if edges.fixed and weights.fixed:
        raise InputError("edges or weights must vary (got one sparsity of each); give one of them as bisect")
    varied = weights if edges.fixed else edges
    if not (edges.fixed or weights.fixed):
        if edges.bisected or weights.bisected:
            raise InputError(
                "only one of edges and weights can be bisected; give both as FIRST:LAST:STEP for the front"
            )
        return lambda: descend_front(rows)
    line = [targets for row in rows for targets in row]
    return lambda: bisect(line, varied.start) if varied.bisected else climb(line)


def _nearest(levels: Sequence[float], guess: float) -> int:
    return min(range(len(levels)), key=lambda place: abs(levels[place] - guess))
