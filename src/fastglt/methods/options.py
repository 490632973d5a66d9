"""A method's options as people see them: name, type, default, and the comment that stands beside the field.

The comment in the source is the only home of that text, for our methods and for yours.
"""

import ast
import contextlib
import inspect
import io
import textwrap
import tokenize
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fastglt.errors import InputError
from fastglt.methods.base import Method

_NOT_OPTIONS = {field.name for field in fields(Method)}  # targets and budget


@dataclass(frozen=True, kw_only=True)
class Option:
    """One field of a method's dataclass."""

    name: str
    default: Any
    about: str  # the comment beside the field
    type: Any = str

    @property
    def takes(self) -> str:
        """Its type in words."""
        return " or ".join(_words(kind) for kind in _alternatives(self.type))

    def read(self, text: str) -> Any:
        """A value from what a person wrote; ValueError if it is of another type."""
        for kind in _alternatives(self.type):
            with contextlib.suppress(ValueError):
                return _reader(kind)(text.strip())
        raise ValueError(text)


def options_of(method: type[Method]) -> dict[str, Option]:
    """The options of a method by name, in their order."""
    hints, comments, defaults = typing.get_type_hints(method), _comments(method), method()
    return {
        field.name: Option(
            name=field.name,
            type=hints[field.name],
            default=getattr(defaults, field.name),
            about=comments.get(field.name, ""),
        )
        for field in fields(method)
        if field.name not in _NOT_OPTIONS
    }


def read_options(method: type[Method], texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of the right types from what a person wrote."""
    known = options_of(method)
    found = {}
    for name, text in texts.items():
        if name not in known:
            raise no_option(method, name)
        try:
            found[name] = known[name].read(text)
        except ValueError:
            rule = f"option '{name}' of method '{method.name}' must be {known[name].takes}"
            raise InputError(f"{rule} (got '{text}')") from None
    return found


def no_option(method: type[Method], name: str) -> InputError:
    """An error for an option that a method has not, with those that it has."""
    known = sorted(field.name for field in fields(method) if field.name not in _NOT_OPTIONS)
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return InputError(f"method '{method.name}' has no option '{name}'; {takes}")


def _bool(text: str) -> bool:
    yes, no = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
    if text.lower() not in yes + no:
        raise ValueError(text)
    return text.lower() in yes


def _none(text: str) -> None:
    if text.lower() not in ("none", "null"):
        raise ValueError(text)


_READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {  # in words, and how to read it; the narrowest first
    type(None): ("none", _none),
    bool: ("true or false", _bool),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a word", str),
}


def _alternatives(hint: Any) -> list[Any]:
    """What a value may be: a type, several of them, or one of a few literals."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = list(typing.get_args(hint)) if is_union else [hint]
    order = list(_READERS)
    return sorted(kinds, key=lambda kind: order.index(kind) if kind in order else -1)


def _words(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(str, typing.get_args(kind)))
    return _READERS[kind][0] if kind in _READERS else f"set in Python ({kind})"


def _reader(kind: Any) -> Callable[[str], Any]:
    if typing.get_origin(kind) is typing.Literal:
        literals = {str(value): value for value in typing.get_args(kind)}

        def read(text: str) -> Any:
            if text not in literals:
                raise ValueError(text)
            return literals[text]

        return read
    if kind not in _READERS:
        raise ValueError(f"no text is a {kind}")
    return _READERS[kind][1]


def _comments(method: type[Method]) -> dict[str, str]:
    """The comments beside a class's fields, those of the classes it comes from first."""
    found: dict[str, str] = {}
    for kind in reversed(method.__mro__):
        if issubclass(kind, Method):
            found |= _comments_in(kind)
    return found


def _comments_in(kind: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # typed at a prompt
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (body,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return {
        node.target.id: next((lines[line] for line in range(node.lineno, node.end_lineno + 1) if line in lines), "")
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno is not None
    }
