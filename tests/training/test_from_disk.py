"""Training by parts from a graph on disk: the numbers are those of the same graph in memory."""

from pathlib import Path

import pytest
import torch

from fastglt.data import load
from fastglt.data.disk import opening, prepare
from fastglt.data.disk.sources import open_stream
from fastglt.graphs.strips import Strips
from fastglt.models import build
from fastglt.system import scratch
from fastglt.tasks.node_classification import NodeClassification
from fastglt.training import by_parts
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe

SOURCE = "synthetic:nodes=120,edges=500,features=12,classes=3"


def trained(task: NodeClassification, partition: str) -> Training:
    shape = {"in_channels": 12, "hidden": 8, "out_channels": 3, "dropout": 0.5, "seed": 0}
    recipe = Recipe(lr=0.01, parts=5, partition=partition, parts_per_step=2)
    training = Training(build({"name": "gcn", **shape}), task, recipe, seed=0)
    training.begin_stage("soft", soft_edges=True, l1=(1e-3, 0.0))
    for _ in range(3):
        training.run_epoch(Hooks())
    return training


@pytest.mark.parametrize("partition", ["blocks", "random"])
def test_a_graph_on_disk_is_trained_as_in_memory(
    partition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows from files, hidden rows in a file, strips of a few messages, pages given back all the time."""
    monkeypatch.setattr(opening, "LARGE", 1)
    monkeypatch.setattr(scratch, "LARGE", 1)
    monkeypatch.setattr(scratch, "MAPPED", 100)
    monkeypatch.setattr(by_parts, "_EDGES", 30)
    defaults = Strips.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "entries", 64)
    monkeypatch.setenv("FASTGLT_SCRATCH", str(tmp_path))
    in_memory = NodeClassification.from_tensors(load(SOURCE).tensors)
    prepare.prepare(
        lambda: open_stream(SOURCE, lambda: load(SOURCE)),
        tmp_path / "graph.fgr",
        memory=1 << 26,
        directed=False,
        asked=SOURCE,
        tell=lambda line: None,
    )
    dataset = load(str(tmp_path / "graph.fgr"))
    on_disk = NodeClassification.from_tensors(dataset.tensors, compressed=dataset.compressed)
    assert on_disk.graph.on_disk is not None
    ours, theirs = trained(on_disk, partition), trained(in_memory, partition)
    assert ours.history == theirs.history
    assert ours.soft_edge_mask is not None
    assert theirs.soft_edge_mask is not None
    assert torch.equal(ours.soft_edge_mask, theirs.soft_edge_mask)
    for name, value in theirs.network.state_dict().items():
        assert torch.equal(ours.network.state_dict()[name], value)
    assert [path.name for path in tmp_path.iterdir()] == ["graph.fgr"], "files of hidden rows have no names"
