from collections.abc import Callable

import pytest
import torch

from fastglt.features import Features
from fastglt.graph import Graph
from fastglt.judge.cost import Cost, count_macs
from fastglt.masks import Mask, Masks
from fastglt.models import GAT, GCN, GIN, Backbone
from fastglt.task import Task
from tests.helpers import both_ways, columns, drop


def task_of(graph: Graph, x: torch.Tensor, classes: int) -> Task:
    none = torch.empty(0, dtype=torch.int64)
    y = torch.zeros(graph.num_nodes, dtype=torch.int64)
    return Task(graph=graph, x=Features(x), y=y, train=none, val=none, test=none, num_classes=classes)


def dense_cost(network: Backbone, task: Task) -> Cost:
    shapes = {name: network.get_parameter(name).shape for name in network.prunable}
    return count_macs(network, task, Masks.full(task.graph.num_edges, shapes))


# Four nodes, three edges (six messages), a self-loop in the data on node 2; the features have 2, 0 and 2 users.
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
SMALL = task_of(
    Graph.from_edge_index(torch.cat([both_ways([(0, 1), (1, 2), (0, 3)]), columns([(2, 2)])], dim=1), 4), X, 2
)


class TestByHand:
    def test_gcn(self) -> None:
        # x·W1: 4 non-zeros · 2; messages: (6 + 4 loops) · 2; h·W2: 4 nodes · 4 weights; messages: 10 · 2
        expected = Cost(macs=8 + 20 + 16 + 20, macs_paper=4 * 6 + 4 * 4)
        assert dense_cost(GCN(3, 2, 2), SMALL) == expected

    def test_gcn_under_masks(self) -> None:
        # Feature 0 (two users) keeps 1 weight, feature 1 (none) 2, feature 2 (two) 1; two edges give four messages.
        first, second = Mask(torch.tensor([[1, 0], [1, 1], [0, 1]])), Mask(torch.tensor([[1, 1], [0, 0]]))
        masks = Masks(edges=drop(3, 1), weights={"layer1.weight": first, "layer2.weight": second})
        expected = Cost(macs=4 + (4 + 4) * 2 + 4 * 2 + (4 + 4) * 2, macs_paper=24)  # 40 · 6/10
        assert count_macs(GCN(3, 2, 2), SMALL, masks) == expected

    def test_gin(self) -> None:
        # Messages: 6 and the data's own loop; the read-out is one more product of 4 nodes · 4 weights.
        expected = Cost(macs=8 + 7 * 2 + 16 + 16 + 7 * 2, macs_paper=24 + 16 + 16)
        assert dense_cost(GIN(3, 2, 2), SMALL) == expected

    def test_deeper_gin(self) -> None:
        # Two more products of 4 nodes · 4 weights.
        expected = Cost(macs=68 + 32, macs_paper=56 + 32)
        assert dense_cost(GIN(3, 2, 2, depth=2), SMALL) == expected

    def test_gat(self) -> None:
        # Attention of layer 1: both halves, 4 nodes · 2 heads · 1 each, and 10 · 2 softmax terms; of layer 2:
        # 4 · 2 for both halves and 10 terms. The paper counts 2 · heads · width for each of the six edges.
        layer1, layer2 = 8 + (16 + 20) + 20, 16 + (16 + 10) + 20
        expected = Cost(macs=layer1 + layer2, macs_paper=24 + 16 + 6 * 4 + 6 * 4)
        assert dense_cost(GAT(3, 1, 2, heads=2), SMALL) == expected

    def test_a_directed_edge_is_one_message(self) -> None:
        task = task_of(Graph.from_edge_index(columns([(0, 1), (1, 2), (0, 3)]), 4), X, 2)
        assert dense_cost(GCN(3, 2, 2), task).macs == 8 + (3 + 4) * 2 + 16 + (3 + 4) * 2


SIZES = {  # nodes, directed edges, features, classes
    "cora": (2708, 10556, 1433, 7),
    "citeseer": (3327, 9104, 3703, 6),
    "pubmed": (19717, 88648, 500, 3),
}


def sized_like(name: str) -> Task:
    """A ring lattice with a dataset's numbers of nodes and edges, and features that are all zero."""
    nodes, edges, features, classes = SIZES[name]
    steps = torch.arange(edges // 2)
    source = steps % nodes
    pairs = torch.stack([source, (source + 1 + steps // nodes) % nodes])
    graph = Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], dim=1), nodes, directed=False)
    assert graph.num_edges * 2 == edges
    return task_of(graph, torch.zeros(nodes, features), classes)


@pytest.mark.parametrize("dataset", SIZES)
def test_the_papers_dense_numbers(dataset: str) -> None:
    """Millions, as the paper's tables print them."""
    backbones: dict[str, Callable[..., Backbone]] = {"gcn": GCN, "gin": GIN, "gat": GAT}
    printed: dict[str, dict[str, float]] = {
        "cora": {"gcn": 1996.6, "gin": 2006, "gat": 16059},
        "citeseer": {"gcn": 6317, "gin": 6328, "gat": 50619},
        "pubmed": {"gcn": 5077, "gin": 5108, "gat": 41349},
    }
    task = sized_like(dataset)
    for name, millions in printed[dataset].items():
        network = backbones[name](task.x.num_features, 512, task.num_classes)
        assert dense_cost(network, task).macs_paper / 1e6 == pytest.approx(millions, abs=1), name
