"""A ticket handed over: in formats that are read without fastglt, each compared with the masked network first.

>>> predictor = compile_ticket(ticket, data)  # doctest: +SKIP
>>> export(predictor, "cora.onnx", to="onnx").max_difference  # doctest: +SKIP
4.8e-07
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fastglt.deploy.exports import arrays, pyg_folder, traced
from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError, MachineError, unknown_name
from fastglt.system.modes import ordinary_mode
from fastglt.system.seeds import own_random_state
from fastglt.system.storage import disk_errors, write_atomically

_TOLERANCE = 1e-4  # of the largest score, or of 1


@dataclass(frozen=True, kw_only=True)
class Format:
    """A way to write a ticket, and to have class scores from what was written."""

    suffix: str  # of its one file; empty: a folder
    make: Callable[[Predictor], Mapping[str, bytes]]  # each file's name and content
    read: Callable[..., Tensor]  # from the file or folder and the features; for links, and pairs


FORMATS: dict[str, Format] = {
    "pyg": Format(suffix="", make=pyg_folder.make, read=pyg_folder.read),
    "torch": Format(suffix=".pt2", make=traced.make_torch, read=traced.read_torch),
    "onnx": Format(suffix=".onnx", make=traced.make_onnx, read=traced.read_onnx),
    "npz": Format(suffix=".npz", make=arrays.make, read=arrays.read),
}


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    files: dict[str, int]  # bytes of each path
    max_difference: float  # of any class score, to the masked network's


@ordinary_mode()
def export(predictor: Predictor, path: str | Path, *, to: str) -> Exported:
    """Write a compiled ticket as "pyg" (a folder), "torch", "onnx" or "npz" (a file).

    What was written is read again, in a place of its own, and compared with the masked network; only then does it
    come to `path`.
    """
    chosen, path = check(to, Path(path)), Path(path)
    contents = chosen.make(predictor)
    difference = _difference(predictor, chosen, contents)
    targets = {path if chosen.suffix else path / name: content for name, content in contents.items()}
    for target, content in targets.items():
        write_atomically(target, content)
    return Exported(
        files={str(target): len(content) for target, content in targets.items()}, max_difference=difference
    )


def check(to: str, path: Path) -> Format:
    """The format of that name, if the path's ending is its."""
    if to not in FORMATS:
        raise unknown_name("format", to, FORMATS)
    suffix = FORMATS[to].suffix
    if suffix and path.suffix != suffix:
        raise InputError(f"a file for {to} must be named …{suffix} (got '{path}')")
    if not suffix:
        _refuse_others_folder(path)
    return FORMATS[to]


def _refuse_others_folder(path: Path) -> None:
    """What is written over is an earlier export, never somebody's own model.py."""
    with disk_errors(path, "read"):
        there = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    unfinished = there <= pyg_folder.FILES and pyg_folder.FIRST in there
    if there and not there >= pyg_folder.FILES and not unfinished:
        raise InputError(f"the folder must be new, empty or of an earlier export (got '{path}', which is neither)")


def _difference(predictor: Predictor, chosen: Format, contents: Mapping[str, bytes]) -> float:
    """How far the scores of what was written are from the masked network's; too far is refused."""
    with disk_errors(Path(tempfile.gettempdir()), "write to"), tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            (Path(folder) / name).write_bytes(content)
        path = Path(folder) / next(iter(contents)) if chosen.suffix else Path(folder)
        pairs = predictor.some_pairs
        given = [predictor.x.dense.cpu(), *([] if pairs is None else [pairs.cpu()])]
        with own_random_state(torch.device("cpu")), torch.no_grad():  # a network that is built draws weights first
            found = chosen.read(path, *given)
    with torch.no_grad():
        expected = predictor.network(predictor.x, predictor.graph, predictor.score, pairs).cpu()
    difference = float((found - expected).abs().max())
    if not difference <= _TOLERANCE * max(1.0, float(expected.abs().max())):
        raise MachineError(f"an export must give the masked network's scores (got {difference:.1e} apart)")
    return difference
