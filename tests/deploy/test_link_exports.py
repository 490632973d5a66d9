"""A ticket for links, exported: pairs in, numbers out, in every format."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fastglt.cli.shared.pair_predictions import read_pairs
from fastglt.deploy.compiling import compile_network
from fastglt.deploy.exports import FORMATS, arrays, export
from fastglt.deploy.exports.pyg_folder import _module
from fastglt.deploy.predictor import Predictor
from fastglt.models import make
from fastglt.models.links import with_decoder
from fastglt.tasks import LinkPrediction
from tests.helpers import house, randn
from tests.tasks.links import link_task

PAIRS = torch.tensor([[0, 1], [2, 6], [5, 5]])


def predictor(name: str = "gcn", decoder: str = "mlp") -> Predictor:
    encoder = make(name, in_channels=6, hidden=8, out_channels=5, seed=1)
    network = with_decoder(encoder, {"name": decoder}, width=5, seed=1).eval().requires_grad_(False)
    graph = house()
    score = randn(graph.num_edges, seed=4).sigmoid()
    x = link_task().x
    found = compile_network(network, graph, type(x)(x.dense[:7]), score, layout="dense")
    return replace(found, task=LinkPrediction)


@pytest.mark.parametrize(
    ("to", "decoder"), [*((to, "mlp") for to in FORMATS), ("npz", "dot"), ("pyg", "dot")]
)  # tracing takes seconds, and once is enough
def test_what_was_written_gives_the_same_for_any_pairs(tmp_path: Path, to: str, decoder: str) -> None:
    made, path = predictor(decoder=decoder), tmp_path / f"ticket{FORMATS[to].suffix}"
    assert export(made, path, to=to).max_difference < 1e-5
    expected = made.network(made.x, made.graph, made.score, PAIRS)
    torch.testing.assert_close(FORMATS[to].read(path, made.x.dense, PAIRS), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["gin", "gat"])
@pytest.mark.parametrize("to", ["npz", "pyg"])
def test_other_backbones(tmp_path: Path, to: str, name: str) -> None:
    assert export(predictor(name), tmp_path / f"ticket{FORMATS[to].suffix}", to=to).max_difference < 1e-5


@pytest.mark.parametrize(
    "text",
    [
        "source,target\n0,1\n2,6\n",
        "\ufeffsource, target\r\n0, 1\r\n\r\n2, 6\r\n",  # as spreadsheets write it
        '"source","target","year"\n"0","1","2017"\n"2","6","2018"\n',
        "0,1\n2,6",
    ],
)
def test_the_folder_runs_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """With every file of pairs that `fastglt predict` reads."""
    made = predictor()
    export(made, tmp_path / "links", to="pyg")
    (tmp_path / "pairs.csv").write_text(text, encoding="utf-8", newline="")
    assert read_pairs(tmp_path / "pairs.csv", 7).tolist() == PAIRS[:2].tolist()
    monkeypatch.setattr(sys, "argv", ["model.py", str(tmp_path / "pairs.csv")])
    with _module(tmp_path / "links" / "model.py") as module:
        module.main()
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["0", "1"], ["2", "6"]]
    np.testing.assert_allclose(
        [float(row[2]) for row in rows], made.logits(PAIRS[:2]).sigmoid().squeeze(1), atol=1e-4
    )


def test_the_arrays_are_enough(tmp_path: Path) -> None:
    made = predictor()
    export(made, tmp_path / "a.npz", to="npz")
    with np.load(tmp_path / "a.npz") as file:
        found = arrays.link_scores(dict(file), PAIRS.numpy())
    np.testing.assert_allclose(found, made.logits(PAIRS), atol=1e-5)
