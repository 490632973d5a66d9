"""Methods from outside: registered by name, found as module:Class, refused with what is missing."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import fastglt
from fastglt import InputError, Method, Targets
from fastglt.methods import METHODS, FastGLT, lookup, make, register
from fastglt.methods.base import FixedMasks
from fastglt.methods.random import RandomPruning
from fastglt.system.plugins import code_digest
from tests.conftest import OwnModule
from tests.helpers import BUDGET
from tests.toy_data import quick_ticket

MINE = """
from dataclasses import dataclass
from fastglt.methods.random import RandomPruning

@dataclass(frozen=True, kw_only=True)
class Mine(RandomPruning):
    name = "mine"
    summary = "for tests"
    strength: int = 1  # how strong
"""
pytestmark = pytest.mark.usefixtures("own_module")


def subclass(**body: Any) -> type[RandomPruning]:
    return type("Mine", (RandomPruning,), {"name": "mine", "summary": "for tests", **body})


def test_a_registered_method_finds_tickets_by_its_name() -> None:
    @fastglt.register
    @dataclass(frozen=True, kw_only=True)
    class Mine(RandomPruning):
        name = "mine"
        summary = "for tests"
        strength: int = 1

    assert METHODS["mine"] is Mine
    ticket = quick_ticket(method="mine", strength=3, isolated=False)
    assert (ticket.config["method"], ticket.config["options"]) == ("mine", {"strength": 3})
    assert ticket.masks.edges.count == 42


def test_a_class_that_is_defined_again_takes_its_own_place() -> None:
    first, second = subclass(), subclass()
    register(first)
    assert register(second) is second is METHODS["mine"]
    register(FastGLT)  # nothing happens


NOT_A_DATACLASS = {"__annotations__": {"strength": int}, "strength": 1}
REFUSED: dict[str, tuple[Any, str]] = {
    "no class": (3, r"must be a class that extends fastglt.Method \(got 3\)"),
    "no method": (dict, r"must be a class that extends fastglt.Method \(got the class dict\)"),
    "abstract": (
        type("Idea", (Method,), {"name": "idea", "summary": "x"}),
        r"must define begin \(got the class Idea, which",
    ),
    "no summary": (type("Mine", (FixedMasks,), {"name": "mine", "summary": " "}), "must say in its summary"),
    "no name": (type("Mine", (RandomPruning,), {"name": ""}), r"name must be a word of small .* \(got ''"),
    "name with a dot": (type("Mine", (RandomPruning,), {"name": "my.own"}), "name must be a word of small letters"),
    "taken name": (type("Mine", (RandomPruning,), {"name": "ugs"}), r"must be free \(got 'ugs', which is taken\)"),
    "inherited name": (type("Mine", (RandomPruning,), {}), r"must be free \(got 'random'"),
    "reserved name": (type("Mine", (RandomPruning,), {"name": "all"}), r"must be free \(got 'all'"),
    "no dataclass": (
        type("Mine", (RandomPruning,), {"name": "mine", **NOT_A_DATACLASS}),
        r"decorated with @dataclass\(frozen=True, kw_only=True\) .*with the option strength",
    ),
}


@pytest.mark.parametrize(("method", "rule"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_method_is_refused(method: Any, rule: str) -> None:
    before = dict(METHODS)
    with pytest.raises(InputError, match=rule):
        register(method)
    assert before == METHODS


def test_an_option_needs_a_default() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Mine(RandomPruning):
        name = "mine"
        summary = "for tests"
        strength: int

    with pytest.raises(InputError, match=r"must have a default \(got strength without one\)"):
        register(Mine)


def test_a_class_variable_is_no_option() -> None:
    class Mine(RandomPruning):
        name = "mine"
        summary = "for tests"
        table: ClassVar[dict[str, int]] = {}

    assert register(Mine) is Mine


def test_a_class_is_found_in_the_current_folder(own_module: OwnModule) -> None:
    own_module("found_here", MINE)
    method = make("found_here:Mine", targets=Targets(), budget=BUDGET, strength=2)
    assert (method.name, method.options) == ("mine", {"strength": 2})
    assert lookup("mine") is lookup("found_here:Mine") is type(method)


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        ("nowhere:Mine", r"'nowhere' of method 'nowhere:Mine' must be importable \(got ModuleNotFoundError"),
        ("broken:Mine", r"must be importable \(got NameError: name 'undefined' is not defined\)"),
        ("here:Other", r"given as module:Class \(got 'here:Other', and there is no Other in here\)"),
        ("here:", r"given as module:Class \(got 'here:'\)"),
        ("my file.py:Mine", r"given as module:Class \(got 'my file.py:Mine'\)"),
        ("here:dataclass", r"must be a class that extends fastglt.Method \(got <function"),
    ],
)
def test_a_place_without_a_method_is_told(own_module: OwnModule, place: str, rule: str) -> None:
    own_module("here", MINE)
    own_module("broken", "undefined")
    with pytest.raises(InputError, match=rule):
        lookup(place)


def test_the_code_of_a_users_file_is_told_apart_and_ours_is_not(own_module: OwnModule) -> None:
    path = own_module("versions", MINE)
    method = lookup("versions:Mine")
    first = code_digest(method, Method)
    path.write_text(f"{MINE}\n# a comment")
    assert code_digest(method, Method) == first
    path.write_text(MINE.replace("int = 1", "int = 2"))
    assert code_digest(method, Method) != first is not None
    assert code_digest(FastGLT, Method) is None
