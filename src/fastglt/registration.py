"""Classes of your own, made known by their names."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fastglt import methods, models
from fastglt.errors import InputError
from fastglt.methods import Method
from fastglt.models import Backbone
from fastglt.system.plugins import described

KINDS: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # what a class may extend, and who registers it then
    (Method, methods.register),
    (Backbone, models.register),
)

AnyClass = TypeVar("AnyClass", bound=type)


def register(kind: AnyClass) -> AnyClass:
    """Make a method or a model of your own known by its name; also as a decorator.

    >>> from fastglt.methods.random import RandomPruning
    >>> class Mine(RandomPruning):
    ...     name, summary = "mine", "random pruning under another name"
    >>> register(Mine)  # doctest: +SKIP
    >>> fastglt.find_ticket("gcn", data, method="mine")  # doctest: +SKIP

    `kind` is a class that extends `fastglt.Method` or `fastglt.Backbone`.
    """
    for base, enter in KINDS:
        if inspect.isclass(kind) and issubclass(kind, base):
            enter(kind)
            return kind
    names = " or ".join(f"fastglt.{base.__name__}" for base, _ in KINDS)
    raise InputError(f"what is registered must be a class that extends {names} (got {described(kind)})")
