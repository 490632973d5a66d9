from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import fastglt
from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.models import GCN
from fastglt.tasks.inductive import Inductive, hide
from fastglt.tickets.find import find
from fastglt.tickets.new_nodes import NewNodes
from tests.helpers import BUDGET, method_of, toy_task


def hidden() -> Inductive:
    return hide(toy_task(), 0.1, seed=0)


def new_nodes(inductive: Inductive, network: GCN, name: str = "random", graph: float = 0.5) -> NewNodes:
    return NewNodes(inductive=inductive, network=network, method=method_of(name, graph, 0.0), seed=0)


def test_dense_is_the_network_on_the_whole_graph() -> None:
    inductive, network = hidden(), GCN(12, 8, 3)
    whole = inductive.whole
    outputs = network.eval()(whole.x, whole.graph)[whole.test]
    right = float((outputs.argmax(-1) == whole.y[whole.test]).float().mean())
    found = new_nodes(inductive, network).scores(network.state_dict(), None)
    assert found == {"new": pytest.approx(right)}


def test_a_ticket_with_all_new_edges_and_with_as_large_a_share_as_it_keeps() -> None:
    """By hand: the kept old edges and all new ones; then the half of them that the method draws."""
    inductive, network = hidden(), GCN(12, 8, 3)
    whole, seen = inductive.whole, inductive.seen.graph.num_edges
    edges = Mask(torch.arange(seen) < seen // 2)
    masks = Masks(edges=edges, weights=Masks.full(1, network.weight_shapes).weights)
    judge = new_nodes(inductive, network)
    found = judge.scores(network.state_dict(), masks)

    def by_hand(kept: Mask) -> float:
        outputs = network.eval()(whole.x, whole.graph.prune(kept))[whole.test]
        return float((outputs.argmax(-1) == whole.y[whole.test]).float().mean())

    assert found["new"] == pytest.approx(by_hand(inductive.extend(edges)))
    every = judge._training(network.state_dict(), inductive.extend(edges), masks.weights)
    some = judge._choose(every, edges)
    count = int(inductive.new_edges.sum())
    assert int(some.sum()) == count - round(count * edges.sparsity)
    assert not bool(some[inductive.old].any())
    assert found["new_kept"] == pytest.approx(by_hand(inductive.extend(edges, some)))


def test_forest_keeps_new_edges_by_its_rule() -> None:
    """Sure and right predictions of a ring of three classes: the edges between classes go first."""
    inductive, network = hidden(), GCN(12, 8, 3)
    judge = new_nodes(inductive, network, "forest")
    edges = Mask.full([inductive.seen.graph.num_edges])
    training = judge._training(network.state_dict(), inductive.extend(edges), {})
    new = inductive.new_edges
    kept = judge.method.keep_new_edges(training, new, int(new.sum()) // 2, seed=0)
    assert int(kept.sum()) == int(new.sum()) // 2
    assert not bool(kept[inductive.old].any())
    predicted = network.eval()(inductive.whole.x, inductive.whole.graph).argmax(-1)
    source, target = predicted[inductive.whole.graph.edges]
    within = source == target
    assert int((kept & within).sum()) == min(int(kept.sum()), int((new & within).sum()))


@pytest.mark.parametrize("name", ["forest", "fastglt", "random"])
def test_found_without_a_look_at_hidden_nodes(name: str) -> None:
    """The ticket is that of the seen part alone, and says what it scores on the others."""
    inductive, network, method = (
        hidden(),
        GCN(12, 8, 3),
        method_of(name, 0.5, 0.5, budget=replace(BUDGET, distill=1)),
    )
    alone = find(network, inductive.seen, method, seed=0).ticket
    found = find(network, inductive.seen, method, seed=0, inductive=inductive).ticket
    assert found.masks.edges == alone.masks.edges
    assert {key: found.scores[key] for key in alone.scores} == dict(alone.scores)
    phases = ("search", "isolated", "dense", "dense_distilled")
    more = [f"{phase}_new" for phase in phases] + [f"{phase}_new_kept" for phase in phases[:2]]
    assert set(found.scores) - set(alone.scores) == set(more)
    assert found.config["inductive"] == inductive.settings


class FixedNodes(nn.Module):
    """A model with a vector for each node of its graph."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.zeros(nodes, 12))
        self.layer = GCNConv(12, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x + self.places[: x.shape[0]], edge_index)
        return out


class OneLayer(nn.Module):
    """A model of any graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(12, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x, edge_index)
        return out


def data() -> Data:
    task = toy_task()
    masks = {}
    for name in ("train", "val", "test"):
        masks[f"{name}_mask"] = torch.zeros(30, dtype=torch.bool)
        masks[f"{name}_mask"][getattr(task, name)] = True
    return Data(x=task.x.dense, y=task.y, edge_index=task.graph.edge_index, **masks)


def test_in_python_with_a_model_of_ones_own() -> None:
    model, given = OneLayer(), {"budget": BUDGET, "graph_sparsity": 0.3, "weight_sparsity": 0.5}
    ticket = fastglt.find_ticket(model, data(), inductive=0.1, split_seed=1, **given)  # type: ignore[arg-type]
    assert {"isolated_new", "isolated_new_kept"} <= set(ticket.scores)
    verdict = fastglt.evaluate(ticket, model, data(), seeds=[0, 1], fresh_init=False)
    assert verdict.new is not None
    assert verdict.new_kept is not None
    assert verdict.new.ticket_scores[0] == pytest.approx(ticket.scores["isolated_new"])
    assert set(verdict.as_dict()) >= {"new", "new_kept"}
    assert "hidden nodes, all their edges: dense" in str(verdict)


def test_a_model_with_something_for_each_node_is_refused() -> None:
    with pytest.raises(InputError, match=r"can be used on other nodes .* 'places' of FixedNodes with 30 rows"):
        fastglt.find_ticket(FixedNodes(30), data(), inductive=0.1, budget=BUDGET)
