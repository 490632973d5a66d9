"""What is out of scope is refused in one line that says what is supported instead."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData
from torch_geometric.loader import DataLoader

from fastglt import InputError, find_ticket
from fastglt.data import load
from tests.toy_data import quick_ticket, seeded, toy_data

OUT_OF_SCOPE: dict[str, tuple[Callable[[], Any], str]] = {
    "HeteroData": (HeteroData, "heterogeneous graphs are not supported; to_homogeneous"),
    "TemporalData": (TemporalData, "temporal graphs are not supported"),
    "DataBatch": (lambda: Batch.from_data_list([toy_data(), toy_data()]), "graph-level tasks and several graphs"),
    "list": (lambda: [toy_data(), toy_data()], "graph-level tasks and several graphs are not supported"),
    "DataLoader": (lambda: DataLoader([toy_data()]), "loaders and mini-batches are not supported; pass the whole"),
    "InMemoryDataset": (InMemoryDataset, r"pass one of its graphs, such as dataset\[0\]"),
    "str": (lambda: "cora", r"\(got str\); fastglt.data.load\('cora'\).data is that of a name or a file"),
    "Dataset": (lambda: load("synthetic:nodes=30"), r"\(got Dataset\); pass its data"),
    "set": (set, r"\(got set\)$"),
}


@pytest.mark.parametrize("kind", OUT_OF_SCOPE)
def test_what_is_no_single_graph_is_refused_with_what_is_supported(kind: str) -> None:
    build, reason = OUT_OF_SCOPE[kind]
    with pytest.raises(InputError, match=reason) as caught:
        find_ticket("gcn", build())
    assert f"data must be one graph with a label for each node, a torch_geometric.data.Data (got {kind})" in str(
        caught.value
    )


def test_a_neighbour_loader_is_refused() -> None:
    class NeighborLoader:  # PyG's own needs pyg-lib to be made
        pass

    with pytest.raises(InputError, match=r"\(got NeighborLoader\); loaders and mini-batches are not supported"):
        find_ticket("gcn", NeighborLoader())


def test_what_the_data_lacks_is_refused_with_what_to_do() -> None:
    data: Data = toy_data()
    data.x[3, 1] = float("nan")
    with pytest.raises(InputError, match=r"\(got nan at node 3, feature 1\); fill in such values, or leave"):
        quick_ticket(data=data)
    data = toy_data()
    del data.train_mask
    with pytest.raises(InputError, match=r"nodes \(got none\); torch_geometric.transforms.RandomNodeSplit makes"):
        quick_ticket(data=data)


def test_a_batch_of_one_graph_is_a_graph() -> None:
    assert quick_ticket(data=Batch.from_data_list([toy_data()])).scores == quick_ticket().scores


@pytest.mark.parametrize("name", ["x", "edge_index", "y", "val_mask"])
def test_data_without_numbers_is_refused(name: str) -> None:
    data: Data = toy_data()
    data[name] = data[name].to("meta")
    with pytest.raises(InputError, match=rf"data must have numbers \(got data.{name} on the meta device\)"):
        quick_ticket(data=data)


def test_a_model_without_numbers_is_refused() -> None:
    from torch_geometric.nn import GCN

    with torch.device("meta"):
        model = seeded(GCN, 6, 8, 2, 3)
    with pytest.raises(InputError, match=r"the model must have numbers \(got 'convs.0.bias' on the meta device\)"):
        quick_ticket(model)
