"""Methods from outside the package: a class is checked before it is used, and found by where it lives."""

import ast
import hashlib
import importlib
import inspect
import os
import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.methods.base import FixedMasks, Method

# What means something else where a method is named.
RESERVED = (FixedMasks.name, "all", "dense", "dense_distilled", "transfer")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def check_class(method: Any) -> None:
    """Refuse what cannot be a method, with what is missing."""
    if not (inspect.isclass(method) and issubclass(method, Method)):
        raise InputError(f"a method must be a class that extends fastglt.Method (got {_what(method)})")
    missing = sorted(getattr(method, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"a method must define {', '.join(missing)} (got {_what(method)}, which does not)")
    _check_words(method)
    forgotten = sorted(set(_own_fields(method)) - set(method.__dataclass_fields__))
    if forgotten:
        rule = "a method with options must be decorated with @dataclass(frozen=True, kw_only=True)"
        raise InputError(f"{rule} (got {_what(method)} without, with the option {forgotten[0]})")
    for field in fields(method):
        if field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"every option of a method must have a default (got {field.name} without one)")


def _check_words(method: type[Method]) -> None:
    name, summary = getattr(method, "name", None), getattr(method, "summary", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "a method's name must be a word of small letters, digits, - and _"
        raise InputError(f"{rule} (got {name!r} from {_what(method)})")
    if not isinstance(summary, str) or not summary.strip():
        raise InputError(f"a method must say in its summary what it does (got {summary!r} from {_what(method)})")


def _own_fields(method: type[Method]) -> list[str]:
    """What looks like an option in the class itself; a ClassVar does not."""
    annotations = inspect.get_annotations(method)
    return [name for name, hint in annotations.items() if "ClassVar" not in str(hint)]


def same_class(one: type, other: type) -> bool:
    """Whether two classes are the same piece of code, run again: a module reloaded, a notebook's cell."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def load_class(place: str) -> Any:
    """What stands at ``module:Class``; modules in the current folder are found too."""
    module_name, _, class_name = place.partition(":")
    rule = "a method outside fastglt must be given as module:Class"
    if not all(part.isidentifier() for part in (*module_name.split("."), *class_name.split("."))):
        raise InputError(f"{rule} (got '{place}')")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"'{module_name}' of method '{place}' must be importable (got {reason})") from error
    for name in class_name.split("."):
        if not hasattr(found, name):
            raise InputError(f"{rule} (got '{place}', and there is no {class_name} in {module_name})")
        found = getattr(found, name)
    return found


def code_digest(method: type[Method]) -> str | None:
    """A digest of the code of a method from outside, so that runs of its versions are told apart; None for ours.

    Comments and layout do not count, nor does what the method's file imports.
    """
    digest, package = hashlib.sha256(), __name__.partition(".")[0]
    files = [
        inspect.getsourcefile(kind)
        for kind in method.__mro__
        if issubclass(kind, Method) and kind.__module__.partition(".")[0] != package
    ]
    for file in files:
        digest.update(ast.dump(ast.parse(Path(file).read_text())).encode() if file else b"")
    return digest.hexdigest() if files else None


def _what(thing: Any) -> str:
    return f"the class {thing.__qualname__}" if inspect.isclass(thing) else repr(thing)
