"""Classes from outside the package: found by where they live, told apart by their code."""

import ast
import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fastglt.errors import InputError, unknown_name

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PACKAGE = __name__.partition(".")[0]
Kind = TypeVar("Kind", bound=type)


def load_class(place: str, what: str) -> Any:
    """What stands at ``module:Class``; modules in the current folder are found too.

    `what` says in errors what is looked for, such as "method".
    """
    module_name, _, class_name = place.partition(":")
    rule = f"a {what} outside fastglt must be given as module:Class"
    if not all(part.isidentifier() for part in (*module_name.split("."), *class_name.split("."))):
        raise InputError(f"{rule} (got '{place}')")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"'{module_name}' of {what} '{place}' must be importable (got {reason})") from error
    for name in class_name.split("."):
        if not hasattr(found, name):
            raise InputError(f"{rule} (got '{place}', and there is no {class_name} in {module_name})")
        found = getattr(found, name)
    return found


def is_ours(kind: type) -> bool:
    """Whether a class comes with fastglt."""
    return kind.__module__.partition(".")[0] == _PACKAGE


def place_of(kind: type) -> str | None:
    """Where another process finds a class, as ``module:Class``; None for one of a script's own, or of a prompt's.

    >>> from fractions import Fraction
    >>> place_of(Fraction)
    'fractions:Fraction'
    """
    found: Any = None if kind.__module__ == "__main__" else sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return f"{kind.__module__}:{kind.__qualname__}" if found is kind else None


def check_subclass(kind: Any, base: type, what: str) -> None:
    """Refuse what is no class that extends `base`, or leaves something of it undefined, or has no proper name."""
    if not (inspect.isclass(kind) and issubclass(kind, base)):
        raise InputError(f"a {what} must be a class that extends fastglt.{base.__name__} (got {described(kind)})")
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"a {what} must define {', '.join(missing)} (got {described(kind)}, which does not)")
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = f"a {what}'s name must be a word of small letters, digits, - and _"
        raise InputError(f"{rule} (got {name!r} from {described(kind)})")


def add_to(registry: dict[str, Any], kind: Any, what: str, *, reserved: tuple[str, ...] = ()) -> None:
    """Enter a class under its name, unless another one has it."""
    before = registry.get(kind.name)
    taken = kind.name in reserved if before is None else not same_class(before, kind)
    if taken:
        raise InputError(f"a {what}'s name must be free (got '{kind.name}', which is taken); choose another")
    registry[kind.name] = kind


def find_in(registry: Mapping[str, Kind], name: str, what: str, register: Callable[[Any], Kind]) -> Kind:
    """A class by its name or, registered then, by where it lives: ``module:Class``."""
    if ":" in name:
        return register(load_class(name, what))
    if name not in registry:
        raise unknown_name(what, name, registry)
    return registry[name]


def same_class(one: type, other: type) -> bool:
    """Whether two classes are the same piece of code, run again: a module reloaded, a notebook's cell."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def code_digest(kind: type, base: type) -> str | None:
    """A digest of the code of a class from outside, so that runs of its versions are told apart; None for ours.

    Comments and layout do not count, nor does what the class's file imports.
    """
    digest = hashlib.sha256()
    files = [inspect.getsourcefile(part) for part in kind.__mro__ if issubclass(part, base) and not is_ours(part)]
    for file in files:
        digest.update(ast.dump(ast.parse(Path(file).read_text())).encode() if file else b"")
    return digest.hexdigest() if files else None


def described(thing: Any) -> str:
    """A class by its name, anything else as Python shows it."""
    return f"the class {thing.__qualname__}" if inspect.isclass(thing) else repr(thing)
