import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastglt.data import load, loading
from fastglt.errors import InputError, MachineError


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown dataset \(got 'coral'\); did you mean 'cora'\? Known: "):
        load("coral")
    with pytest.raises(InputError, match=r"unknown dataset \(got ''\)"):
        load("  ")


def test_names_ignore_case_and_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("Digits").name == "digits"
    with pytest.raises(InputError, match="no such file"):
        load("./digits")


@pytest.mark.parametrize("name", ["digits", "synthetic:nodes=60"])
def test_a_named_graph_is_not_directed(name: str) -> None:
    with pytest.raises(InputError, match="directed is for graphs from files"):
        load(name, directed=True)


def test_what_was_read_as_directed_says_so(tmp_path: Path) -> None:
    """Its edges alone may not: here each goes both ways."""
    np.savez(tmp_path / "mine.npz", edge_index=[[0, 1], [1, 0]], x=np.eye(3), y=[0, 1, 1])
    assert load(str(tmp_path / "mine.npz"), directed=True).direction == {"directed": True}
    for name in (str(tmp_path / "mine.npz"), "synthetic:nodes=60"):
        assert load(name).direction == {}


def test_a_negative_split_seed_is_refused() -> None:
    with pytest.raises(InputError, match=r"split_seed must be 0 or more \(got -1\)"):
        load("digits", split_seed=-1)


def test_a_path_the_system_refuses() -> None:
    with pytest.raises(MachineError, match=r"could not be read \(got .*File name too long"):
        load("a" * 300 + ".npz")


def test_too_large_for_memory() -> None:
    with pytest.raises(MachineError, match=r"does not fit into this machine's memory \(got: it takes about"):
        load("synthetic:nodes=1000000000,features=1000000,edges=1")


def test_importing_is_cheap() -> None:
    heavy = "{'sklearn', 'torch_geometric.datasets'}"
    code = f"import sys, fastglt.data; print({heavy} & set(sys.modules))"
    folder = Path(loading.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
