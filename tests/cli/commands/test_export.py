"""`fastglt export`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fastglt.data import load
from fastglt.deploy.exports import FORMATS, arrays
from tests.cli.conftest import TINY, Cli


@pytest.fixture
def run(find: Cli, tmp_path: Path) -> Path:
    """The folder of a finished run."""
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


@pytest.mark.parametrize("to", FORMATS)
def test_every_format(cli: Cli, run: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / f"ticket{FORMATS[to].suffix}"
    found = cli("export", run, "--to", to, "--out", out, "--json").document
    assert found["max_difference"] < 1e-5
    assert found["bytes"] == sum(Path(path).stat().st_size for path in found["files"])
    names = ["model.safetensors", "data.safetensors", "model.py"] if to == "pyg" else [out.name]
    assert [Path(path).name for path in found["files"]] == names
    if to == "pyg":
        data, own = load_file(out / "data.safetensors"), load(TINY).tensors
        for name in ("y", "train_mask", "val_mask", "test_mask"):
            assert torch.equal(data[name], own[name])


def test_what_is_written_predicts_the_same(cli: Cli, run: Path, tmp_path: Path) -> None:
    text = cli("export", run, "--to", "npz", "--out", tmp_path / "a.npz").out
    assert f"{tmp_path / 'a.npz'}  {(tmp_path / 'a.npz').stat().st_size:,} bytes" in text
    assert "differ from the masked network's by at most" in text
    predicted = cli("predict", run, "--json").document["predictions"]
    with np.load(tmp_path / "a.npz") as file:
        assert arrays.scores(dict(file)).argmax(1).tolist() == [row["class"] for row in predicted]


def test_a_folder_with_something_else_is_left_alone(cli: Cli, run: Path, tmp_path: Path) -> None:
    own = tmp_path / "project"
    own.mkdir()
    for gone in ("model.py", "data.safetensors", ""):  # an empty folder, then what a kill left, then a whole export
        assert cli("export", run, "--to", "pyg", "--out", own).code == 0
        (own / gone).unlink() if gone else None
    for name in ("model.safetensors", "data.safetensors"):
        (own / name).unlink()
    (own / "model.py").write_text("mine")
    for folder in (own, run):
        result = cli("export", run, "--to", "pyg", "--out", folder)
        assert (result.code, "must be new, empty or of an earlier export" in result.err) == (2, True), result.err
    assert (own / "model.py").read_text() == "mine"


def test_wrong_requests(cli: Cli, tmp_path: Path) -> None:
    for arguments, message in (
        (("--to", "onxx", "--out", "a"), "unknown format (got 'onxx'); did you mean 'onnx'?"),
        (("--to", "npz", "--out", "ticket.safetensors"), "must be named ….npz (got 'ticket.safetensors')"),
        (("--to", "npz", "--out", "a.npz"), "not there"),
    ):
        result = cli("export", tmp_path / "run", *arguments)
        assert (result.code, message in result.err) == (2, True), result.err
