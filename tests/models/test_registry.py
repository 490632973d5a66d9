"""Backbones from outside: registered by name, found as module:Class, refused with what is missing."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fastglt
from fastglt import GCN, Backbone, InputError
from fastglt.models import BACKBONES, build, lookup, make, register
from tests.conftest import OwnModule

MINE = """
from fastglt.models.gcn.network import GCN

class Mine(GCN):
    name = "mine"
"""
SHAPE = {"in_channels": 4, "hidden": 8, "out_channels": 2, "seed": 1}
pytestmark = pytest.mark.usefixtures("own_module")


def subclass(**body: Any) -> type[GCN]:
    return type("Mine", (GCN,), {"name": "mine", **body})


def test_a_registered_backbone_is_built_by_its_name() -> None:
    mine = fastglt.register(subclass())
    assert BACKBONES["mine"] is mine is lookup("mine")
    assert type(build({"name": "mine", **SHAPE})) is mine
    again = subclass()
    assert register(again) is again is BACKBONES["mine"]  # a class that is defined again takes its own place


def _without_seed(self: Any, in_channels: int, hidden: int, out_channels: int) -> None: ...


def _with_anything(
    self: Any, in_channels: int, hidden: int, out_channels: int, *, seed: int, **more: int
) -> None: ...


def _without_default(
    self: Any, in_channels: int, hidden: int, out_channels: int, *, seed: int, power: int
) -> None: ...


REFUSED: dict[str, tuple[Any, str]] = {
    "no class": (3, r"a model must be a class that extends fastglt.Backbone \(got 3\)"),
    "no backbone": (nn.Linear, r"must be a class that extends fastglt.Backbone \(got the class Linear\)"),
    "abstract": (type("Idea", (Backbone,), {"name": "idea"}), r"must define outputs \(got the class Idea"),
    "taken name": (subclass(name="gin"), r"must be free \(got 'gin', which is taken\)"),
    "users' name": (subclass(name="pyg"), r"must be free \(got 'pyg'"),
    "no name": (subclass(name="My Net"), "name must be a word of small letters"),
    "no seed": (subclass(__init__=_without_seed), r"must take in_channels, .*seed \(got .* without seed\)"),
    "anything": (
        subclass(__init__=_with_anything),
        r"take its options one by one, by name \(got the class Mine: \*\*more: int\)",
    ),
    "no default": (subclass(__init__=_without_default), r"must have a default \(got power of the class Mine"),
}


@pytest.mark.parametrize(("backbone", "rule"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_backbone_is_refused(backbone: Any, rule: str) -> None:
    before = dict(BACKBONES)
    with pytest.raises(InputError, match=rule):
        register(backbone)
    assert before == BACKBONES


@pytest.mark.parametrize("thing", [3, dict])
def test_what_is_neither_method_nor_model_is_refused(thing: Any) -> None:
    with pytest.raises(
        InputError,
        match=r"must be a class that extends fastglt\.Method or fastglt\.Backbone or fastglt\.Task \(got ",
    ):
        fastglt.register(thing)


def test_a_class_is_found_in_the_current_folder(own_module: OwnModule) -> None:
    own_module("net_here", MINE)
    found = make("net_here:Mine", **SHAPE, dropout=0.25)
    assert (found.spec["name"], found.spec["dropout"]) == ("mine", 0.25)
    assert lookup("mine") is type(found)
    with pytest.raises(InputError, match=r"'nowhere' of model 'nowhere:Net' must be importable"):
        lookup("nowhere:Net")


def test_a_spec_never_has_a_module_imported(own_module: OwnModule) -> None:
    own_module("net_there", 'raise SystemExit("imported")')
    with pytest.raises(InputError, match=r"unknown model \(got 'net_there:Mine'\)"):
        build({"name": "net_there:Mine", **SHAPE})


def test_options_are_checked_by_name() -> None:
    with pytest.raises(InputError, match="model 'gcn' has no option 'heads'; it takes dropout"):
        make("gcn", **SHAPE, heads=2)


class Drawn(GCN):
    """With a layer that draws from PyTorch's generator."""

    name = "drawn"

    def __init__(self, in_channels: int, hidden: int, out_channels: int, *, seed: int = 0) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=0.0, seed=seed)
        self.linear = nn.Linear(out_channels, out_channels)

    def outputs(self, *arguments: Any) -> Tensor:
        out: Tensor = self.linear(super().outputs(*arguments))
        return out


def test_layers_of_pytorchs_own_are_decided_by_the_seed() -> None:
    register(Drawn)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = build({"name": "drawn", **SHAPE})
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = one.rebuilt(), one.redrawn(2)
    assert torch.equal(one.get_parameter("linear.weight"), again.get_parameter("linear.weight"))
    assert not torch.equal(one.get_parameter("linear.weight"), other.get_parameter("linear.weight"))
    assert one.prunable == ("layer1.weight", "layer2.weight", "linear.weight")
    assert one.spec == {"name": "drawn", **SHAPE}


def test_an_option_that_is_not_kept_is_told() -> None:
    class Forgetful(GCN):
        name = "forgetful"

        def __init__(
            self, in_channels: int, hidden: int, out_channels: int, *, seed: int = 0, power: int = 2
        ) -> None:
            super().__init__(in_channels, hidden, out_channels, seed=seed)

    with pytest.raises(
        InputError, match=r"keep each of its options as an attribute \(got Forgetful without power\)"
    ):
        _ = Forgetful(4, 8, 2).spec
