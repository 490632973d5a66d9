"""What tells runs apart that would look alike in a list."""

from pathlib import Path

import numpy as np
import pytest

from fastglt.cli.shared.apart import apart
from tests.cli.conftest import Cli

RUN = ["--oneshot-epochs", "1", "--interval", "1", "--threads", "1", "--quiet"]


def test_runs_that_look_alike_get_columns_that_differ(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = np.arange(40)
    for folder, step in (("one", 1), ("two", 3)):
        Path(folder).mkdir()
        edges = np.stack([nodes, (nodes + step) % 40])
        np.savez(f"{folder}/g.npz", edge_index=edges, x=np.eye(2, dtype=np.float32)[nodes % 2], y=nodes % 2)
    find = ("find", *RUN, "--dataset")
    assert cli(*find, "one/g.npz", "--hidden", 4, "--denoise-epochs", 2, "--out", "a").code == 0
    assert "hidden" not in cli("runs").out, "nothing looks like another"
    for arguments in (
        ("one/g.npz", "--hidden", 6, "--denoise-epochs", 2, "--out", "b"),
        ("one/g.npz", "--hidden", 4, "--denoise-epochs", 3, "--out", "c"),
        ("two/g.npz", "--hidden", 4, "--denoise-epochs", 2, "--out", "d"),
    ):
        assert cli(*find, *arguments).code == 0
    listed = cli("runs", "--kind", "ticket").out.splitlines()
    assert listed[0].split()[-4:] == ["hidden", "epochs", "graph", "file"]
    assert [line.split()[-3:] for line in listed[2:]] == [
        ["4", "1+2", "one/g.npz"],
        ["6", "1+2", "one/g.npz"],
        ["4", "1+3", "one/g.npz"],
        ["4", "1+2", "two/g.npz"],
    ]
    dense = cli("runs", "--kind", "dense").out.splitlines()
    assert [line.split()[-3:-1] for line in dense[2:]] == [["4", "3"], ["6", "3"], ["4", "4"], ["4", "3"]]


def test_a_graph_whose_folder_is_gone_has_a_digest() -> None:
    rows = [{"folder": "/nowhere", "ticket": None, "settings": {"graph": digit * 64}} for digit in "ab"]
    assert apart(rows, lambda row: 0) == {"graph file": ["aaaaaaaa", "bbbbbbbb"]}
    assert apart(rows, lambda row: row["settings"]["graph"]) == {}
