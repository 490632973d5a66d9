"""A prepared graph is the graph it was made of, whatever the source; a kill and a flaw leave nothing half."""

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.ogb_folders import ARXIV, PROTEINS, write, zipped

from fastglt.data import Dataset, load
from fastglt.data.base import Parts, SplitMasks, seeded_split
from fastglt.data.disk import opening, prepare
from fastglt.data.disk.external_sort import Runs
from fastglt.data.disk.layout import Arrays, Manifest
from fastglt.data.disk.sources import open_stream
from fastglt.data.disk.streams import of_dataset
from fastglt.errors import InputError, MachineError
from fastglt.tasks.node_classification import NodeClassification

RNG = np.random.default_rng(0)
NODES, LISTED = 60, 300
EDGES = RNG.integers(NODES, size=(2, LISTED))  # repeats, both directions and self-loops among them
X, Y = RNG.normal(size=(NODES, 5)) * (RNG.random((NODES, 5)) < 0.5), RNG.integers(3, size=NODES)


def npz(folder: Path, **more: Any) -> Path:
    np.savez(folder / "mine.npz", edge_index=EDGES, x=X, y=Y, **more)
    return folder / "mine.npz"


def with_masks(folder: Path) -> Path:
    part = RNG.integers(3, size=NODES)
    return npz(folder, train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)


def csv(folder: Path) -> Path:
    rows = "".join(f"n{i},{'abc'[Y[i]]},{','.join(map(repr, X[i].tolist()))}\n" for i in range(NODES))
    (folder / "nodes.csv").write_text(f"id,label,{','.join('fghij')}\n{rows}")
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in EDGES.T))
    return folder / "edges.csv"


def weighted(folder: Path) -> Path:
    low, high = np.sort(EDGES, axis=0)
    return npz(folder, edge_weight=(low * NODES + high).astype(np.float64))


SOURCES: dict[str, Callable[[Path], Path]] = {
    "npz": npz,
    "masks": with_masks,
    "csv": csv,
    "weighted": weighted,
    "ogb": lambda folder: write(folder / "ogb", ARXIV),
    "zip": lambda folder: zipped(write(folder / "ogb", ARXIV), folder / "arxiv.zip"),
    "edge features": lambda folder: write(folder / "ogb", PROTEINS),
}


def make(source: str, out: Path, *, directed: bool = False, memory: int = 1, tell: Any = None) -> Manifest:
    return prepare.prepare(
        lambda: open_stream(source, lambda: load(source, directed=directed)),
        out,
        memory=memory,
        directed=directed,
        asked=source,
        tell=tell or (lambda line: None),
    )


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece that memory bounds has some dozens of numbers."""

    monkeypatch.setattr(prepare, "FEWEST", 64)
    monkeypatch.setattr("fastglt.data.disk.rows.FEWEST", 40)


def same(one: Dataset, other: Dataset) -> None:
    assert (one.name, one.metric, one.names, one.reversed_edges) == (
        other.name,
        other.metric,
        other.names,
        other.reversed_edges,
    )
    assert one.tensors.keys() == other.tensors.keys()
    for name, value in one.tensors.items():
        found = other.tensors[name]
        assert value.dtype == found.dtype
        assert torch.equal(torch.nan_to_num(value.to_dense()), torch.nan_to_num(found.to_dense())), name


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("kind", "directed"), [*((kind, False) for kind in SOURCES), *((kind, True) for kind in ("npz", "csv", "ogb"))]
)
def test_a_prepared_graph_is_the_graph_it_was_made_of(kind: str, directed: bool, tmp_path: Path) -> None:
    source, out = str(SOURCES[kind](tmp_path)), tmp_path / "graph.fgr"
    make(source, out, directed=directed)
    for seed in (0, 1):
        same(load(source, directed=directed, split_seed=seed), load(str(out), split_seed=seed))
    assert not list(tmp_path.glob("*.partial"))


def test_edges_may_be_stored_column_by_column_and_features_are_told_how(tmp_path: Path) -> None:
    for name, edges in (("rows", EDGES), ("columns", np.asfortranarray(EDGES))):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "mine.npz", edge_index=edges, x=X, y=Y)
        make(str(tmp_path / name / "mine.npz"), tmp_path / f"{name}.fgr")
    same(load(str(tmp_path / "columns.fgr")), load(str(tmp_path / "rows.fgr")))
    np.savez(tmp_path / "x.npz", edge_index=EDGES, x=np.asfortranarray(X), y=Y)
    with pytest.raises(InputError, match=r"row by row .*; save numpy\.ascontiguousarray\(x\) instead"):
        make(str(tmp_path / "x.npz"), tmp_path / "x.fgr")


def test_a_named_graph_too_with_its_split_seeds(tmp_path: Path) -> None:
    name = "synthetic:nodes=60,edges=100,classes=3"
    make(name, tmp_path / "graph.fgr")
    same(load(name, split_seed=3), load(str(tmp_path / "graph.fgr"), split_seed=3))


@pytest.mark.parametrize("counts", [(2, 3), None])
def test_how_a_split_was_drawn_is_found_out(counts: tuple[int, int] | None) -> None:
    thirds = SplitMasks(*(np.arange(NODES) % 3 == part for part in range(3)))
    masks = thirds if counts is None else seeded_split(Y, 0, train=counts[0], val=counts[1])
    parts = Parts(x=X.astype(np.float32), y=Y, edges=np.array([[0, 1], [1, 0]]), masks=masks)
    stream = of_dataset(parts.dataset(name="mine", metric="accuracy"))
    assert stream.split == ("by class 2 3" if counts else "given")
    assert (stream.masks is None) == (counts is not None)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("directed", [False, True])
def test_rows_and_fingerprints_are_those_that_a_graph_finds(
    directed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a large graph, whose rows are taken from the folder."""
    make(str(npz(tmp_path)), tmp_path / "graph.fgr", directed=directed)
    expected = NodeClassification.from_tensors(load(str(tmp_path / "mine.npz"), directed=directed).tensors)
    monkeypatch.setattr(opening, "LARGE", 1)
    dataset = load(str(tmp_path / "graph.fgr"))
    assert dataset.compressed is not None
    found = NodeClassification.from_tensors(dataset.tensors, compressed=dataset.compressed)
    assert found.digests == expected.digests
    assert found.x.num_nonzero == expected.x.num_nonzero
    (ours,), (theirs,) = (task.graph.hops(None, depth=1) for task in (found, expected))
    for name in ("indptr", "indices"):
        assert torch.equal(getattr(ours.csr, name), getattr(theirs.csr, name))
    assert torch.equal(ours.entry_edge.long(), theirs.entry_edge.long())
    assert torch.equal(ours.degree, theirs.degree)
    assert torch.equal(ours.looped, theirs.looped)
    assert torch.equal(found.graph.edges, expected.graph.edges)
    assert torch.equal(found.graph.edge_index, expected.graph.edge_index)
    assert torch.equal(found.graph.column_edge.long(), expected.graph.column_edge)
    found.graph.release()
    assert torch.equal(found.x.dense, expected.x.dense), "what was given back is read again"


def test_parquet_is_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (fastglt[parquet])")
    import pyarrow
    import pyarrow.parquet

    csv(tmp_path)
    columns = {name: X[:, at] for at, name in enumerate("fghij")}
    nodes = {"id": [f"n{i}" for i in range(NODES)], "label": ["abc"[y] for y in Y], **columns}
    ends = {name: [f"n{i}" for i in row] for name, row in zip(("source", "target"), EDGES, strict=True)}
    for name, table in (("nodes", nodes), ("edges", ends)):
        pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet")
    make(f"{tmp_path}/edges.parquet+{tmp_path}/nodes.parquet", tmp_path / "graph.fgr")
    expected, found = load(str(tmp_path / "edges.csv")), load(str(tmp_path / "graph.fgr"))
    assert found.name == "edges.parquet"
    assert found.names == expected.names
    assert all(torch.equal(value, found.tensors[name]) for name, value in expected.tensors.items())


def parquet(folder: Path, ends: dict[str, Any] | None = None, **columns: Any) -> str:
    """Six nodes on a line, called by their numbers, some columns other than usual."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (fastglt[parquet])")
    import pyarrow
    import pyarrow.parquet

    nodes = {"id": range(6), "label": [0, 1, 0, 1, 0, 1], "f": np.arange(6.0), **columns}
    edges = {"source": range(5), "target": range(1, 6), **(ends or {})}
    for name, table in (("nodes", nodes), ("edges", edges)):
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")
    return f"{folder}/edges.parquet+{folder}/nodes.parquet"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], *[[7.0, 8.0]] * 3]}, r"of one length \(got 2, 1, 3 in"),
        ({"f": [[1.0, 2.0], None, [4.0, 5.0, 6.0, 7.0], *[[7.0, 8.0]] * 3]}, r"of one length \(got 2, none, 4 in"),
        ({"label": [0.0, 1.0, float("nan"), 1.0, 0.0, 1.0]}, r"a label must name a class \(got 'nan'\)"),
        ({"ends": {"source": [0, 1.5, 2, 3, 4]}}, r"ends must be ids in .* \(got .*1.5"),
        ({"ends": {"weight": np.ones(5)}}, r"have no weights \(got a column 'weight'\)"),
    ],
)
def test_parquet_that_says_something_else_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    source = parquet(tmp_path, **changes)
    with pytest.raises(InputError, match=message):
        make(source, tmp_path / "graph.fgr")


def test_labels_of_parquet_are_those_of_csv(tmp_path: Path) -> None:
    labels = ["-a", "b", "-1", "", None, "b"]
    make(parquet(tmp_path, label=labels), tmp_path / "graph.fgr")
    found = load(str(tmp_path / "graph.fgr"))
    assert found.tensors["y"].tolist() == [0, 1, -1, -1, -1, 1]
    assert found.names == (tuple("012345"), ("-a", "b")), "else classes would go by other names"
    (tmp_path / "nodes.csv").write_text(
        "id,label,f\n" + "".join(f"{i},{y or ''},1\n" for i, y in enumerate(labels))
    )
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    assert load(str(tmp_path / "edges.csv")).names == found.names
    make(parquet(tmp_path, label=[1, 2, -3, 2, 1, 1]), tmp_path / "other.fgr")
    numbers = load(str(tmp_path / "other.fgr"))
    assert (numbers.names, numbers.tensors["y"].tolist()) == ((tuple("012345"), ("1", "2")), [0, 1, -1, 1, 0, 0])


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of sorted runs as they are added; the first time that there is a third, all is stopped."""
    add, found = Runs.add, list[int]()

    def fails(self: Runs, number: int, keys: Any) -> None:
        if number == 2 and 2 not in found:
            found.append(2)
            raise KeyboardInterrupt
        found.append(number)
        add(self, number, keys)

    monkeypatch.setattr(Runs, "add", fails)
    return found


@pytest.mark.usefixtures("small_pieces")
def test_killed_it_goes_on_and_half_a_graph_is_none(tmp_path: Path, added: list[int]) -> None:
    source, out = str(npz(tmp_path)), tmp_path / "graph.fgr"
    with pytest.raises(KeyboardInterrupt):
        make(source, out)
    assert not out.exists()
    with pytest.raises(InputError, match=r"a prepared graph must have a manifest.json \(got none, as of one that"):
        load(str(tmp_path / "graph.fgr.partial"))
    told: list[str] = []
    make(source, out, tell=told.append)
    assert told[0] == "goes on after: nodes"
    assert added == [0, 1, 2, 2, 3, 4], "sorted runs that are there are not sorted again"
    same(load(source), load(str(out)))
    with pytest.raises(InputError, match="is there already; remove it, or choose another --out"):
        make(source, out)


@pytest.mark.usefixtures("small_pieces")
def test_with_another_memory_runs_begin_elsewhere_and_all_is_begun_anew(tmp_path: Path, added: list[int]) -> None:
    source, out = str(npz(tmp_path)), tmp_path / "graph.fgr"
    with pytest.raises(KeyboardInterrupt):
        make(source, out)
    make(source, out, memory=100 * 64)
    assert added == [0, 1, 2, 0, 1, 2], "three runs of 100 edges"
    same(load(source), load(str(out)))


def test_another_source_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, whole = tmp_path / "graph.fgr", prepare._Preparation._finish
    monkeypatch.setattr(
        prepare._Preparation, "_finish", lambda self: (_ for _ in ()).throw(MachineError("stopped"))
    )
    with pytest.raises(MachineError, match="stopped"):
        make("synthetic:nodes=60,edges=90", out)
    monkeypatch.setattr(prepare._Preparation, "_finish", whole)
    make("synthetic:nodes=50,edges=90", out)
    same(load("synthetic:nodes=50,edges=90"), load(str(out)))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    make(str(npz(tmp_path)), tmp_path / "graph.fgr")
    return tmp_path / "graph.fgr"


def change_manifest(folder: Path, **changes: Any) -> None:
    found = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**found, **changes}))


def test_damage_is_one_clear_line_each(graph: Path) -> None:
    content = (graph / "x.npy").read_bytes()
    (graph / "x.npy").write_bytes(content[:-4])
    with pytest.raises(InputError, match=r"the prepared graph is damaged \(x.npy must have 1,328 bytes, got 1,324"):
        load(str(graph))
    (graph / "x.npy").unlink()
    with pytest.raises(InputError, match=r"x.npy must have 1,328 bytes, got no such file"):
        load(str(graph))
    (graph / "x.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match=r"damaged \(x.npy is not what its checksum says\); prepare it again"):
        Arrays(graph, Manifest.read(graph)).verify()
    change_manifest(graph, version=2)
    with pytest.raises(InputError, match=r"must be of version 1 \(got 2\); use a newer fastglt"):
        load(str(graph))
    for broken in ({"format": "other"}, {"version": 1, "nodes": "many"}, {"version": 1, "nodes": 60, "arrays": 3}):
        change_manifest(graph, **broken)
        with pytest.raises(InputError, match=r"damaged \(manifest.json is not what was written\)"):
            load(str(graph))
    (graph / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest.json is not what was written"):
        load(str(graph))
    with pytest.raises(InputError, match="no such folder; fastglt data prepare"):
        load(str(graph.with_name("other.fgr")))


def test_what_was_changed_in_a_large_graph_is_found_when_it_is_opened(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were written after the manifest are compared with their checksums: once, if they are right."""
    monkeypatch.setattr(opening, "_CHEAP", 0)
    compared, verify = list[list[str]](), Arrays.verify

    def noted(arrays: Arrays, names: Iterable[str] | None = None) -> None:
        compared.append(list(names or []))
        verify(arrays, names)

    monkeypatch.setattr(Arrays, "verify", noted)
    made, later = (graph / "manifest.json").stat().st_mtime_ns, time.time_ns() + 10**9
    load(str(graph))
    os.utime(graph / "y.npy", ns=(later, later))  # as of a copy
    load(str(graph))
    load(str(graph))
    assert compared == [[], ["y"], []]
    os.utime(graph / "manifest.json", ns=(made, made))
    content = (graph / "y.npy").read_bytes()
    (graph / "y.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(graph / "y.npy", ns=(later, later))
    with pytest.raises(InputError, match=r"damaged \(y.npy is not what its checksum says\); prepare it again"):
        load(str(graph))


def test_bad_input(graph: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="directed is decided when a graph is prepared"):
        load(str(graph), directed=True)
    with pytest.raises(InputError, match="must not be prepared already"):
        make(str(graph), tmp_path / "again.fgr")
    with pytest.raises(InputError, match=r"must end in .fgr"):
        make("digits", tmp_path / "graph")
    np.savez(tmp_path / "mine.npz", edge_index=EDGES, x=np.where(X > 1, np.nan, X), y=Y)
    with pytest.raises(InputError, match=r"features must be finite in float32 \(got nan at node \d+, feature \d\)"):
        make(str(tmp_path / "mine.npz"), tmp_path / "other.fgr")
    for wrong in ("much", "1KB", ""):
        with pytest.raises(InputError, match="memory must be"):
            prepare.read_memory(wrong)


@pytest.mark.parametrize("as_folder", [False, True])
def test_arrays_of_other_names_are_refused(as_folder: bool, tmp_path: Path) -> None:
    source = npz(tmp_path, train_masks=np.ones(NODES, dtype=np.bool_))
    if as_folder:
        for name, array in np.load(source).items():
            np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(InputError, match=r"arrays may be edge_index, x, .* \(got 'train_masks'\)"):
        make(str(tmp_path if as_folder else source), tmp_path / "graph.fgr")


@pytest.mark.parametrize("edges", [[[0, 1]], [[0, 1], [2, 1], [1, 2], [3, 3], [4, 0], [0, 3]]])
def test_an_edge_list_of_another_length_than_was_said_is_refused(edges: list[list[int]], tmp_path: Path) -> None:
    source = str(write(tmp_path / "ogb", ARXIV, edge=edges))
    with pytest.raises(InputError, match=rf"edge.csv.gz must have 5 rows, as .* \(got {len(edges)}\)"):
        make(source, tmp_path / "graph.fgr")
    assert not (tmp_path / "graph.fgr").exists()


def test_more_numbers_than_a_piece_holds_are_sorted(tmp_path: Path) -> None:
    rng, runs, every = np.random.default_rng(1), Runs(tmp_path / "runs"), list[int]()
    for number in range(7):
        keys = rng.integers(500, size=rng.integers(0, 300))
        every += keys.tolist()
        runs.add(number, keys)
    pieces = list(runs.merged(100))
    assert np.concatenate(pieces).tolist() == sorted(set(every))
    assert max(map(len, pieces)) <= 200
    assert len(pieces) > 3
