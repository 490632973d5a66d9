"""What a comparison is told on the command line: lists of methods, sparsities and seeds, and options by method."""

import re
from collections.abc import Sequence
from typing import Any

from fastglt.cli.shared.options import method_options
from fastglt.errors import InputError, require, unknown_name

_MOST_SEEDS = 10_000


def read_methods(text: str) -> dict[str, str]:
    """The methods asked for: each one's name, and the name or place it was asked for by."""
    from fastglt.methods import METHODS, lookup

    places = list(METHODS) if text.strip() == "all" else _parts("methods", text)
    return {lookup(place).name: place for place in places}


def read_options(methods: dict[str, str], texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options of each method, by the name or place it was asked for by."""
    written: dict[str, list[str]] = {name: [] for name in methods}
    for text in texts:
        name, dot, rest = text.partition(".")
        if not dot or "=" in name:
            raise InputError(f"--option must be METHOD.NAME=VALUE (got '{text}')")
        if name.strip() not in written:
            raise unknown_name("method in --option", name.strip(), written)
        written[name.strip()].append(rest)
    return {place: method_options(place, written[name], beside={}) for name, place in methods.items()}


def read_pairs(graph: str, weight: str) -> list[tuple[float, float]]:
    """Pairs of sparsities; one alone goes with all of the other kind.

    >>> read_pairs("0.2,0.05", "0.9")
    [(0.2, 0.9), (0.05, 0.9)]
    """
    lists = []
    for name, text in (("graph_sparsity", graph), ("weight_sparsity", weight)):
        try:
            lists.append([float(part) for part in _parts(name, text)])
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{name} must be numbers with commas between (got '{text}')") from None
    longest = max(map(len, lists))
    lists = [values * longest if len(values) == 1 else values for values in lists]
    if len(lists[0]) != len(lists[1]):
        rule = "graph_sparsity and weight_sparsity must be as many, or one alone"
        raise InputError(f"{rule} (got {len(lists[0])} and {len(lists[1])})")
    return list(dict.fromkeys(zip(*lists, strict=True)))


def read_seeds(text: str) -> list[int]:
    """Seeds one by one or from … to ….

    >>> read_seeds("0-2, 7")
    [0, 1, 2, 7]
    """
    found: list[int] = []
    for part in _parts("seeds", text):
        match = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", part)
        last = -1 if match is None else int(match[2] or match[1])
        if match is None or last < int(match[1]):
            raise InputError(f"seeds must be as in 0-4 or 0,2,5 (got '{text}')")
        require("lie below 2^63", seeds=last)
        if last - int(match[1]) >= _MOST_SEEDS:
            raise InputError(f"seeds must be at most {_MOST_SEEDS:,} (got '{text}')")
        found += range(int(match[1]), last + 1)
    return list(dict.fromkeys(found))


def read_names(name: str, text: str) -> list[str]:
    """Names with commas between, each once; the commas within a synthetic graph's recipe belong to it.

    >>> read_names("datasets", "cora, synthetic:nodes=60,edges=90,digits,cora")
    ['cora', 'synthetic:nodes=60,edges=90', 'digits']
    """
    names: list[str] = []
    for part in _parts(name, text):
        if names and names[-1].lower().startswith("synthetic:") and re.fullmatch(r"\w+=[\d.]*", part):
            names[-1] += f",{part}"
        else:
            names.append(part)
    return list(dict.fromkeys(names))


def _parts(name: str, text: str) -> list[str]:
    found = [part for part in (part.strip() for part in text.split(",")) if part]
    if not found:
        raise InputError(f"{name} must name at least one (got '{text}')")
    return found
