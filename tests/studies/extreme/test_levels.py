"""What people write about sparsities becomes a walk."""

import pytest

from fastglt.errors import InputError
from fastglt.methods import Targets
from fastglt.studies.extreme.levels import Levels, plan_walk


def test_what_can_be_written() -> None:
    assert Levels.read("x", "0.2") == Levels(values=(0.2,))
    assert Levels.read("x", "0.1, 0.2,0.4").values == (0.1, 0.2, 0.4)
    assert Levels.read("x", "0.05:0.35:0.1").values == (0.05, 0.15, 0.25, 0.35)
    assert Levels.read("x", "0.1:0.35:0.1").values == (0.1, 0.2, 0.3)
    bisected = Levels.read("x", "bisect")
    assert bisected.bisected
    assert bisected.values[0] == 0.01
    assert bisected.values[86] == 0.87  # the very number that "0.87" is
    assert bisected.values[-1] == 0.99
    assert bisected.values[bisected.start] == 0.99
    assert Levels.read("x", "bisect", start=0.5).start == 49
    assert Levels.read("x", "bisect:0.301", start=0.5).start == 29


@pytest.mark.parametrize(
    "text", ["", "much", "0.1:0.2", "0.1;0.2", "bisect:high", "bisect:0.1:0.5", "0.1,", "1:2:3:4"]
)
def test_what_cannot_be_read_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(InputError, match=r"graph_sparsity must be a number, .*bisect:START \(got '"):
        Levels.read("graph_sparsity", text)


@pytest.mark.parametrize("text", ["0.2,0.1", "0.1,0.1", "0.5:0.1:0.1"])
def test_levels_must_rise(text: str) -> None:
    with pytest.raises(InputError, match="must rise"):
        Levels.read("x", text)


def test_a_step_must_be_positive() -> None:
    with pytest.raises(InputError, match=r"step must be positive \(got 0.0\)"):
        Levels.read("x", "0.1:0.5:0")


@pytest.mark.parametrize(
    "text", ["0:inf:0.1", "nan:0.5:0.1", "0.5:1:0.1", "-0.5:0.5:0.1", "bisect:nan", "bisect:30"]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"graph_sparsity must lie in \[0, 1\)"):
        Levels.read("graph_sparsity", text)


def test_endless_levels_are_refused() -> None:
    assert len(Levels.read("x", "0:0.9:0.001").values) == 901
    with pytest.raises(InputError, match=r"x must have at most 1000 levels \(got '0:0.9:1e-9'\)"):
        Levels.read("x", "0:0.9:1e-9")


def test_the_walk_goes_along_what_varies() -> None:
    none, some = Levels.read("x", "0"), Levels.read("x", "0.25,0.5")
    assert next(plan_walk(some, none)()) == Targets(graph_sparsity=0.25, weight_sparsity=0.0)
    assert next(plan_walk(none, some)()) == Targets(graph_sparsity=0.0, weight_sparsity=0.25)
    assert next(plan_walk(none, Levels.read("x", "bisect"))()) == Targets(graph_sparsity=0.0, weight_sparsity=0.99)
    assert next(plan_walk(some, some)()) == Targets(graph_sparsity=0.5, weight_sparsity=0.25)  # the front


def test_what_makes_no_walk_is_refused() -> None:
    none, some, bisected = (Levels.read("x", text) for text in ("0", "0.25,0.5", "bisect"))
    with pytest.raises(InputError, match="must vary"):
        plan_walk(none, none)
    with pytest.raises(InputError, match="only one of"):
        plan_walk(bisected, some)
    with pytest.raises(InputError, match=r"weight_sparsity must lie in \[0, 1\)"):
        plan_walk(none, Levels.read("x", "0.5,1"))
