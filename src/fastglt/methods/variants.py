"""Methods as people ask for them: by name, or as a variant, a name with options of its own in brackets.

>>> list(read_variants("fastglt, fastglt[start=random,ramp=1]"))
['fastglt', 'fastglt[start=random,ramp=1]']
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.methods import METHODS, Method, lookup
from fastglt.methods.options import read_options
from fastglt.system.plugins import is_ours, place_of

Options = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method with the options it is to have."""

    label: str  # what people read: its name, and in brackets what it was asked for with
    name: str  # the method's
    place: str  # what `make` takes, in other processes too
    options: dict[str, Any] = field(default_factory=dict)


def read_variants(methods: str | Sequence[str], options: Mapping[str, Options] | None = None) -> dict[str, Variant]:
    """The variants asked for by their labels, in order; `options` go to all variants of a method, whose own win."""
    found: dict[str, Variant] = {}
    for text in _texts(methods):
        variant = _read(text)
        if variant.label in found and "[" in variant.label:
            raise _same(variant.label, text)
        found.setdefault(variant.label, variant)
    given = options or {}
    for name in given:
        if name not in (known := {variant.name for variant in found.values()}):
            raise unknown_name("method in options", name, known)
    return {
        label: Variant(
            label=label,
            name=variant.name,
            place=variant.place,
            options={**given.get(variant.name, {}), **variant.options},
        )
        for label, variant in found.items()
    }


def check_differ(methods: Iterable[tuple[str, Method]]) -> None:
    """Refuse two variants that come to the same method with the same options, whatever they were called."""
    seen: list[tuple[str, Method]] = []
    for label, method in methods:
        for other, before in seen:
            if type(before) is type(method) and before.options == method.options:
                raise _same(other, label)
        seen.append((label, method))


def _same(one: str, other: str) -> InputError:
    rule = "methods must differ in name or options"
    return InputError(f"{rule} (got '{one}' and '{other}', which are the same); leave one out")


def _texts(methods: str | Sequence[str]) -> list[str]:
    """One text for each variant; commas within brackets belong to it."""
    parts = [methods] if isinstance(methods, str) else list(methods)
    for part in parts:
        if not isinstance(part, str):
            raise InputError(f"methods must be names, or NAME[OPTION=VALUE,…] (got {part!r})")
    split = [text.strip() for part in parts for text in re.split(r",(?![^\[\]]*\])", part)]
    found = [text for text in split if text]
    if not found:
        raise InputError(f"methods must name at least one (got {methods!r})")
    return list(METHODS) if found == ["all"] else found


def _read(text: str) -> Variant:
    match = re.fullmatch(r"([^\[\]]+?)\s*(?:\[([^\[\]]*)\])?", text)
    if match is None:
        raise InputError(f"methods must be names, or NAME[OPTION=VALUE,…] (got '{text}')")
    method = lookup(match[1])
    place = match[1] if ":" in match[1] or is_ours(method) else place_of(method) or match[1]
    if match[2] is None:
        return Variant(label=method.name, name=method.name, place=place)
    written = _pairs(text, match[2])
    label = f"{method.name}[{','.join(f'{name}={value}' for name, value in written.items())}]"
    return Variant(label=label, name=method.name, place=place, options=read_options(method, written))


def _pairs(text: str, inside: str) -> dict[str, str]:
    """Names and values between brackets; a dash in a name is as good as an underscore."""
    found: dict[str, str] = {}
    for part in inside.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value):
            raise InputError(f"methods must be names, or NAME[OPTION=VALUE,…] (got '{text}')")
        if (name := name.replace("-", "_")) in found:
            raise InputError(f"an option must be given once (got '{name}' twice in '{text}')")
        found[name] = value
    return found
