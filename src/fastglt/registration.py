"""Classes of your own: a method or a task becomes known by its name."""

import inspect
from typing import Any, TypeVar

from fastglt import methods, tasks
from fastglt.errors import InputError
from fastglt.system.plugins import described

AnyClass = TypeVar("AnyClass", bound=type)

_KINDS: dict[type, Any] = {methods.Method: methods.register, tasks.Task: tasks.register}


def register(kind: AnyClass) -> AnyClass:
    """Make a class of your own known by its name: one that extends `Method` or `Task`.

    >>> @register  # doctest: +SKIP
    ... @dataclass(frozen=True, kw_only=True)
    ... class Mine(fastglt.Method): ...

    It can then be named wherever ours can. The command line and other processes take it as ``module:Class``.
    """
    for base, enter in _KINDS.items():
        if inspect.isclass(kind) and issubclass(kind, base):
            enter(kind)
            return kind
    known = " or ".join(f"fastglt.{base.__name__}" for base in _KINDS)
    raise InputError(f"a class to register must extend {known} (got {described(kind)})")
