"""Imports point one way: values know nothing of training, data nothing of models, nobody of the command line."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fastglt

ROOT = Path(fastglt.__file__).parent


@cache
def modules() -> dict[str, Path]:
    """Every module by its name inside the package, such as `methods.fastglt`; a package by its own."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def resolve(name: str) -> str | None:
    """The module of ours that an imported name belongs to."""
    inside = name.removeprefix("fastglt").removeprefix(".") if name.split(".", maxsplit=1)[0] == "fastglt" else None
    while inside and inside not in modules():
        inside = inside.rpartition(".")[0]
    return inside


@cache
def imports(module: str, *, when_loaded: bool = False) -> frozenset[str]:
    """The modules of ours that a module imports: anywhere, or just when it is loaded."""
    found: set[str | None] = set()
    for node in walk(ast.parse(modules()[module].read_text()), when_loaded):
        if isinstance(node, ast.Import):
            found |= {resolve(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found |= {resolve(f"{node.module}.{alias.name}") for alias in node.names}
    return frozenset(name for name in found if name and name != module)


def walk(tree: ast.AST, when_loaded: bool) -> list[ast.AST]:
    """All nodes below; on request without function bodies and without what is there for types only."""
    if when_loaded and isinstance(tree, ast.FunctionDef):
        return []
    if when_loaded and isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
        return []
    return [tree, *(node for child in ast.iter_child_nodes(tree) for node in walk(child, when_loaded))]


def within(folder: str) -> list[str]:
    """A folder, or a module, and everything below it."""
    return [name for name in modules() if name == folder or name.startswith(f"{folder}.")]


def imported_folders(folder: str) -> set[str]:
    """The folders of the package that one of them imports, itself apart."""
    return {name.split(".")[0] for module in within(folder) for name in imports(module)} - {folder}


# Each folder and what it may import besides errors and system; the command line may import everything.
# An upper bound: an import that goes breaks nothing, one that comes must be among these.
_DATA = {"graphs", "kernels", "masks", "tasks"}
_LEARNING = {*_DATA, "models", "training", "suspects", "methods"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "masks": set(),
    "system": set(),
    "report": set(),
    "data": set(),
    "kernels": set(),
    "graphs": {"kernels", "masks"},
    "tasks": {"graphs", "masks"},
    "models": _DATA,
    "training": {*_DATA, "models"},
    "suspects": {*_DATA, "models", "training"},
    "attacks": {*_DATA, "models", "training"},
    "methods": {*_DATA, "models", "training", "suspects"},
    "registration": {"methods", "models", "tasks"},
    "tickets": {*_LEARNING, "report"},
    "analysis": {*_LEARNING, "attacks", "tickets"},
    "runs": {*_LEARNING, "tickets", "analysis", "data", "report"},
    "federated": {*_LEARNING, "tickets", "data"},
    "judge": {*_LEARNING, "tickets", "report", "runs"},
    "studies": {*_LEARNING, "tickets", "analysis", "report", "runs", "judge", "data", "deploy", "bench"},
    "deploy": {*_LEARNING, "tickets"},
    "serve": {"kernels", "tasks", "data", "deploy"},
    "pages": {*_LEARNING, "tickets", "analysis", "data", "report", "runs", "judge", "studies"},
    "ui": {"pages", "runs", "serve"},
    "bench": {*_LEARNING, "tickets", "data", "deploy", "runs"},
}
EVERYBODYS = {"errors", "system"}
TYPES_ONLY = {("training", "methods")}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_no_more_than_it_may(folder: str) -> None:
    assert within(folder), f"there is no {folder}"
    types = {below for above, below in TYPES_ONLY if above == folder}
    assert imported_folders(folder) <= MAY_IMPORT[folder] | EVERYBODYS | types


def test_every_folder_has_its_place() -> None:
    assert {name.split(".")[0] for name in modules() if name} - {"cli", "__main__"} == set(MAY_IMPORT)


def test_errors_and_system_import_nothing_above_them() -> None:
    assert imported_folders("errors") == set()
    assert imported_folders("system") <= {"errors"}


def test_what_folders_may_import_has_no_circle() -> None:
    list(TopologicalSorter(MAY_IMPORT).static_order())  # raises CycleError


def test_training_knows_methods_for_types_only() -> None:
    loaded = {name for module in within("training") for name in imports(module, when_loaded=True)}
    assert not any(name.startswith("methods") for name in loaded)


def test_only_the_command_line_imports_the_command_line() -> None:
    outside = [module for module in modules() if module.split(".")[0] not in ("cli", "__main__")]
    users = [module for module in outside if any(name.split(".")[0] == "cli" for name in imports(module))]
    assert users == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module: imports(module, when_loaded=True) for module in modules()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_reader_of_imports_reads_imports() -> None:
    assert {"masks", "graphs.messages", "errors"} <= imports("graphs.graph")
    assert "kernels._numba" in imports("kernels")  # inside a function
    assert "methods.base" in imports("training.loop")  # for types only
