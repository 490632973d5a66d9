"""A backbone's options: what its `__init__` takes beside its shape and seed, with the comments beside them."""

import inspect
import typing
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from fastglt.errors import InputError
from fastglt.models.base import Backbone
from fastglt.system.options import Option, argument_comments, check_names, read_values

SHAPE = ("in_channels", "hidden", "out_channels", "seed")  # every backbone takes these, and whoever builds it knows


def arguments_of(backbone: type[Backbone]) -> tuple[str, ...]:
    """Everything that decides a backbone, by name, in its order."""
    return tuple(_parameters(backbone))


@cache
def options_of(backbone: type[Backbone]) -> dict[str, Option]:
    """The options of a backbone by name, in their order."""
    hints, comments = typing.get_type_hints(backbone.__init__), argument_comments(backbone.__init__)
    return {
        name: Option(name=name, type=hints.get(name, str), default=parameter.default, about=comments.get(name, ""))
        for name, parameter in _parameters(backbone).items()
        if name not in SHAPE
    }


def read_options(backbone: type[Backbone], texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of the right types from what a person wrote."""
    known = options_of(backbone)
    more = {name: _literal(text) for name, text in texts.items() if name not in known and takes_more(backbone)}
    named = {name: text for name, text in texts.items() if name not in more}
    return {**read_values(known, named, f"model '{backbone.name}'"), **more}


def check_options(backbone: type[Backbone], options: Mapping[str, Any]) -> None:
    """Refuse an option that a backbone has not, with those that it has."""
    if not takes_more(backbone):
        check_names(options_of(backbone), options, f"model '{backbone.name}'")


def takes_more(backbone: type[Backbone]) -> bool:
    """Whether it hands options on to its layers that it does not name itself, as PyG's models do."""
    return bool(getattr(backbone, "takes_more", False))


def _literal(text: str) -> Any:
    """A number, true, false or none, else the word itself."""
    plain = {"true": True, "false": False, "none": None}
    for read in (lambda word: plain[word.lower()], int, float):
        with suppress(KeyError, ValueError):
            return read(text)
    return text


def check_arguments(backbone: type[Backbone]) -> None:
    """Refuse a class that cannot be built from a shape and a seed, or whose options cannot be told."""
    parameters = _parameters(backbone)
    kind = f"the class {backbone.__qualname__}"
    for name in SHAPE:
        if name not in parameters:
            raise InputError(f"a model's __init__ must take {', '.join(SHAPE)} (got {kind} without {name})")
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"a model's __init__ must take its options one by one, by name (got {kind}: {parameter})"
            )
        if name not in SHAPE and parameter.default is parameter.empty:
            raise InputError(f"every option of a model must have a default (got {name} of {kind} without one)")


@cache
def _parameters(backbone: type[Backbone]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(backbone.__init__).parameters
    return {name: parameter for name, parameter in parameters.items() if name != "self"}
