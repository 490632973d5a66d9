import warnings
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from fastglt import InputError, Ticket
from fastglt.tasks import NodeClassification
from fastglt.tickets.ticket import OtherFeaturesWarning, state_hash
from tests.toy_data import per_edge, toy_data


def moved(data: Data) -> Data:
    """The same number of edges, one of them elsewhere."""
    data = data.clone()
    first, second = data.edge_index[:, 0].tolist()
    for column in range(data.edge_index.shape[1]):
        if sorted(data.edge_index[:, column].tolist()) == sorted((first, second)):
            ends = data.edge_index[:, column]
            ends[ends == second] = 15
    return data


def test_the_same_graph_passes_whatever_the_order_of_its_columns(ticket: Ticket) -> None:
    data = toy_data()
    data.edge_index = data.edge_index.flip(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ticket.check(NodeClassification.from_data(data))


def test_another_graph_is_refused_unless_told_otherwise(ticket: Ticket) -> None:
    other = NodeClassification.from_data(moved(toy_data()))
    assert other.graph.num_edges == 60
    with pytest.raises(InputError, match=r"found on another graph.*pass other_graph=True"):
        ticket.check(other)
    ticket.check(other, other_graph=True)


def test_another_number_of_edges_is_always_refused(ticket: Ticket) -> None:
    with pytest.raises(InputError, match=r"decides on 60 edges \(got a graph with 42\)"):
        ticket.check(NodeClassification.from_data(ticket.prune(toy_data())), other_graph=True)


def test_other_features_only_warn(ticket: Ticket) -> None:
    data = toy_data()
    data.x = data.x + 1
    with pytest.warns(OtherFeaturesWarning, match="features differ"):
        ticket.check(NodeClassification.from_data(data))


def test_pruned_data_lacks_the_edges_and_what_belongs_to_them(ticket: Ticket) -> None:
    data = toy_data(loops=False, edge_attr=per_edge(2), edge_weight=per_edge(), edge_kind=torch.arange(120))
    before = data.clone()
    pruned = ticket.prune(data)
    gone = {tuple(pair) for pair in _sorted_pairs(data)} - {tuple(pair) for pair in _sorted_pairs(pruned)}
    kept = ticket.masks.edges.kept
    edges = NodeClassification.from_data(data).graph.edges
    assert gone == {(int(a), int(b)) for a, b in edges[:, ~kept].T}
    assert pruned.edge_index.shape == (2, 84)
    columns = pruned.edge_kind
    assert torch.equal(columns, columns.sort().values)
    for name in ("edge_attr", "edge_weight"):
        assert torch.equal(pruned[name], before[name][columns])
    assert torch.equal(pruned.edge_index, before.edge_index[:, columns])
    pruned.x.zero_()
    for name, value in before.to_dict().items():
        assert torch.equal(data[name], value)


def test_self_loops_are_never_pruned(ticket: Ticket) -> None:
    pruned = ticket.prune(toy_data(loops=True), other_graph=True)
    assert int((pruned.edge_index[0] == pruned.edge_index[1]).sum()) == 2
    assert pruned.edge_index.shape == (2, 86)


def test_pruning_needs_only_a_graph(ticket: Ticket) -> None:
    bare = Data(edge_index=toy_data().edge_index, num_nodes=30)
    assert ticket.prune(bare).num_nodes == 30
    for refused in (moved(toy_data()), HeteroData()):
        with pytest.raises(InputError):
            ticket.prune(refused)
    assert ticket.prune(moved(toy_data()), other_graph=True).num_edges == 84


def test_the_initial_weights_are_loaded_once_when_needed_and_checked(ticket: Ticket) -> None:
    calls = []

    def load_initial() -> dict[str, torch.Tensor]:
        calls.append(1)
        return dict(ticket.initial)

    lazy = replace(ticket, load_initial=load_initial)
    assert not calls
    assert lazy.initial.keys() == lazy.initial.keys() == ticket.initial.keys()
    assert len(calls) == 1
    wrong = replace(ticket, load_initial=lambda: {**ticket.initial, "layer1.bias": torch.ones(8)})
    with pytest.raises(InputError, match=r"initial weights must have digest .*… \(got others\)"):
        _ = wrong.initial


def test_a_state_hash_sees_names_types_shapes_and_numbers() -> None:
    states = [
        {"a": torch.zeros(2, 3)},
        {"b": torch.zeros(2, 3)},
        {"a": torch.zeros(3, 2)},
        {"a": torch.zeros(2, 3, dtype=torch.float64)},
        {"a": torch.zeros(2, 3, dtype=torch.bfloat16)},
        {"a": torch.zeros(2, 3, dtype=torch.int32)},
        {"a": torch.tensor([[0, 0, 0], [0, 0, 1.0]])},
        {"a": torch.zeros(2, 3), "b": torch.tensor(True)},
        {"a": torch.zeros(0)},
        {},
    ]
    assert len({state_hash(state) for state in states}) == len(states)


def test_a_state_hash_does_not_see_order_or_memory() -> None:
    a, b = torch.arange(6.0).view(2, 3), torch.tensor(3)
    assert state_hash({"a": a, "b": b}) == state_hash({"b": b, "a": a.T.contiguous().T})


def _sorted_pairs(data: Data) -> list[list[int]]:
    return [sorted(pair) for pair in data.edge_index.T.tolist()]


def test_the_old_name_of_the_soft_edge_mask_works_and_warns(ticket: Ticket) -> None:
    assert ticket.soft_edge_mask is not None
    with pytest.warns(FutureWarning, match=r"Ticket\.edge_scores is Ticket\.soft_edge_mask"):
        assert ticket.edge_scores is ticket.soft_edge_mask
