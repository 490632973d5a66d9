"""A method's options: the fields of its dataclass, with the comments that stand beside them."""

import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fastglt.errors import InputError
from fastglt.methods.base import Budget, Method
from fastglt.system.options import Option, check_names, field_comments, read_values

_NOT_OPTIONS = {field.name for field in fields(Method)}  # targets and budget


def options_of(method: type[Method]) -> dict[str, Option]:
    """The options of a method by name, in their order."""
    hints, comments, defaults = typing.get_type_hints(method), _comments(method), method()
    return {
        name: Option(name=name, type=hints[name], default=getattr(defaults, name), about=comments.get(name, ""))
        for name in _names(method)
    }


def read_options(method: type[Method], texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of the right types from what a person wrote."""
    return read_values(options_of(method), texts, f"method '{method.name}'")


def check_options(method: type[Method], options: Mapping[str, Any]) -> None:
    """Refuse an option that a method has not, with those that it has."""
    known = _names(method)
    budget = {field.name for field in fields(Budget)} | {"epochs"}
    for name in options:
        if name not in known and name in budget:
            rule = f"method '{method.name}' has no option '{name}'"
            raise InputError(f"{rule}; epochs, learning rate and decay are the budget's: fastglt.Budget(…)")
    check_names(known, options, f"method '{method.name}'")


def _names(method: type[Method]) -> list[str]:
    return [field.name for field in fields(method) if field.name not in _NOT_OPTIONS]


def _comments(method: type[Method]) -> dict[str, str]:
    """The comments beside a class's fields, those of the classes it comes from first."""
    found: dict[str, str] = {}
    for kind in reversed(method.__mro__):
        if issubclass(kind, Method):
            found |= field_comments(kind)
    return found
