"""Edge weights from files: read, symmetrised, and used as plain PyG uses them, or not in silence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.helpers import both_ways
from tests.runs.examples import experiment
from tests.toy_data import QUICK
from torch_geometric.nn import GCN

from fastglt import find_ticket
from fastglt.data import load
from fastglt.errors import InputError
from fastglt.masks import Mask
from fastglt.models import PyGNetwork
from fastglt.tasks import NodeClassification
from fastglt.tickets.networks import UnusedWeightsWarning

NODES = "id,label,f1,f2\na,cat,1,2\nb,dog,3,4.5\nc,cat,-1,1e3\n"
EDGES = "source,target,weight\na,b,0.5\nb,c,2\nc,c,0.25\nb,a,0.50\n"


def write_csv(folder: Path, edges: str = EDGES) -> str:
    (folder / "edges.csv").write_text(edges)
    (folder / "nodes.csv").write_text(NODES)
    return str(folder / "edges.csv")


def write_npz(folder: Path, name: str = "edge_weight", **changes: Any) -> str:
    """Thirty nodes in a ring with chords, three classes, a weight for each edge, listed in one direction."""
    rng, nodes = np.random.default_rng(0), np.arange(30)
    edges = np.stack([np.tile(nodes, 2), np.concatenate([np.roll(nodes, 1), np.roll(nodes, 5)])])
    arrays: dict[str, Any] = {"edge_index": edges, "x": rng.normal(size=(30, 4)), "y": nodes % 3}
    arrays[name] = rng.uniform(0.1, 3, 60)
    np.savez(folder / "mine.npz", **{**arrays, **changes})
    return str(folder / "mine.npz")


def test_a_column_of_weights_goes_both_ways(tmp_path: Path) -> None:
    data = load(write_csv(tmp_path)).data
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2, 2, 0.25]
    assert data.edge_weight.dtype == torch.float32


def test_two_directions_may_differ_in_a_directed_graph(tmp_path: Path) -> None:
    name = write_csv(tmp_path, EDGES.replace("b,a,0.50", "b,a,7"))
    data = load(name, directed=True).data
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 2]]
    assert data.edge_weight.tolist() == [0.5, 7, 2, 0.25]
    message = r"same weight wherever it is listed \(got 0.5 and 7 between a and b\); keep one of them, or say --dir"
    with pytest.raises(InputError, match=message):
        load(name)


def test_repeated_edges_must_agree_in_any_graph(tmp_path: Path) -> None:
    name = write_csv(tmp_path, "source,target,weight\na,b,1\nb,c,3\na,b,2\n")
    for directed in (False, True):
        with pytest.raises(InputError, match=r"\(got 1 and 2 between a and b\); keep one of them"):
            load(name, directed=directed)
    path = write_npz(tmp_path, edge_index=np.array([[0, 4, 1], [1, 5, 0]]), edge_weight=np.array([1, 1, 9]))
    with pytest.raises(InputError, match=r"\(got 1 and 9 between 0 and 1\)"):
        load(path)


def test_without_weights_nothing_is_added(tmp_path: Path) -> None:
    assert "edge_weight" not in load(write_csv(tmp_path, "source,target\na,b\n")).tensors


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_outputs_are_those_of_plain_pyg(tmp_path: Path, name: str) -> None:
    """On the whole graph and on a pruned one, whose columns and weights are picked by hand."""
    dataset = load(write_npz(tmp_path, name))
    data, task = dataset.data, NodeClassification.from_tensors(dataset.tensors)
    torch.manual_seed(0)
    model = GCN(4, 8, num_layers=2, out_channels=3).eval()
    network = PyGNetwork(model).eval()
    kept = Mask(torch.arange(task.graph.num_edges) % 3 > 0)
    pairs = both_ways([(int(low), int(high)) for low, high in task.graph.edges[:, kept.kept].T])
    given = zip(data.edge_index.T.tolist(), data.edge_weight, strict=True)
    weight_of = {tuple(pair): weight for pair, weight in given}
    weights = torch.stack([weight_of[tuple(pair)] for pair in pairs.T.tolist()])
    with torch.no_grad():
        whole = model(data.x, data.edge_index, data.edge_weight)
        torch.testing.assert_close(network(task.x, task.graph), whole)
        torch.testing.assert_close(network(task.x, task.graph.prune(kept)), model(data.x, pairs, weights))
        assert not torch.allclose(whole, model(data.x, data.edge_index)), "weights matter"


def test_a_ticket_of_a_pyg_model_is_of_these_weights(tmp_path: Path) -> None:
    model = GCN(4, 8, num_layers=2, out_channels=3)
    one = find_ticket(model, load(write_npz(tmp_path)).data, graph_sparsity=0.2, weight_sparsity=0.5, budget=QUICK)
    other = load(write_npz(tmp_path, edge_weight=np.ones(60))).data
    assert (
        one.config["edge_values"]
        != find_ticket(model, other, graph_sparsity=0.2, budget=QUICK).config["edge_values"]
    )


def test_our_models_warn_that_they_take_no_weights(tmp_path: Path) -> None:
    path = write_npz(tmp_path)
    with pytest.warns(UnusedWeightsWarning, match="gcn takes no edge weights: those of the data are not used"):
        weighted = experiment(dataset=path).prepare()
    with pytest.warns(UnusedWeightsWarning):
        find_ticket("gcn", load(path).data, graph_sparsity=0.2, weight_sparsity=0.5, hidden=4, budget=QUICK)
    arrays = dict(np.load(path))
    del arrays["edge_weight"]
    np.savez(path, **arrays)
    assert weighted.settings == experiment(dataset=path).prepare().settings, "what is not read decides nothing"
