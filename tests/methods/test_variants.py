"""One method beside itself with other options."""

import pytest

from fastglt.errors import InputError
from fastglt.methods import METHODS, make
from fastglt.methods.base import Budget, Targets
from fastglt.methods.variants import Variant, check_differ, read_variants
from tests.conftest import OwnModule


def test_commas_within_brackets_belong_to_the_variant() -> None:
    found = read_variants(" fastglt , fastglt[swap-fraction = 0.1], fastglt[start=random,ramp=1],random")
    assert list(found) == ["fastglt", "fastglt[swap_fraction=0.1]", "fastglt[start=random,ramp=1]", "random"]
    third = found["fastglt[start=random,ramp=1]"]
    assert (third.name, third.place, third.options) == ("fastglt", "fastglt", {"start": "random", "ramp": 1.0})
    assert found["fastglt"] == Variant(label="fastglt", name="fastglt", place="fastglt")


def test_a_sequence_is_as_good_as_a_text() -> None:
    assert read_variants(["fastglt", "fastglt[ramp=1]"]) == read_variants("fastglt,fastglt[ramp=1]")
    assert list(read_variants("all")) == list(read_variants(["all"])) == list(METHODS)


def test_options_of_a_method_go_to_all_its_variants_whose_own_win() -> None:
    found = read_variants("fastglt,fastglt[ramp=0.5],random", {"fastglt": {"ramp": 1.0, "decay": 2.0}})
    assert [variant.options for variant in found.values()] == [
        {"ramp": 1.0, "decay": 2.0},
        {"ramp": 0.5, "decay": 2.0},
        {},
    ]


def test_a_plain_name_twice_is_once() -> None:
    assert list(read_variants("random,fastglt,random")) == ["random", "fastglt"]


BAD = {
    "nothing": (" , ", r"methods must name at least one \(got ' , '\)"),
    "open": ("fastglt[ramp=1", r"methods must be names, or NAME\[OPTION=VALUE,…\] \(got 'fastglt\[ramp=1'\)"),
    "no value": ("fastglt[ramp]", r"NAME\[OPTION=VALUE,…\] \(got 'fastglt\[ramp\]'\)"),
    "empty": ("fastglt[]", r"NAME\[OPTION=VALUE,…\] \(got 'fastglt\[\]'\)"),
    "behind": ("fastglt[ramp=1]x", r"\(got 'fastglt\[ramp=1\]x'\)"),
    "twice": ("fastglt[ramp=1,ramp=0.5]", r"an option must be given once \(got 'ramp' twice in 'fastglt"),
    "unknown": ("fastgtl[ramp=1]", "unknown method .*did you mean 'fastglt'"),
    "no such option": ("fastglt[speed=1]", "method 'fastglt' has no option 'speed'; it takes"),
    "type": ("fastglt[ramp=steep]", r"option 'ramp' of method 'fastglt' must be a number \(got 'steep'\)"),
    "same": (
        "fastglt[ramp=1],fastglt[ramp=1]",
        r"got 'fastglt\[ramp=1\]' and 'fastglt\[ramp=1\]', which are",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_is_no_variant_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_variants(text)


def test_options_of_nobody_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown method in options \(got 'ugs'\). Known: random"):
        read_variants("random", {"ugs": {}})
    with pytest.raises(InputError, match=r"methods must be names.*\(got 3\)"):
        read_variants([3])  # type: ignore[list-item]


def test_equal_options_are_refused_whatever_they_were_called() -> None:
    budget, targets = Budget(), Targets()
    plain, same, other = (make("fastglt", targets=targets, budget=budget, ramp=ramp) for ramp in (0.8, 0.8, 1.0))
    check_differ([("fastglt", plain), ("fastglt[ramp=1]", other)])
    with pytest.raises(InputError, match=r"differ in name or options \(got 'fastglt' and 'fastglt\[ramp=0.8\]'"):
        check_differ([("fastglt", plain), ("fastglt[ramp=1]", other), ("fastglt[ramp=0.8]", same)])


MINE = """
import fastglt
from fastglt.methods.random import RandomPruning

@fastglt.register
class Mine(RandomPruning):
    name = "mine"
    summary = "for tests"
"""


def test_a_registered_method_is_asked_for_by_where_it_lives(
    own_module: OwnModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes do not know what was registered in this one."""
    monkeypatch.syspath_prepend(str(own_module("mine_of_a_user", MINE).parent))
    __import__("mine_of_a_user")
    (variant,) = read_variants("mine").values()
    assert (variant.label, variant.place) == ("mine", "mine_of_a_user:Mine")
    assert read_variants("mine_of_a_user:Mine") == {"mine": variant}
