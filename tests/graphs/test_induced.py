import torch

from fastglt.graphs.graph import Graph
from fastglt.graphs.induced import induced
from tests.helpers import both_ways, columns, house


def test_nodes_are_numbered_anew_and_edges_keep_their_order() -> None:
    """The house without its hub: 1-2, 3-4, 4-5 are left, and node 2's self-loop."""
    graph = house()
    kept = torch.tensor([False, True, True, True, True, True, True])
    part, inside = induced(graph, kept)
    assert (part.num_nodes, part.edges.tolist(), part.loops.tolist()) == (6, [[0, 2, 3], [1, 3, 4]], [1])
    assert graph.edges[:, inside].tolist() == [[1, 3, 4], [2, 4, 5]]


def test_arrows_stay_arrows() -> None:
    graph = house(directed=True)
    kept = torch.tensor([True, True, True, False, True, True, True])
    part, inside = induced(graph, kept)
    assert part.directed
    old = kept.nonzero().squeeze(1)
    assert torch.equal(old[part.edges], graph.edges[:, inside])
    assert int(inside.sum()) == 6  # all but 0 → 3


def test_values_of_edges_and_nodes_go_along() -> None:
    index = torch.cat([columns([(1, 1)]), both_ways([(0, 1), (1, 2)])], dim=1)
    graph = Graph.from_edge_index(index, 3, edge_weight=torch.tensor([9.0, 1.0, 2.0, 1.0, 2.0]))
    part, _ = induced(graph, torch.tensor([False, True, True]))
    assert part.edge_weight is not None
    assert part.edge_weight.tolist() == [2.0, 2.0, 9.0]  # the self-loop is the last
    assert part.edge_index.tolist() == [[0, 1, 0], [1, 0, 0]]
