"""An ordinary PyG model and its `Data`: a folder with both in safetensors and the code that puts them together."""

import ast
import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError
from fastglt.system.seeds import own_random_state

FIRST = "model.safetensors"  # to be written
FILES = {FIRST, "data.safetensors", "model.py"}
_LOADER, _LINKS = (Path(__file__).with_name(name) for name in ("pyg_model.py", "pyg_links.py"))  # how model.py ends


@torch.no_grad()
def make(predictor: Predictor) -> dict[str, bytes]:
    """The three files."""
    with own_random_state(torch.device("cpu")):  # a twin that is built for its names draws weights
        form = predictor.network.pyg_form(predictor.graph, predictor.score)
    if form is None:
        raise InputError(
            f"pyg is for fastglt's own backbones that have a PyG form (got {predictor.network.described}); "
            "a user's model is a PyG model already: load ticket.weights into it and use ticket.prune(data)"
        )
    about = {"kind": form.kind, "arguments": json.dumps(form.arguments)}
    code = [_LOADER.read_text(), form.code.read_text()]
    if form.decoder is not None:
        about["decoder"] = json.dumps(form.sizes)
        code = [_LINKS.read_text(), form.code.read_text(), form.decoder.read_text()]
    messages = {"edge_index": form.edge_index, "edge_weight": form.edge_weight}
    data = {"x": predictor.x.dense, **messages, **predictor.labels}
    return {
        FIRST: save({name: _own(value) for name, value in form.state.items()}, metadata=about),
        "data.safetensors": save({name: _own(value) for name, value in data.items()}),
        "model.py": _joined(*code).encode(),
    }


def read(path: Path, x: Tensor, *pairs: Tensor) -> Tensor:
    """The outputs from the folder, by the code that is in it."""
    with _module(path / "model.py") as module, torch.no_grad():
        model, data = module.load(path)
        found: Tensor = model(data.x, data.edge_index, data.edge_weight, *pairs)
    return found


def _joined(loader: str, *networks: str) -> str:
    """One file: the loader's text and imports, those that the networks need besides, the networks, the loader."""
    (text, imports, rest), *others = map(_parts, (loader, *networks))
    lines = [line for part in (imports, *(more for _, more, _ in others)) for line in part.splitlines()]
    every = "\n".join(dict.fromkeys(lines))
    return "\n\n\n".join([f"{text}\n\n{every}", *(classes for _, _, classes in others), rest]) + "\n"


def _parts(source: str) -> tuple[str, str, str]:
    """A module's docstring, its imports, and what comes then."""
    lines, (first, *body) = source.splitlines(), ast.parse(source).body
    after = next(node for node in body if not isinstance(node, ast.Import | ast.ImportFrom))
    parts = lines[: first.end_lineno], lines[first.end_lineno : after.lineno - 1], lines[after.lineno - 1 :]
    text, imports, rest = ("\n".join(part).strip() for part in parts)
    return text, imports, rest


@contextmanager
def _module(path: Path) -> Iterator[Any]:
    """A file as a module, for a while; PyG looks for its source."""
    name = "_exported_ticket"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyG's import warns
            spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def _own(value: Tensor) -> Tensor:
    return value.detach().cpu().clone(memory_format=torch.contiguous_format)
