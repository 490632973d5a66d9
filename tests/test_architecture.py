"""Imports point one way: values know nothing of training, data nothing of models, nobody of the command line."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fastglt

ROOT = Path(fastglt.__file__).parent
VALUES = ("errors", "masks", "schedules", "seeds", "scores", "graph", "features", "kernels", "messages")


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


def within(layer: str) -> list[str]:
    """A module and everything below it."""
    return [name for name in modules() if name == layer or name.startswith(f"{layer}.")]


def imported_layers(layer: str) -> set[str]:
    """The top-level parts of the package that a layer imports, itself apart."""
    return {name.split(".")[0] for module in within(layer) for name in imports(module)} - {layer}


@pytest.mark.parametrize(
    ("layer", "allowed"),
    [
        ("errors", set()),
        ("seeds", set()),
        ("kernels", {"errors"}),
        ("masks", {"errors"}),
        ("schedules", {"errors"}),
        ("messages", {"kernels"}),
        ("graph", {"errors", "masks", "messages"}),
        ("features", {"kernels"}),
        ("scores", {"graph", "schedules", "seeds"}),
        ("task", {"errors", "features", "graph"}),
        ("data", {"errors"}),
        ("models", {"errors", "features", "graph", "kernels", "masks", "messages", "seeds"}),
        ("records", {"masks"}),
        (
            "training",
            {"errors", "masks", "models", "records", "seeds", "task", "methods"},
        ),  # methods for types only
        ("container", set()),
        ("storage", {"errors"}),
        ("checkpoint", {"container", "masks", "records", "training"}),
        ("methods", {"errors", "masks", "schedules", "scores", "seeds", "task", "training"}),
        ("phases", {"masks", "methods", "models", "records", "task", "training"}),
        (
            "ticket",
            {"errors", "features", "graph", "masks", "records", "task", "ticket_file"},
        ),  # its file on demand
        ("fitting", {"errors", "masks", "models", "task", "ticket"}),
        (
            "find",
            {
                "errors",
                "fitting",
                "masks",
                "methods",
                "models",
                "phases",
                "records",
                "seeds",
                "task",
                "ticket",
                "training",
            },
        ),
        ("run_folder", {"checkpoint", "container", "errors", "phases", "records", "storage", "training"}),
        ("judge", {"errors", "fitting", "masks", "methods", "models", "phases", "task", "ticket"}),
        ("bench.stock", {"data", "errors"}),  # a PyG script has no more
        (
            "bench",
            {
                "data",
                "errors",
                "experiment",
                "find",
                "kernels",
                "methods",
                "models",
                "process",
                "seeds",
                "storage",
                "task",
                "training",
            },
        ),
    ],
)
def test_a_layer_imports_only_what_lies_below(layer: str, allowed: set[str]) -> None:
    assert within(layer), f"there is no {layer}"
    assert imported_layers(layer) <= allowed


def test_training_knows_methods_for_types_only() -> None:
    assert not any(name.startswith("methods") for name in imports("training", when_loaded=True))


@pytest.mark.parametrize("value", VALUES)
def test_values_never_import_what_uses_them(value: str) -> None:
    assert not imported_layers(value) & {"training", "methods", "find", "cli", "data", "judge", "models", "phases"}


def test_only_the_command_line_imports_the_command_line() -> None:
    outside = [module for module in modules() if module.split(".")[0] not in ("cli", "__main__")]
    users = [module for module in outside if any(name.split(".")[0] == "cli" for name in imports(module))]
    assert users == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module: imports(module, when_loaded=True) for module in modules()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_reader_of_imports_reads_imports() -> None:
    assert {"masks", "messages", "errors"} <= imports("graph")
    assert "kernels._numba" in imports("kernels")  # inside a function
    assert "methods.base" in imports("training")  # for types only
