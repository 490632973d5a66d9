"""Methods from outside the package: a class is checked before it is used."""

import inspect
from dataclasses import MISSING, fields
from typing import Any

from fastglt.errors import InputError
from fastglt.methods.base import FixedMasks, Method
from fastglt.system.plugins import check_subclass, described

# What means something else where a method is named.
RESERVED = (FixedMasks.name, "all", "dense", "dense_distilled", "dense_same_lr", "transfer")


def check_class(method: Any) -> None:
    """Refuse what cannot be a method, with what is missing."""
    check_subclass(method, Method, "method")
    summary = getattr(method, "summary", None)
    if not isinstance(summary, str) or not summary.strip():
        raise InputError(
            f"a method must say in its summary what it does (got {summary!r} from {described(method)})"
        )
    forgotten = sorted(set(_own_fields(method)) - set(method.__dataclass_fields__))
    if forgotten:
        rule = "a method with options must be decorated with @dataclass(frozen=True, kw_only=True)"
        raise InputError(f"{rule} (got {described(method)} without, with the option {forgotten[0]})")
    for field in fields(method):
        if field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"every option of a method must have a default (got {field.name} without one)")


def _own_fields(method: type[Method]) -> list[str]:
    """What looks like an option in the class itself; a ClassVar does not."""
    annotations = inspect.get_annotations(method)
    return [name for name, hint in annotations.items() if "ClassVar" not in str(hint)]
