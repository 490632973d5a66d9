"""The methods that find tickets: one class each, one line each in `METHODS`."""

from dataclasses import fields
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.methods.base import Budget, FixedMasks, Method, Targets
from fastglt.methods.fastglt import FastGLT
from fastglt.methods.grasp import GraSP
from fastglt.methods.oneshot import OneShot
from fastglt.methods.random import RandomPruning
from fastglt.methods.rigl import RigL
from fastglt.methods.snip import SNIP
from fastglt.methods.ugs import UGS

__all__ = [
    "METHODS",
    "SNIP",
    "UGS",
    "Budget",
    "FastGLT",
    "FixedMasks",
    "GraSP",
    "Method",
    "OneShot",
    "RandomPruning",
    "RigL",
    "Targets",
    "make",
]

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (FastGLT, OneShot, RandomPruning, SNIP, GraSP, RigL, UGS)
}


def make(name: str, *, targets: Targets, budget: Budget, **options: Any) -> Method:
    """A method by name, with its own options."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    known = {field.name for field in fields(METHODS[name])} - {"targets", "budget"}
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise InputError(f"method '{name}' has no option '{option}'; {takes}")
    return METHODS[name](targets=targets, budget=budget, **options)
