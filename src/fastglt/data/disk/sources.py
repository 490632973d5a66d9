"""From what the user names as a source to a stream of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastglt.data.disk.layout import is_prepared
from fastglt.data.disk.more_streams import of_ogb, of_parquet
from fastglt.data.disk.streams import Stream, of_arrays, of_csv, of_dataset
from fastglt.data.ogb_files import OGBFiles
from fastglt.errors import InputError


def open_stream(name: str, load: Callable[[], object]) -> Stream:
    """A stream of files where that is possible; of what `load` has in memory otherwise."""
    stream = _of_files(name)
    if stream is not None:
        return stream
    from fastglt.data.base import Dataset

    dataset = load()
    if not isinstance(dataset, Dataset) or "y" not in dataset.tensors:
        raise InputError(f"a graph to prepare must have labels of nodes (got '{name}', which has links)")
    return of_dataset(dataset)


def _of_files(name: str) -> Stream | None:
    path = Path(name).expanduser()
    for suffix, make in ((".csv", of_csv), (".parquet", of_parquet)):
        first, plus, second = name.partition(f"{suffix}+")
        if plus and not path.exists():
            edges = Path(f"{first}{suffix}").expanduser()
            return make(edges, Path(second).expanduser(), edges.name)
        if path.is_dir() and (path / f"edges{suffix}").exists():
            return make(path / f"edges{suffix}", path / f"nodes{suffix}", f"{path.resolve().name}{suffix}")
        if path.suffix.lower() == suffix:
            return make(path, path.with_name(f"nodes{suffix}"), path.name)
    if is_prepared(path):
        raise InputError(f"a source must not be prepared already (got '{name}'); use it as it is")
    files = OGBFiles.at(path)
    if files is not None:
        return of_ogb(files)
    is_arrays = path.is_dir() and (path / "edge_index.npy").is_file()
    if is_arrays or (path.suffix.lower() == ".npz" and path.is_file()):
        return of_arrays(path)
    return None
