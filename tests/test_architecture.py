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


def within(layer: str) -> list[str]:
    """A module and everything below it."""
    return [name for name in modules() if name == layer or name.startswith(f"{layer}.")]


def imported_layers(layer: str) -> set[str]:
    """The top-level parts of the package that a layer imports, itself apart."""
    return {name.split(".")[0] for module in within(layer) for name in imports(module)} - {layer}


# Each part of the package, and what it imports; the command line may import everything.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "seeds": set(),
    "process": set(),
    "modes": set(),
    "tables": set(),
    "wording": set(),
    "container": set(),
    "provenance": set(),
    "storage": {"errors"},
    "store": {"errors", "provenance", "storage"},
    "entries": {"store"},
    "data": {"errors", "storage"},
    "kernels": {"errors", "storage"},
    "optimizer": {"kernels"},
    "masks": {"errors"},
    "schedules": {"errors"},
    "transport": set(),
    "messages": {"kernels"},
    "graph": {"errors", "kernels", "masks", "messages"},
    "features": {"kernels"},
    "forests": {"seeds"},
    "scores": {"errors", "features", "graph", "kernels", "schedules", "seeds"},
    "task": {"errors", "features", "graph", "seeds"},
    "models": {"errors", "features", "graph", "kernels", "masks", "messages", "process", "seeds"},
    "records": {"masks"},
    "hooks": {"training"},  # for types only
    "training": {  # methods for types only
        *("distillation", "errors", "hooks", "kernels", "masks", "methods", "models", "optimizer", "records"),
        *("seeds", "task"),
    },
    "distillation": set(),
    "outputs": {"models", "records", "training"},
    "checkpoint": {"container", "masks", "records", "training"},
    "methods": {
        *("distillation", "errors", "forests", "hooks", "masks", "models", "outputs", "records", "schedules"),
        *("scores", "seeds", "task", "training", "transport"),
    },
    "phases": {"distillation", "masks", "methods", "models", "outputs", "records", "seeds", "task", "training"},
    "ticket": {"errors", "features", "graph", "masks", "records", "task", "ticket_file"},  # its file on demand
    "ticket_file": {"container", "errors", "masks", "models", "storage", "ticket"},
    "fitting": {"errors", "masks", "models", "seeds", "task", "ticket"},
    "find": {
        *("errors", "fitting", "masks", "methods", "models", "modes", "phases", "provenance", "records", "task"),
        *("ticket", "training"),
    },
    "run_folder": {
        *("checkpoint", "container", "errors", "kernels", "phases", "records", "storage", "training"),
    },
    "judge": {
        *(
            "container",
            "distillation",
            "errors",
            "fitting",
            "graph",
            "masks",
            "methods",
            "models",
            "modes",
            "phases",
        ),
        *("scores", "seeds", "store", "task", "ticket", "training", "wording"),
    },
    "transfer": {"errors", "find", "fitting", "masks", "methods", "models", "modes", "phases", "task", "ticket"},
    "metrics": {"container", "find", "judge", "masks", "methods", "models", "phases", "task", "ticket"},
    "experiment": {
        *("data", "distillation", "errors", "find", "fitting", "kernels", "methods", "metrics", "models", "phases"),
        *("process", "run_folder", "seeds", "task", "training"),
    },
    "batch": {"entries", "errors", "experiment", "phases", "process", "run_folder", "storage", "store"},
    "compare": {"batch", "judge", "phases", "schedules", "tables", "wording"},
    "extreme": {"errors", "judge", "methods", "phases", "tables", "wording"},
    "serve": {"data", "deploy", "errors", "kernels"},
    "deploy": {
        *("errors", "features", "fitting", "graph", "kernels", "messages", "models", "modes", "process", "seeds"),
        *("storage", "task", "ticket"),
    },
    "paper": {"methods"},
    "bench": {
        *("data", "deploy", "errors", "experiment", "kernels", "methods", "models", "process", "provenance"),
        *("seeds", "storage", "task", "ticket", "ticket_file", "training"),
    },
    "bench.stock": {"data", "errors"},  # a PyG script has no more
}


@pytest.mark.parametrize("layer", ALLOWED)
def test_a_layer_imports_just_what_is_listed(layer: str) -> None:
    assert within(layer), f"there is no {layer}"
    assert imported_layers(layer) == ALLOWED[layer]


def test_every_layer_has_its_place() -> None:
    assert {name.split(".")[0] for name in modules() if name} - {"cli", "__main__"} == {
        layer for layer in ALLOWED if "." not in layer
    }


def test_what_layers_may_import_has_no_circle() -> None:
    """Types and what is imported on demand apart."""
    apart = {
        *(("hooks", "training"), ("training", "methods")),
        ("ticket", "ticket_file"),
    }
    graph = {
        layer: {below for below in allowed if (layer, below) not in apart} for layer, allowed in ALLOWED.items()
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_training_knows_methods_for_types_only() -> None:
    assert not any(name.startswith("methods") for name in imports("training", when_loaded=True))


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
