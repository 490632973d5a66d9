"""What can go wrong, in two families: the input was wrong, or the machine could not do it.

A message gives the rule, then the value it got, then what to do. The command line prints the
message as one line and exits with the family's code; no traceback.
"""

import difflib
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any


class FastGLTError(Exception):
    """The root of every error fastglt raises on purpose."""

    exit_code = 1


class InputError(FastGLTError, ValueError):
    """The arguments, the data, the model or a file offered to fastglt are wrong."""

    exit_code = 2


class MachineError(FastGLTError, RuntimeError):
    """The environment stands in the way: disk, memory, network, another process."""

    exit_code = 1


_RULES: dict[str, Callable[[Any], bool]] = {  # each false for NaN
    "be positive": lambda value: value > 0,
    "not be negative": lambda value: value >= 0,
    "be at least 1": lambda value: value >= 1,
    "be a whole number": lambda value: isinstance(value, Integral),
    "lie below 2^63": lambda value: value < 2**63,  # what PyTorch's seeds and SQLite's columns hold
    "lie in (0, 1)": lambda value: 0 < value < 1,
    "lie in [0, 1)": lambda value: 0 <= value < 1,
    "lie in (0, 1]": lambda value: 0 < value <= 1,
    "lie in [0, 1]": lambda value: 0 <= value <= 1,
}


def require(rule: str, **values: object) -> None:
    """Refuse a number that breaks a rule.

    >>> require("be positive", lr=0.1, decay=0)
    Traceback (most recent call last):
        ...
    fastglt.errors.InputError: decay must be positive (got 0)
    >>> require("lie in [0, 1)", graph_sparsity=95)
    Traceback (most recent call last):
        ...
    fastglt.errors.InputError: graph_sparsity must lie in [0, 1) (got 95); did you mean 0.95?
    """
    for name, value in values.items():
        if not isinstance(value, Real):
            raise InputError(f"{name} must be a number (got {value!r})")
        if not _RULES[rule](value):
            number = float(value)
            hint = f"; did you mean {number / 100:g}?" if rule.startswith("lie in") and 1 < number < 100 else ""
            raise InputError(f"{name} must {rule} (got {value}){hint}")


def check_seed(seed: int, name: str = "seed") -> None:
    """Refuse what random numbers cannot start from."""
    for rule in ("be a whole number", "not be negative", "lie below 2^63"):
        require(rule, **{name: seed})


def unknown_name(what: str, got: str, known: Iterable[str]) -> InputError:
    """An error for a name nobody knows, with the nearest known one.

    >>> print(unknown_name("model", "gcm", ["gcn", "gin", "gat"]))
    unknown model (got 'gcm'); did you mean 'gcn'? Known: gat, gcn, gin
    """
    names = sorted(known)
    close = difflib.get_close_matches(got.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    return InputError(f"unknown {what} (got '{got}'){hint} Known: {', '.join(names)}")
