"""A large graph is prepared by counting, a small one by sorting: the same graph."""

import pytest
import torch

from fastglt.data import load
from fastglt.graphs import columns, graph, messages
from fastglt.graphs.graph import Graph
from fastglt.kernels import csr
from fastglt.masks import Mask

NAME = "synthetic:nodes=60,edges=150"


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (columns, graph, messages, csr):
        monkeypatch.setattr(module, "LARGE", 1)


def prepared(name: str = NAME) -> Graph:
    return Graph.from_edge_index(load(name).tensors["edge_index"], 60)


def parts(found: Graph) -> list[torch.Tensor]:
    """All that a graph has of edges and messages."""
    whole = found._whole
    hops = found.hops(torch.arange(5), depth=1)
    of_hops = [
        part
        for hop in (whole, *hops)
        for part in (hop.csr.indptr, hop.csr.indices, hop.entry_edge, hop.symmetric_norm)
    ]
    transposed = [whole.csr.transpose_order, whole.csr.transposed.indptr, whole.csr.transposed.indices]
    return [found.edges, found.edge_index, found.column_edge, *of_hops, *transposed]


def test_counting_gives_the_graph_that_sorting_gives(request: pytest.FixtureRequest) -> None:
    mask = Mask(torch.arange(150) % 4 > 0)
    small, cut = prepared(), prepared().prune(mask)
    wanted = parts(small) + parts(cut)
    request.getfixturevalue("everything_is_large")
    large = prepared()
    assert large.is_large
    assert large.column_edge.dtype == large._whole.entry_edge.dtype == torch.int32
    assert large.fingerprint == small.fingerprint
    for one, other in zip(wanted, parts(large) + parts(large.prune(mask)), strict=True):
        assert torch.equal(one.to(other.dtype), other)


@pytest.mark.usefixtures("everything_is_large")
def test_columns_that_are_not_in_order_are_sorted() -> None:
    edge_index = load(NAME).tensors["edge_index"]
    mixed = edge_index[:, torch.randperm(edge_index.shape[1], generator=torch.Generator().manual_seed(0))]
    looped = torch.cat([torch.tensor([[3], [3]]), mixed], 1)
    found = Graph.from_edge_index(looped, 60)
    assert (found.directed, found.loops.tolist()) == (False, [3])
    assert torch.equal(found.edges, prepared().edges)
    assert torch.equal(found.edges[:, found.column_edge[:-1].long()].sum(0), found.edge_index[:, :-1].sum(0))


@pytest.mark.usefixtures("everything_is_large")
def test_a_large_graph_whose_nodes_nearly_all_send_has_one_hop_for_all() -> None:
    found = prepared()
    first, last = found.hops(torch.arange(55), depth=2)
    again, _ = found.hops(torch.arange(50), depth=2)
    assert first is again is found._whole
    assert last.senders is None
    assert last.csr.num_rows == 55
