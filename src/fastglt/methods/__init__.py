"""The methods that find tickets: one class each, one line each in `METHODS`."""

from typing import Any, TypeVar

from fastglt.methods.ace import ACE
from fastglt.methods.adaglt import AdaGLT
from fastglt.methods.base import Budget, FixedMasks, Method, Targets
from fastglt.methods.dglt import DGLT
from fastglt.methods.fastglt import FastGLT
from fastglt.methods.forest import Forest
from fastglt.methods.gebt import GEBT
from fastglt.methods.grasp import GraSP
from fastglt.methods.oneshot import OneShot
from fastglt.methods.options import check_options
from fastglt.methods.own import RESERVED, check_class
from fastglt.methods.random import RandomPruning
from fastglt.methods.rigl import RigL
from fastglt.methods.snip import SNIP
from fastglt.methods.teddy import TEDDY
from fastglt.methods.ugs import UGS
from fastglt.methods.wdglt import WDGLT
from fastglt.system.plugins import add_to, find_in

__all__ = [
    "ACE",
    "DGLT",
    "GEBT",
    "METHODS",
    "SNIP",
    "TEDDY",
    "UGS",
    "WDGLT",
    "AdaGLT",
    "Budget",
    "FastGLT",
    "FixedMasks",
    "Forest",
    "GraSP",
    "Method",
    "OneShot",
    "RandomPruning",
    "RigL",
    "Targets",
    "lookup",
    "make",
    "register",
]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        FastGLT,
        Forest,
        OneShot,
        RandomPruning,
        SNIP,
        GraSP,
        RigL,
        UGS,
        WDGLT,
        ACE,
        GEBT,
        DGLT,
        AdaGLT,
        TEDDY,
    )
}


AnyMethod = TypeVar("AnyMethod", bound=type[Method])


def register(method: AnyMethod) -> AnyMethod:
    """Add a method of your own, by its name; also as a decorator, above that of its dataclass."""
    check_class(method)
    add_to(METHODS, method, "method", reserved=RESERVED)
    return method


def lookup(name: str) -> type[Method]:
    """A method's class by its name, or by where it lives: ``module:Class``."""
    return find_in(METHODS, name, "method", register)


def make(name: str, *, targets: Targets, budget: Budget, **options: Any) -> Method:
    """A method by name, or by where it lives, with its own options."""
    method = lookup(name)
    check_options(method, options)
    return method(targets=targets, budget=budget, **options)
