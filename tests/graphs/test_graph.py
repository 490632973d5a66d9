from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from fastglt import InputError
from fastglt.graphs.graph import Graph
from fastglt.graphs.inputs import DirectedWarning
from fastglt.graphs.messages import Hop
from fastglt.masks import Mask
from tests.helpers import Pairs, both_ways, columns, drop, house

NODES = 6
pair_lists = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=20)
quick = settings(deadline=None, max_examples=60)


def index_of(pairs: Pairs, directed: bool) -> Tensor:
    return columns(pairs) if directed else both_ways(pairs)


def graph_of(pairs: Pairs, directed: bool) -> Graph:
    return Graph.from_edge_index(index_of(pairs, directed), NODES, directed=directed)


def distinct(pairs: Pairs, directed: bool) -> list[tuple[int, int]]:
    """What a graph's edges should be: without loops, each once, sorted."""
    return sorted({(a, b) if directed else (min(a, b), max(a, b)) for a, b in pairs if a != b})


def as_pairs(index: Tensor) -> list[tuple[int, int]]:
    return [(a, b) for a, b in index.T.tolist()]


@quick
@given(pairs=pair_lists, directed=st.booleans())
def test_edges_are_the_distinct_pairs_and_loops_stand_apart(pairs: Pairs, directed: bool) -> None:
    graph = graph_of(pairs, directed)
    assert as_pairs(graph.edges) == distinct(pairs, directed)
    assert graph.num_edges == len(distinct(pairs, directed))
    assert graph.loops.tolist() == sorted({a for a, b in pairs if a == b})


@quick
@given(pairs=pair_lists, directed=st.booleans())
def test_every_column_is_kept_and_names_its_edge(pairs: Pairs, directed: bool) -> None:
    graph = graph_of(pairs, directed)
    assert Counter(as_pairs(graph.edge_index)) == Counter(as_pairs(index_of(pairs, directed)))
    edges = distinct(pairs, directed)
    for (a, b), edge in zip(as_pairs(graph.edge_index), graph.column_edge.tolist(), strict=True):
        named = (a, b) if directed else (min(a, b), max(a, b))
        assert edge == (len(edges) if a == b else edges.index(named))


@quick
@given(pairs=pair_lists)
def test_a_graph_is_directed_exactly_if_some_reverse_is_missing(pairs: Pairs) -> None:
    present = set(pairs)
    graph = Graph.from_edge_index(columns(pairs), NODES)
    assert graph.directed == any((b, a) not in present for a, b in present)


@quick
@given(pairs=pair_lists, directed=st.booleans())
def test_degree_counts_neighbours(pairs: Pairs, directed: bool) -> None:
    ends = Counter(end for pair in distinct(pairs, directed) for end in pair)
    assert graph_of(pairs, directed).degree.tolist() == [ends[node] for node in range(NODES)]


@quick
@given(pairs=pair_lists, directed=st.booleans())
def test_a_hop_holds_receiver_and_sender_of_every_message(pairs: Pairs, directed: bool) -> None:
    graph = graph_of(pairs, directed)
    (hop,) = graph.hops(None, depth=1)
    own = {(a, a) for a in range(NODES)}
    received = {(b, a) for a, b in as_pairs(index_of(pairs, directed)) if a != b}
    entries = list(zip(hop.csr.rows.tolist(), hop.csr.indices.tolist(), strict=True))
    assert entries == sorted(received | own)
    edges = distinct(pairs, directed)
    for (receiver, sender), edge in zip(entries, hop.entry_edge.tolist(), strict=True):
        low, high = (sender, receiver) if directed else sorted((sender, receiver))
        assert edge == (len(edges) if low == high else edges.index((low, high)))
    assert hop.degree.tolist() == [sum(receiver == node for receiver, _ in entries) for node in range(NODES)]
    assert hop.looped.tolist() == [(node, node) in pairs for node in range(NODES)]


@quick
@given(pairs=pair_lists, directed=st.booleans(), data=st.data())
def test_norms_are_those_of_the_adjacency_matrix(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    graph = graph_of(pairs, directed)
    if data.draw(st.booleans(), "pruned"):
        kept = data.draw(st.lists(st.booleans(), min_size=graph.num_edges, max_size=graph.num_edges))
        graph = graph.prune(Mask(torch.tensor(kept, dtype=torch.bool)))
    adjacency = torch.zeros(NODES, NODES)
    source, target = graph.edge_index
    adjacency[target, source] = 1  # the data's own self-loops are in it
    everyone = torch.eye(NODES)
    looped = (adjacency + everyone).clamp(max=1)
    scale = looped.sum(1).rsqrt()
    expected = {
        "symmetric_norm": scale[:, None] * looped * scale,
        "sum_norm": adjacency,
        "mean_norm": adjacency / adjacency.sum(1, keepdim=True).clamp(min=1),
        "is_loop": everyone,
    }
    for nodes in (None, ASKED):
        for hop in graph.hops(nodes, depth=2):
            receivers = torch.arange(NODES) if hop.receivers is None else hop.receivers
            senders = torch.arange(NODES) if hop.senders is None else hop.senders
            for name, matrix in expected.items():
                found = torch.zeros(receivers.numel(), senders.numel())
                found[hop.csr.rows, hop.csr.indices] = getattr(hop, name)
                torch.testing.assert_close(found, matrix[receivers][:, senders], msg=name)


@quick
@given(pairs=pair_lists, directed=st.booleans(), built_before=st.booleans(), data=st.data())
def test_pruning_is_building_from_what_is_left(
    pairs: Pairs, directed: bool, built_before: bool, data: st.DataObject
) -> None:
    graph = graph_of(pairs, directed)
    if built_before:  # then pruning shrinks the patterns instead of building them again
        graph.hops(None, depth=2)
        graph.hops(ASKED, depth=2)
    size = graph.num_edges
    kept = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=torch.bool)
    pruned = graph.prune(Mask(kept))
    left = torch.cat([kept, torch.ones(1, dtype=torch.bool)])[graph.column_edge]
    fresh = Graph.from_edge_index(graph.edge_index[:, left], NODES, directed=directed)
    for name in ("edges", "edge_index", "column_edge", "degree", "loops"):
        assert torch.equal(getattr(pruned, name), getattr(fresh, name)), name
    assert pruned.fingerprint == fresh.fingerprint
    for nodes in (None, ASKED):
        hops = (graph.hops(nodes, depth=2) for graph in (pruned, fresh))
        for one, other in zip(*hops, strict=True):
            assert set(messages(one)) >= set(messages(other))
            assert nodes is not None or messages(one) == messages(other)


ASKED = torch.tensor([2, 0])
Message = tuple[int, int, int, float, float, float, float]


def messages(hop: Hop) -> list[Message]:
    """Who hears whom, along which edge, with which norms; by the nodes' own numbers."""
    everyone = torch.arange(NODES)
    receivers = everyone if hop.receivers is None else hop.receivers
    senders = everyone if hop.senders is None else hop.senders
    ends = receivers[hop.csr.rows].tolist(), senders[hop.csr.indices].tolist(), hop.entry_edge.tolist()
    norms = (hop.symmetric_norm, hop.mean_norm, hop.sum_norm, hop.is_loop)
    return list(zip(*ends, *(norm.tolist() for norm in norms), strict=True))


@quick
@given(pairs=pair_lists, directed=st.booleans())
def test_hops_for_a_few_nodes_are_the_messages_they_depend_on(pairs: Pairs, directed: bool) -> None:
    graph = graph_of(pairs, directed)
    everything = messages(graph.hops(None, depth=1)[0])
    first, second = graph.hops(ASKED, depth=2)
    assert sorted(messages(second)) == sorted(m for m in everything if m[0] in ASKED.tolist())
    needed = {*ASKED.tolist(), *(sender for _, sender, *_ in messages(second))}
    assert second.senders is not None
    assert second.senders.tolist() == sorted(needed)
    assert sorted(messages(first)) == sorted(m for m in everything if m[0] in needed)
    for hop in (first, second):
        assert hop.receiver_columns is not None
        assert hop.senders is not None
        assert hop.receivers is not None
        assert torch.equal(hop.senders[hop.receiver_columns], hop.receivers)


def test_hops_are_found_once() -> None:
    graph = house()
    assert graph.hops(ASKED, depth=2) is graph.hops(ASKED, depth=2)


def test_pruning_nothing_is_the_same_graph() -> None:
    graph = house()
    assert graph.prune(Mask.full([graph.num_edges])) is graph


def test_both_directions_of_an_undirected_edge_go_together() -> None:
    pruned = house().prune(drop(7, 0))  # edge 0 is 0–1
    assert (0, 1) not in as_pairs(pruned.edge_index)
    assert (1, 0) not in as_pairs(pruned.edge_index)


def test_one_direction_of_a_directed_pair_goes_alone() -> None:
    pruned = house(directed=True).prune(drop(7, 0))  # edge 0 is 0 → 1
    assert (0, 1) not in as_pairs(pruned.edge_index)
    assert (1, 0) in as_pairs(pruned.edge_index)


@quick
@given(pairs=pair_lists, directed=st.booleans(), data=st.data())
def test_fingerprint_ignores_order_and_repetition(pairs: Pairs, directed: bool, data: st.DataObject) -> None:
    again = data.draw(st.permutations([*pairs, *pairs[:3]]))
    assert graph_of(pairs, directed).fingerprint == graph_of(again, directed).fingerprint


@quick
@given(pairs=pair_lists, others=pair_lists, directed=st.booleans())
def test_fingerprint_differs_with_the_edges(pairs: Pairs, others: Pairs, directed: bool) -> None:
    one, two = graph_of(pairs, directed), graph_of(others, directed)
    same = set(as_pairs(index_of(pairs, directed))) == set(as_pairs(index_of(others, directed)))
    assert (one.fingerprint == two.fingerprint) == same


def test_fingerprint_differs_with_nodes_and_direction() -> None:
    index = both_ways([(0, 1)])
    prints = {
        Graph.from_edge_index(index, 2).fingerprint,
        Graph.from_edge_index(index, 3).fingerprint,
        Graph.from_edge_index(index, 2, directed=True).fingerprint,
    }
    assert len(prints) == 3


def test_attributes_and_weights_follow_their_column() -> None:
    index = columns([(1, 1), (0, 1), (1, 0), (1, 2), (2, 1)])
    attr, weight = torch.tensor([[9], [1], [2], [3], [4]]), torch.tensor([0.9, 0.1, 0.2, 0.3, 0.4])
    graph = Graph.from_edge_index(index, 3, edge_attr=attr, edge_weight=weight)
    assert as_pairs(graph.edge_index) == [(0, 1), (1, 0), (1, 2), (2, 1), (1, 1)]
    pruned = graph.prune(drop(2, 0))
    assert as_pairs(pruned.edge_index) == [(1, 2), (2, 1), (1, 1)]
    assert pruned.edge_attr is not None
    assert pruned.edge_weight is not None
    assert pruned.edge_attr.tolist() == [[3], [4], [9]]
    assert torch.equal(pruned.edge_weight, torch.tensor([0.3, 0.4, 0.9]))


def test_norms_by_hand() -> None:
    graph = Graph.from_edge_index(torch.cat([both_ways([(0, 1), (0, 2)]), columns([(2, 2)])], dim=1), num_nodes=3)
    (hop,) = graph.hops(None, depth=1)
    # with a self-loop for every node the degrees are 3, 2, 2; entries in order 00 01 02 10 11 20 22
    expected = [1 / 3, 6**-0.5, 6**-0.5, 6**-0.5, 1 / 2, 6**-0.5, 1 / 2]
    assert hop.symmetric_norm.tolist() == pytest.approx(expected)
    # in the data only node 2 has one
    assert hop.looped.tolist() == [False, False, True]
    assert hop.is_loop.tolist() == [1, 0, 0, 0, 1, 0, 1]
    assert hop.sum_norm.tolist() == [0, 1, 1, 1, 0, 1, 1]
    assert hop.mean_norm.tolist() == [0, 0.5, 0.5, 1, 0, 0.5, 0.5]


def test_spread_gives_both_directions_their_edges_score() -> None:
    graph = Graph.from_edge_index(both_ways([(0, 1), (0, 2)]), num_nodes=3)
    (hop,) = graph.hops(None, depth=1)
    assert hop.spread(torch.tensor([5.0, 7.0])).tolist() == [1, 5, 7, 5, 1, 7, 1]


def test_a_graph_may_have_no_edges() -> None:
    graph = Graph.from_edge_index(columns([]), num_nodes=2)
    assert (graph.num_edges, graph.directed, graph.degree.tolist()) == (0, False, [0, 0])
    (hop,) = graph.hops(None, depth=1)
    assert (hop.csr.rows.tolist(), hop.csr.indices.tolist()) == ([0, 1], [0, 1])
    assert hop.symmetric_norm.tolist() == [1, 1]
    assert hop.sum_norm.tolist() == hop.mean_norm.tolist() == [0, 0]


def test_from_data_reads_structure_and_direction() -> None:
    index = both_ways([(0, 1), (1, 2)])
    data = Data(edge_index=index, num_nodes=4, edge_weight=torch.arange(4.0), edge_attr=torch.ones(4, 2))
    graph = Graph.from_data(data)
    assert (graph.num_nodes, graph.num_edges, graph.directed) == (4, 2, False)
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [0, 1, 2, 3]
    assert Graph.from_data(Data(edge_index=index[:, :2], num_nodes=3)).directed


def test_to_moves_everything() -> None:
    graph = Graph.from_edge_index(both_ways([(0, 1)]), 2, edge_attr=torch.ones(2, 1), edge_weight=torch.ones(2))
    assert graph.to("cpu") is graph
    moved = graph.to("meta")
    assert moved.edge_attr is not None
    assert moved.edge_weight is not None
    tensors = [moved.edges, moved.edge_index, moved.column_edge, moved.edge_attr, moved.edge_weight]
    assert {tensor.device.type for tensor in tensors} == {"meta"}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (torch.zeros(3, 2, dtype=torch.int64), r"shape \[2, edges\] \(got shape \(3, 2\), torch.int64\)"),
        (torch.zeros(4, dtype=torch.int64), r"shape \[2, edges\] \(got shape \(4,\), torch.int64\)"),
        (torch.zeros(2, 3), r"int64 tensor of shape \[2, edges\] \(got shape \(2, 3\), torch.float32\)"),
        (columns([(0, 3)]), r"node ids in edge_index must lie in 0 … 2 \(got 0 to 3\)"),
        (columns([(-1, 2)]), r"node ids in edge_index must lie in 0 … 2 \(got -1 to 2\)"),
    ],
)
def test_a_wrong_edge_index_is_refused(index: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_edge_index(index, num_nodes=3)


def test_data_without_edge_index_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(got none\); adj_t alone is not read"):
        Graph.from_data(Data(x=torch.ones(2, 1)))


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"one entry for each of 7 elements \(got shape \(6,\)\)"):
        house().prune(Mask.full([6]))


def messages_of(hop: Hop, receivers: Tensor) -> Tensor:
    """What each of some nodes hears from each node of the house."""
    everyone = torch.arange(7)
    rows = everyone if hop.receivers is None else hop.receivers
    columns = everyone if hop.senders is None else hop.senders
    heard = torch.zeros(7, 7)
    heard[rows[hop.csr.rows], columns[hop.csr.indices.long()]] = hop.symmetric_norm
    return heard[receivers]


def test_alone_a_pruned_graph_has_the_same_messages() -> None:
    for directed in (False, True):
        cut = house(directed=directed).prune(drop(7, 1, 4))
        for nodes in (None, torch.tensor([5, 0])):
            for one, other in zip(cut.hops(nodes, depth=2), cut.alone().hops(nodes, depth=2), strict=True):
                receivers = torch.arange(7) if other.receivers is None else other.receivers
                assert torch.equal(messages_of(one, receivers), messages_of(other, receivers))


def test_edge_values_that_do_not_fit_are_refused() -> None:
    data = Data(edge_index=both_ways([(0, 1), (1, 2)]), num_nodes=3)
    data.edge_attr = torch.ones(3, 2)
    with pytest.raises(InputError, match=r"edge_attr must have one row for each of 4 columns .*got shape \(3, 2\)"):
        Graph.from_data(data)
    data.edge_attr, data.edge_weight = None, torch.tensor([1.0, torch.nan, 1.0, 1.0])
    with pytest.raises(InputError, match="edge_weight must be finite"):
        Graph.from_data(data)


class TestDirectedByAccident:
    """A graph that is nearly undirected counts as directed, and says so."""

    def test_columns_without_a_reverse_are_counted(self) -> None:
        data = Data(edge_index=torch.cat([both_ways([(0, 1), (1, 2), (2, 3)]), columns([(0, 3)])], 1), num_nodes=4)
        with pytest.warns(
            DirectedWarning, match=r"1 of 7 columns of edge_index have no reverse; pass directed=False"
        ):
            assert Graph.from_data(data).directed

    def test_repeated_columns_are_counted(self) -> None:
        data = Data(edge_index=torch.cat([both_ways([(0, 1), (1, 2)]), columns([(0, 1)])], 1), num_nodes=3)
        with pytest.warns(DirectedWarning, match="1 of 5 columns of edge_index are repeated in one direction"):
            assert Graph.from_data(data).directed

    def test_asymmetric_edge_attr_is_counted(self) -> None:
        data = Data(edge_index=both_ways([(0, 1), (1, 2)]), edge_attr=torch.tensor([1.0, 2, 1, 3]), num_nodes=3)
        with pytest.warns(DirectedWarning, match="edge_attr of 2 of 4 columns differs from that of the reverse"):
            assert Graph.from_data(data).directed

    def test_what_the_caller_says_holds_without_a_warning(self) -> None:
        data = Data(edge_index=torch.cat([both_ways([(0, 1), (1, 2)]), columns([(0, 2)])], 1), num_nodes=3)
        graph = Graph.from_data(data, directed=False)
        assert (graph.directed, graph.num_edges) == (False, 3)
        assert graph.prune(Mask([0, 1, 1])).edge_index.tolist() == [[1, 2, 0], [2, 1, 2]]
        assert Graph.from_data(data, directed=True).num_edges == 5

    def test_arrows_are_no_accident(self) -> None:
        assert Graph.from_data(Data(edge_index=columns([(0, 1), (1, 2)]), num_nodes=3)).directed
