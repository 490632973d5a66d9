"""Some forty layers and models of PyG on several kinds of data: tickets against plain PyG on the pruned data."""

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import set_masks

from fastglt import Budget, InputError, Ticket, compile_ticket, find_ticket
from tests.models.matrix import CASES, REFUSED, data_of
from tests.toy_data import seeded

BUDGET = Budget(oneshot_epochs=1, denoise_epochs=2, interval=1, lr=0.01)


def edges_by_hand(data: Data, directed: bool) -> Tensor:
    """The edge of each column among the sorted pairs; −1 for self-loops."""
    pairs = [(a, b) if directed else (min(a, b), max(a, b)) for a, b in data.edge_index.T.tolist()]
    known = {pair: place for place, pair in enumerate(sorted({pair for pair in pairs if pair[0] != pair[1]}))}
    return torch.tensor([known.get(pair, -1) for pair in pairs])


def plain_call(model: nn.Module, data: Data) -> Tensor:
    """As the model's owner calls it."""
    names = list(inspect.signature(model.forward).parameters)
    if names == ["data"]:
        return model(data)  # type: ignore[no-any-return]
    fields = {name: data[name] for name in names[2:] if name in data and data[name] is not None}
    if "edge_weight" in names and "edge_weight" not in fields and data.edge_attr is not None:
        fields["edge_weight"] = data.edge_attr
    return model(data.x, data.edge_index, **fields)  # type: ignore[no-any-return]


def find(model: nn.Module, data: Data, **settings: Any) -> Ticket:
    given = {"graph_sparsity": 0.3, "weight_sparsity": 0.5, "budget": BUDGET, "isolated": False, **settings}
    return find_ticket(model, data, **given)


@pytest.mark.parametrize("name", CASES)
def test_a_ticket_is_what_plain_pyg_makes_of_its_masks(name: str) -> None:
    build, kind, fields = CASES[name]
    data, model = data_of(kind, **fields), seeded(build)
    ticket = find(model, data)
    edge_of, kept = edges_by_hand(data, kind == "directed"), ticket.masks.edges.kept

    edges = int(edge_of.max()) + 1
    assert (kept.numel(), int(kept.sum())) == (edges, edges - round(0.3 * edges))
    weights = sum(model.get_parameter(place).numel() for place in ticket.masks.weights)
    assert ticket.masks.weights_kept == weights - round(0.5 * weights)

    for place, mask in ticket.masks.weights.items():
        assert not (ticket.weights[place] * ~mask.kept).any()
    stays = torch.cat([kept, torch.tensor([True])])[edge_of]
    pruned = data.edge_subgraph(stays)
    assert torch.equal(ticket.prune(data).edge_index, pruned.edge_index)

    plain = seeded(build).eval()
    plain.load_state_dict(ticket.weights)
    expected = plain_call(plain, pruned)
    found = compile_ticket(replace(ticket, soft_edge_mask=None), data, model, layout="whole").logits()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    right = (expected.argmax(-1) == data.y)[data.test_mask].float().mean()
    assert ticket.scores["search_unweighted_test"] == pytest.approx(float(right))

    assert ticket.soft_edge_mask is not None
    soft = torch.ones(edges + 1)
    soft[:-1][kept] = ticket.soft_edge_mask
    set_masks(plain, soft[edge_of][stays], pruned.edge_index, apply_sigmoid=False)  # PyG's own, for explanations
    found = compile_ticket(ticket, data, model, layout="whole").logits()
    torch.testing.assert_close(found, plain_call(plain, pruned), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_with_its_reason(name: str) -> None:
    build, fields, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        find(seeded(build), data_of(**fields))
