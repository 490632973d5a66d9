"""Two tickets side by side, worked out by hand and by properties."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastglt import Ticket
from fastglt.analysis.difference import (
    Overlap,
    compare_tickets,
    edge_degree_groups,
    edge_gradient_groups,
    groups,
    overlap,
    start_gradients,
    weight_gradient_groups,
)
from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.models import GAT, GCN, GIN, PyGNetwork
from fastglt.tasks import NodeClassification
from tests.helpers import drop, house, toy_task
from tests.toy_data import USER_MODELS, quick_ticket, seeded, toy_data

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)


def masks_of(pairs: list[tuple[bool, bool]]) -> tuple[Mask, Mask]:
    both = torch.tensor(pairs, dtype=torch.bool).reshape(-1, 2)
    return Mask(both[:, 0]), Mask(both[:, 1])


class TestOverlap:
    def test_by_hand(self) -> None:
        """Of ten, A prunes 0-3, B prunes 2-7."""
        found = overlap(drop(10, 0, 1, 2, 3), drop(10, 2, 3, 4, 5, 6, 7))
        assert found == Overlap(size=10, pruned_a=4, pruned_b=6, pruned_both=2)
        assert (found.only_a, found.only_b, found.kept_both) == (2, 4, 2)
        assert (found.hamming, found.hamming_share) == (6, 0.6)
        assert found.chance_hamming == pytest.approx(4 * 0.4 + 6 * 0.6)
        assert found.agreement == pytest.approx(1 - 6 / 5.2)
        assert found.jaccard_pruned == pytest.approx(2 / 8)
        assert found.jaccard_kept == pytest.approx(2 / 8)
        assert found.chance_jaccard_pruned == pytest.approx(2.4 / 7.6)
        assert found.chance_jaccard_kept == pytest.approx(2.4 / 7.6)

    def test_nothing_pruned(self) -> None:
        found = overlap(Mask.full([3, 2]), Mask.full([3, 2]))
        assert (found.hamming, found.chance_hamming, found.agreement) == (0, 0, None)
        assert (found.jaccard_pruned, found.jaccard_kept, found.chance_jaccard_pruned) == (None, 1, None)

    def test_of_nothing(self) -> None:
        found = overlap(Mask(torch.empty(0)), Mask(torch.empty(0)))
        assert (found.hamming, found.hamming_share, found.agreement, found.jaccard_kept) == (0, None, None, None)

    def test_shapes_must_agree(self) -> None:
        with pytest.raises(InputError, match=r"one shape to be compared \(got \(2, 3\) and \(3, 2\)\)"):
            overlap(Mask.full([2, 3]), Mask.full([3, 2]))

    @given(PAIRS)
    def test_itself_and_the_other_way_round(self, pairs: list[tuple[bool, bool]]) -> None:
        a, b = masks_of(pairs)
        same, forth, back = overlap(a, a), overlap(a, b), overlap(b, a)
        assert (same.hamming, same.only_a, same.only_b) == (0, 0, 0)
        assert same.agreement in (None, 1)
        assert (forth.only_a, forth.only_b) == (back.only_b, back.only_a)
        for name in ("hamming", "chance_hamming", "agreement", "jaccard_pruned", "jaccard_kept", "kept_both"):
            assert getattr(forth, name) == getattr(back, name)
        assert forth.only_a + forth.only_b + forth.pruned_both + forth.kept_both == forth.size
        assert forth.hamming == sum(first != second for first, second in pairs)

    def test_chance_is_what_random_masks_give(self) -> None:
        generator = torch.Generator().manual_seed(0)
        draws = [[torch.rand(50, generator=generator).argsort() >= cut for cut in (10, 30)] for _ in range(2000)]
        found = [overlap(Mask(a), Mask(b)) for a, b in draws]
        mean = sum(one.hamming for one in found) / len(found)
        assert mean == pytest.approx(found[0].chance_hamming, abs=0.3)


class TestGroups:
    def test_by_hand(self) -> None:
        found = groups(Mask([0, 0, 1, 1, 1]), Mask([0, 1, 0, 1, 1]), torch.tensor([5.0, 1, 2, 3, 4]), (0, 2, 4, 8))
        assert [part.mean for part in (found.both, found.only_a, found.only_b, found.neither)] == [5, 1, 2, 3.5]
        assert found.neither.counts == (0, 1, 1)

    def test_shapes_must_agree(self) -> None:
        with pytest.raises(InputError, match=r"one shape \(got \(2,\), \(2,\) and \(3,\)\)"):
            groups(Mask([0, 1]), Mask([0, 1]), torch.zeros(3), (0, 1))

    @given(PAIRS)
    def test_every_element_is_in_one_group(self, pairs: list[tuple[bool, bool]]) -> None:
        a, b = masks_of(pairs)
        values = torch.arange(len(pairs)).double()
        found = groups(a, b, values, (0, 20, 40))
        apart = overlap(a, b)
        parts = (found.only_a, found.only_b, found.both, found.neither)
        assert [part.count for part in parts] == [apart.only_a, apart.only_b, apart.pruned_both, apart.kept_both]
        assert sum(part.count * (part.mean or 0) for part in parts) == pytest.approx(float(values.sum()))

    def test_edge_degrees(self) -> None:
        """Degrees 4 2 2 2 3 1 0 of the house's nodes; edges 01, 02, 03, 04, 12, 34, 45."""
        task = replace(toy_task(), graph=house())
        a, b = (Masks(edges=mask, weights={}) for mask in (drop(7, 3, 6), drop(7, 3, 4)))
        found = edge_degree_groups(a, b, task)
        assert (found.both.mean, found.only_a.mean, found.only_b.mean) == (3.5, 2.0, 2.0)
        assert found.neither.counts == (0, 0, 4)  # 3, 3, 3, 2.5: bins from 0, 1, 2
        assert found.neither.quantiles["min"] == 2.5


@pytest.mark.parametrize(
    "network", [GCN(12, 4, 3), GIN(12, 4, 3), GAT(12, 4, 3, heads=2)], ids=lambda one: one.name
)
def test_gradients_are_those_of_the_dense_networks_training_loss(network: Any) -> None:
    task, state = toy_task(), torch.get_rng_state()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = start_gradients(network, task)
    score = torch.ones(60, requires_grad=True)
    logits = network.eval()(task.x, task.graph, score)[task.train]
    loss = torch.nn.functional.cross_entropy(logits, task.y[task.train])
    weights = [network.get_parameter(name) for name in network.prunable]
    edges, *matrices = torch.autograd.grad(loss, [score, *weights])
    torch.testing.assert_close(found.edges, edges.abs())
    torch.testing.assert_close(found.weights, torch.cat([part.flatten() for part in matrices]).abs())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_gradients_of_a_users_model() -> None:
    network = PyGNetwork(seeded(USER_MODELS["GCN"]))
    found = start_gradients(network, NodeClassification.from_data(toy_data()))
    assert found.edges is not None
    assert found.edges.shape == (60,)
    assert found.weights.numel() == sum(shape.numel() for shape in network.weight_shapes.values())
    assert bool((found.weights > 0).any())


def test_gradients_fall_into_groups() -> None:
    task, network = toy_task(), GCN(12, 4, 3)
    gradients = start_gradients(network, task)
    full = Masks.full(60, network.weight_shapes)
    kept = torch.ones(12, 4)
    kept[3] = 0
    fewer = Masks(edges=drop(60, 7, 8), weights={**full.weights, "layer1.weight": Mask(kept)})
    edges, weights = (make(fewer, full, gradients) for make in (edge_gradient_groups, weight_gradient_groups))
    assert gradients.edges is not None
    assert edges.only_a.mean == pytest.approx(float(gradients.edges[7:9].mean()))
    assert weights.only_a.mean == pytest.approx(float(gradients.weights[12:16].mean()))
    assert (edges.only_b.count, edges.both.count, weights.neither.count) == (0, 0, 60 - 4)


class TestTickets:
    def test_a_ticket_and_itself(self, ticket: Ticket) -> None:
        found = compare_tickets(ticket, ticket)
        assert found.edges is not None
        assert found.weights is not None
        assert (found.edges.hamming, found.weights.hamming, found.same_start) == (0, 0, True)
        assert list(found.matrices) == list(ticket.masks.weights)

    def test_matrices_add_up(self, ticket: Ticket) -> None:
        other = quick_ticket(method="random", isolated=False, seed=3)
        found = compare_tickets(ticket, other)
        assert found.weights is not None
        assert not found.same_start
        for name in ("size", "pruned_a", "pruned_b", "pruned_both", "hamming"):
            assert sum(getattr(part, name) for part in found.matrices.values()) == getattr(found.weights, name)
        assert found.weights.pruned_a == found.weights.pruned_b > 0

    def test_another_graph_leaves_the_weights(self, ticket: Ticket) -> None:
        found = compare_tickets(ticket, quick_ticket(data=toy_data(directed=True), isolated=False))
        assert found.edges is None
        assert found.weights is not None
        assert found.same_start

    def test_another_model_leaves_the_edges(self, ticket: Ticket) -> None:
        found = compare_tickets(ticket, quick_ticket("gin", isolated=False))
        assert (found.weights, found.matrices, found.same_start) == (None, {}, False)
        assert found.edges is not None
        assert found.edges.size == 60

    def test_nothing_in_common(self, ticket: Ticket) -> None:
        other = quick_ticket("gin", toy_data(directed=True), isolated=False)
        with pytest.raises(InputError, match=r"share their graph or their model's shape.*\(got gcn on .*, gin on"):
            compare_tickets(ticket, other)
