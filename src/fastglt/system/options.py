"""Options as people see them: name, type, default, and the comment that stands beside them in the source.

The comment is the only home of that text, for what comes with fastglt and for what is yours.
"""

import ast
import contextlib
import inspect
import io
import textwrap
import tokenize
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastglt.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Option:
    """One choice of a method or a model."""

    name: str
    default: Any
    about: str  # the comment beside it
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

    def to_json(self) -> dict[str, Any]:
        """What a person is told."""
        return {"name": self.name, "default": self.default, "takes": self.takes, "about": self.about}


def read_values(known: Mapping[str, Option], texts: Mapping[str, str], owner: str) -> dict[str, Any]:
    """Values of the right types from what a person wrote; `owner` is whose options they are, as "method 'ugs'"."""
    check_names(known, texts, owner)
    found = {}
    for name, text in texts.items():
        try:
            found[name] = known[name].read(text)
        except ValueError:
            rule = f"option '{name}' of {owner} must be {known[name].takes}"
            raise InputError(f"{rule} (got '{text}')") from None
    return found


def check_names(known: Iterable[str], given: Iterable[str], owner: str) -> None:
    """Refuse an option that its owner has not, with those that it has."""
    names = sorted(known)
    for name in given:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise InputError(f"{owner} has no option '{name}'; {takes}")


def field_comments(kind: type) -> dict[str, str]:
    """The comments beside the fields of a class's own body."""
    source, lines = _source(kind)
    if source is None:
        return {}
    (body,) = (node for node in source.body if isinstance(node, ast.ClassDef))
    fields = [node for node in body.body if isinstance(node, ast.AnnAssign)]
    return {node.target.id: _beside(node, lines) for node in fields if isinstance(node.target, ast.Name)}


def argument_comments(function: Callable[..., Any]) -> dict[str, str]:
    """The comments beside a function's arguments, one on a line."""
    source, lines = _source(function)
    if source is None:
        return {}
    (body,) = (node for node in source.body if isinstance(node, ast.FunctionDef))
    return {node.arg: _beside(node, lines) for node in (*body.args.args, *body.args.kwonlyargs)}


def _source(thing: Any) -> tuple[ast.Module | None, dict[int, str]]:
    """Its code, and the comments in it by their lines."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):  # typed at a prompt
        return None, {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    return ast.parse(source), lines


def _beside(node: ast.AnnAssign | ast.arg, lines: Mapping[int, str]) -> str:
    last = node.lineno if node.end_lineno is None else node.end_lineno
    return next((lines[line] for line in range(node.lineno, last + 1) if line in lines), "")


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
