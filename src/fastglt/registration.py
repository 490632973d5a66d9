"""Classes of your own, made known by their names."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fastglt import methods, models, tasks
from fastglt.errors import InputError
from fastglt.methods import Method
from fastglt.models import Backbone
from fastglt.system.plugins import described
from fastglt.tasks import Task

KINDS: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # what a class may extend, and who registers it then
    (Method, methods.register),
    (Backbone, models.register),
    (Task, tasks.register),
)

AnyClass = TypeVar("AnyClass", bound=type)


def register(kind: AnyClass) -> AnyClass:
    """Make a method, a backbone or a task of your own known by its name; also as a decorator.

    >>> from fastglt.methods.random import RandomPruning
    >>> class Mine(RandomPruning):
    ...     name, summary = "mine", "random pruning under another name"
    >>> register(Mine)  # doctest: +SKIP
    >>> fastglt.find_ticket("gcn", data, method="mine")  # doctest: +SKIP

    The command line and the processes of a comparison take it as ``module:Class``.

    Args:
        kind: A class that extends `fastglt.Method`, `fastglt.Backbone` or `fastglt.Task`.
    """
    for base, enter in KINDS:
        if inspect.isclass(kind) and issubclass(kind, base):
            enter(kind)
            return kind
    from fastglt.models.pyg_named import is_model
    from fastglt.models.registry import adopt

    if is_model(kind):
        adopt(kind)
        return kind
    names = " or ".join(f"fastglt.{base.__name__}" for base, _ in KINDS)
    raise InputError(f"what is registered must be a class that extends {names} (got {described(kind)})")
