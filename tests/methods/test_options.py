"""Options as people see them: types, defaults, and the comments beside the fields."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from fastglt import InputError
from fastglt.methods import METHODS, UGS, FastGLT
from fastglt.methods.base import FixedMasks, Method
from fastglt.methods.options import options_of, read_options
from fastglt.training.loop import Training
from tests.toy_data import quick_ticket


@dataclass(frozen=True, kw_only=True)
class Parent(Method):
    """With an option that a child inherits, and one that it explains anew."""

    summary = "for tests"

    kept: int = 1  # from the parent
    changed: float = 0.5  # the parent's words

    def begin(self, training: Training) -> None:
        """Nothing."""


@dataclass(frozen=True, kw_only=True)
class Child(Parent):
    """One option of every type."""

    name = "child"

    changed: float = 0.25  # the child's words
    flag: bool = False
    word: Literal["near", "far"] = "near"  # near or far: a # in the text stays
    limit: float | None = None  # none: no limit
    sizes: tuple[int, ...] = field(  # beside the first line
        default=(1, 2)
    )


def test_inherited_options_come_first_with_the_nearest_comment() -> None:
    found = options_of(Child)
    assert list(found) == ["kept", "changed", "flag", "word", "limit", "sizes"]
    assert {name: option.about for name, option in found.items()} == {
        "kept": "from the parent",
        "changed": "the child's words",
        "flag": "",
        "word": "near or far: a # in the text stays",
        "limit": "none: no limit",
        "sizes": "beside the first line",
    }
    assert [option.default for option in found.values()] == [1, 0.25, False, "near", None, (1, 2)]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("kept", "12", 12),
        ("changed", "1", 1.0),
        ("changed", "1e-3", 0.001),
        ("flag", "true", True),
        ("flag", "No", False),
        ("flag", "1", True),
        ("word", "far", "far"),
        ("limit", "none", None),
        ("limit", " 2.5 ", 2.5),
    ],
)
def test_a_value_has_the_type_of_its_field(name: str, text: str, value: Any) -> None:
    found = read_options(Child, {name: text})
    assert found == {name: value}
    assert type(found[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("kept", "1.5", r"option 'kept' of method 'child' must be a whole number \(got '1.5'\)"),
        ("changed", "half", r"must be a number \(got 'half'\)"),
        ("flag", "maybe", r"must be true or false \(got 'maybe'\)"),
        ("word", "away", r"must be near or far \(got 'away'\)"),
        ("limit", "x", r"must be none or a number \(got 'x'\)"),
        ("sizes", "1,2", r"must be set in Python \(tuple.*\) \(got '1,2'\)"),
        ("targets", "1", "has no option 'targets'"),
        ("kep", "1", "has no option 'kep'; it takes changed, flag, kept, limit, sizes, word"),
    ],
)
def test_a_wrong_one_is_told_with_what_is_right(name: str, text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        read_options(Child, {name: text})


def test_a_method_may_have_none() -> None:
    assert options_of(FixedMasks) == {}


def test_a_class_without_source_has_options_without_comments() -> None:
    space: dict[str, Any] = {"Parent": Parent, "dataclass": dataclass}
    exec("@dataclass(frozen=True, kw_only=True)\nclass Typed(Parent):\n    typed: int = 3  # unseen", space)
    assert options_of(space["Typed"])["typed"].about == ""
    assert options_of(space["Typed"])["kept"].about == "from the parent"


def test_every_option_of_ours_is_explained_and_can_be_written() -> None:
    for method in METHODS.values():
        for option in options_of(method).values():
            assert option.about, f"{method.name}'s {option.name} has no comment beside it"
            assert option.read(str(option.default)) == option.default


def test_the_comments_are_those_in_the_source() -> None:
    assert options_of(FastGLT)["decay"].about == "how fast that share falls [kappa]"
    assert options_of(UGS)["edge_share"].about == "of the remaining edges, removed in a round"


@pytest.mark.parametrize("name", ["epochs", "lr", "denoise_epochs"])
def test_what_belongs_to_the_budget_is_told(name: str) -> None:
    with pytest.raises(InputError, match=rf"has no option '{name}'; .* are the budget's: fastglt\.Budget"):
        quick_ticket("gcn", **{name: 10})
