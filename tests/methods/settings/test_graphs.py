import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import Planetoid

from fastglt.data import load
from fastglt.graphs.graph import Graph
from fastglt.methods.settings import name_of
from fastglt.methods.settings.graphs import GRAPHS
from fastglt.methods.settings.paper import BUDGETS
from tests.toy_data import toy_data


def test_there_is_one_for_every_graph_with_a_budget() -> None:
    by_name_alone = {"ogbn-proteins", "ogbl-collab"}
    assert sorted(GRAPHS.values()) == sorted({dataset for dataset, _ in BUDGETS} - by_name_alone)


def test_arxivs_graph_is_known(real: Callable[[str], Path]) -> None:
    tensors = load("ogbn-arxiv", root=real("ogbn_arxiv")).tensors
    assert name_of(Graph.from_edge_index(tensors["edge_index"], tensors["x"].shape[0])) == "ogbn-arxiv"


def test_other_graphs_have_no_name() -> None:
    assert name_of(Graph.from_data(toy_data())) == ""


@pytest.mark.parametrize(("name", "folder"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_the_papers_graphs_are_known_from_our_loader_and_from_pyg(
    real: Callable[[str], Path], tmp_path: Path, name: str, folder: str
) -> None:
    root = real(f"planetoid/{folder}")
    tensors = load(name, root=root).tensors
    assert name_of(Graph.from_edge_index(tensors["edge_index"], tensors["x"].shape[0])) == name
    shutil.copytree(root / "planetoid" / folder / "raw", tmp_path / folder / "raw")
    data = Planetoid(str(tmp_path), folder)[0]
    assert name_of(Graph.from_data(data)) == name
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[0, 5], [5, 0]])], dim=1)
    assert name_of(Graph.from_data(data)) == "", "one edge more is another graph"
