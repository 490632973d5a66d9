"""Lists as people give them, in Python or as text: seeds, names, and sparsities in pairs."""

import re
from collections.abc import Iterable

from fastglt.errors import InputError, check_seed, require

_MOST_SEEDS = 10_000
Numbers = float | Iterable[float] | str  # one, several, or as on the command line


def read_pairs(graph: Numbers, weight: Numbers) -> list[tuple[float, float]]:
    """Pairs of sparsities; one alone goes with all of the other kind.

    >>> read_pairs("0.2,0.05", 0.9)
    [(0.2, 0.9), (0.05, 0.9)]
    """
    lists = [_numbers("graph_sparsity", graph), _numbers("weight_sparsity", weight)]
    longest = max(map(len, lists))
    lists = [values * longest if len(values) == 1 else values for values in lists]
    if len(lists[0]) != len(lists[1]):
        rule = "graph_sparsity and weight_sparsity must be as many, or one alone"
        raise InputError(f"{rule} (got {len(lists[0])} and {len(lists[1])})")
    return list(dict.fromkeys(zip(*lists, strict=True)))


def _numbers(name: str, given: Numbers) -> list[float]:
    text = as_text(given)
    try:
        return [float(part) for part in _parts(name, text)]
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must be comma-separated numbers (got '{text}')") from None


def as_text(given: Numbers) -> str:
    """One number or several as they would stand on the command line; a text as it is.

    >>> as_text([0.1, 0.5]), as_text(0), as_text("bisect:0.3")
    ('0.1,0.5', '0', 'bisect:0.3')
    """
    if isinstance(given, str):
        return given
    return ",".join(map(str, given)) if isinstance(given, Iterable) else str(given)


def read_seeds(given: Iterable[int] | str, name: str = "seeds") -> list[int]:
    """Seeds one by one or, as text, also from … to ….

    >>> read_seeds("0-2, 7"), read_seeds(range(2))
    ([0, 1, 2, 7], [0, 1])
    """
    found = _seeds_in(given, name) if isinstance(given, str) else list(given)
    if not found:
        raise InputError(f"{name} must name at least one (got {given!r})")
    for seed in found:
        check_seed(seed, name)
    return list(dict.fromkeys(map(int, found)))


def _seeds_in(text: str, name: str) -> list[int]:
    found: list[int] = []
    for part in _parts(name, text):
        match = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", part)
        last = -1 if match is None else int(match[2] or match[1])
        if match is None or last < int(match[1]):
            raise InputError(f"{name} must be as in 0-4 or 0,2,5 (got '{text}')")
        require("lie below 2^63", **{name: last})
        if last - int(match[1]) >= _MOST_SEEDS:
            raise InputError(f"{name} must be at most {_MOST_SEEDS:,} (got '{text}')")
        found += range(int(match[1]), last + 1)
    return found


def read_names(name: str, given: Iterable[str] | str) -> list[str]:
    """Comma-separated names, each once; the commas within a graph's recipe belong to it.

    >>> read_names("datasets", "cora, synthetic:nodes=60,edges=90,digits,cora")
    ['cora', 'synthetic:nodes=60,edges=90', 'digits']
    """
    names: list[str] = []
    for part in _parts(name, given if isinstance(given, str) else ",".join(given)):
        if (
            names
            and names[-1].lower().startswith(("synthetic:", "poisoned:"))
            and re.fullmatch(r"\w+=[\d.]*", part)
        ):
            names[-1] += f",{part}"
        else:
            names.append(part)
    return list(dict.fromkeys(names))


def _parts(name: str, text: str) -> list[str]:
    found = [part for part in (part.strip() for part in text.split(",")) if part]
    if not found:
        raise InputError(f"{name} must name at least one (got '{text}')")
    return found
