"""``--model module:Class`` with a user's own PyG model."""

import json
import sys
from pathlib import Path

import pytest

from fastglt.models import BACKBONES

from .conftest import SHORT, TINY, Cli

QUIET = ("--quiet", "--json")
FILE = '''
"""My models."""
import torch
from torch import nn
from torch_geometric.nn import SAGEConv

class Net(nn.Module):
    """Two rounds of GraphSAGE."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        dropout: float = 0.5,  # of the hidden units
        norm: str | None = None,
    ):
        super().__init__()
        self.one, self.two = SAGEConv(in_channels, hidden_channels), SAGEConv(hidden_channels, out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, edge_index):
        return self.two(self.dropout(self.one(x, edge_index).relu()), edge_index)
'''


def test_find_evaluate_show_and_predict(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    out = cli("models", "mine:Net").out
    for part in ("pyg-net", "My models.", "Two rounds of GraphSAGE.", "of the hidden units"):
        assert part in out
    given = ("--dataset", TINY, *SHORT, "--model", "mine:Net", "--model-option", "dropout=0.2")
    made = cli("find", *given, "--out", "a", *QUIET)
    assert made.code == 0, made.err
    settings = json.loads((tmp_path / "a" / "run.json").read_text())["settings"]
    assert (settings["model"]["class"], settings["model"]["dropout"]) == ("mine:Net", 0.2)
    assert len(settings["model_code"]) == 64
    told = cli("find", *given, "--out", "a", "--quiet").out
    assert "  fastglt --use mine:Net evaluate a " in told, "what is told to run next can be run"
    del BACKBONES["pyg-net"]
    refused = cli("evaluate", "a", "--seeds", "0")
    assert (refused.code, "fastglt --use module:Class" in refused.err) == (2, True)
    assert "(got 'pyg-net' of mine:Net)" in refused.err
    judged = cli("--use", "mine:Net", "evaluate", "a", "--dataset", TINY, "--seeds", "0-1", *QUIET)
    assert judged.document["ticket_scores"][0] == made.document["isolated_test"]
    for command in (("show", "a", "--json"), ("predict", "a", "--dataset", TINY, "--out", "p.csv")):
        assert cli("--use", "mine:Net", *command).code == 0
    assert (tmp_path / "p.csv").exists()
    (tmp_path / "mine.py").write_text(FILE.replace("relu()", "tanh()"))  # other code is another run
    monkeypatch.delitem(sys.modules, "mine")
    del BACKBONES["pyg-net"]
    changed = cli("find", *given, "--out", "a", *QUIET)
    assert (changed.code, "the model's code is another there" in changed.err) == (2, True)
