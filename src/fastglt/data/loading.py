"""From what the user typed to a dataset."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from fastglt.data.base import Dataset
from fastglt.data.disk.layout import SUFFIX, is_prepared
from fastglt.data.disk.opening import load_prepared
from fastglt.data.files import load_file
from fastglt.data.named import NAMED, data_root, known_name
from fastglt.data.ogb import split_recipe
from fastglt.data.ogb_files import OGBFiles
from fastglt.data.ogb_links import TASK
from fastglt.data.poisoned import PoisonedGraph
from fastglt.data.synthetic import SyntheticGraph
from fastglt.errors import InputError, MachineError, unknown_name
from fastglt.system.process import is_out_of_memory

RECIPES: dict[str, type[SyntheticGraph | PoisonedGraph]] = {"synthetic": SyntheticGraph, "poisoned": PoisonedGraph}


def load(name: str, *, root: Path | str | None = None, split_seed: int = 0, directed: bool = False) -> Dataset:
    """The dataset of that name, recipe or path.

    `root` (or `FASTGLT_DATA`) is a folder of raw files to look in first; nothing is written there.
    `split_seed` moves the split where it is not fixed. With `directed`, a graph from a file is not
    symmetrised; the others are undirected.
    """
    if split_seed < 0:
        raise InputError(f"split_seed must be 0 or more (got {split_seed})")
    try:
        return _load(name.strip(), data_root(root), split_seed, directed)
    except OSError as error:
        raise MachineError(f"{name} could not be read (got {error}); check the path and its permissions") from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise MachineError(
            f"{name} does not fit into this machine's memory (got: {error}); use a smaller graph"
        ) from error


def _load(name: str, root: Path | None, split_seed: int, directed: bool) -> Dataset:
    key, _, recipe = name.partition(":")
    if directed and not is_path(name):
        raise InputError(f"directed is for graphs from files; named ones are undirected (got '{name}')")
    if key.lower() in RECIPES and (recipe or key.lower() == "synthetic"):
        source = RECIPES[key.lower()].parse(recipe)
        return source.parts(root, split_seed).dataset(name=str(source), metric="accuracy")
    known = known_name(name)
    if known is not None:  # a folder of the same name is reached as ./name
        named = NAMED[known]
        return named.source.parts(root, split_seed).dataset(name=known, metric=named.metric)
    if is_path(name) and is_prepared(Path(name).expanduser()):
        return load_prepared(Path(name).expanduser(), split_seed=split_seed, directed=directed)
    if is_path(name):
        return replace(load_file(name, split_seed=split_seed, directed=directed), directed=directed)
    raise unknown_name("dataset", name, NAMED)


def intended_task(name: str) -> str | None:
    """The task that a dataset is for, as far as its name or the names of its files tell; nothing is read."""
    known = known_name(name.strip())
    if known is not None:
        return NAMED[known].task
    files = OGBFiles.at(Path(split_recipe(name.strip())[0]).expanduser()) if is_path(name.strip()) else None
    return TASK if files is not None and files.kind == "links" else None


def is_path(name: str) -> bool:
    """Whether a name stands for a user's file or folder, and for no graph with a name or a recipe."""
    if known_name(name) is not None or name.partition(":")[0].lower() in RECIPES:
        return False
    name, _ = split_recipe(name)
    separators = [sep for sep in (os.sep, os.altsep) if sep]
    looks_like_one = any(sep in name for sep in separators) or name.lower().endswith(
        (".npz", ".csv", ".zip", ".parquet", SUFFIX)
    )
    return looks_like_one or os.path.exists(name)
