"""A ticket on a graph that has changed: exact counts, its rule for new edges, weights that go on, drift."""

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fastglt import Budget, InputError, Ticket, compile_ticket, evaluate, find_ticket, update_ticket
from fastglt.methods.parts.schedules import kept_count
from fastglt.tickets.drift import Drift, since_search
from fastglt.tickets.update import method_of
from tests.helpers import both_ways, randn
from tests.toy_data import FEATURES, NODES, PAIRS, quick_ticket, toy_data

BUDGET = Budget(oneshot_epochs=3, denoise_epochs=6, interval=2, lr=0.01)
MORE = [(0, 30), (1, 30), (2, 31), (30, 31), (3, 15), (4, 9)]  # to two new nodes, and between old ones


def grown(pairs: list[tuple[int, int]] | None = None, nodes: int = NODES + 2) -> Data:
    """The toy data with two more nodes, which are in no split, and some edges more."""
    old = toy_data()
    extra = nodes - NODES
    masks = {
        f"{part}_mask": torch.cat([old[f"{part}_mask"], torch.zeros(extra, dtype=torch.bool)])
        for part in ("train", "val", "test")
    }
    return Data(
        x=torch.cat([old.x, randn(extra, FEATURES, seed=9)]),
        y=torch.cat([old.y, torch.zeros(extra, dtype=torch.int64)]),
        edge_index=both_ways([*PAIRS, *MORE] if pairs is None else pairs),
        **masks,
    )


@pytest.fixture(scope="module")
def forest() -> Ticket:
    given: dict[str, Any] = {"graph_sparsity": 0.25, "weight_sparsity": 0.6, "hidden": 8, "budget": BUDGET}
    return find_ticket("gcn", toy_data(), method="forest", isolated=False, **given)


def pairs_kept(ticket: Ticket, data: Data) -> set[tuple[int, int]]:
    kept = ticket.prune(data).edge_index
    return {(int(a), int(b)) for a, b in kept.T if a < b}


def test_kept_edges_stay_and_the_rule_chooses_among_new_ones_to_the_exact_count(forest: Ticket) -> None:
    later = update_ticket(forest, toy_data(), grown(), epochs=0)
    assert later.masks.edges.size == 66
    assert later.masks.edges.count == kept_count(0.25, 66)
    before, after = pairs_kept(forest, toy_data()), pairs_kept(later, grown())
    assert before < after
    assert after - before <= set(MORE)
    assert later.masks.weights == forest.masks.weights
    assert later.graph_fingerprint != forest.graph_fingerprint
    assert later.initial_hash == forest.initial_hash


def test_without_epochs_the_weights_stay_and_with_some_they_go_on(forest: Ticket) -> None:
    still = update_ticket(forest, toy_data(), grown(), epochs=0)
    assert all(torch.equal(still.weights[name], value) for name, value in forest.weights.items())
    moved = update_ticket(forest, toy_data(), grown(), epochs=6)
    assert [record.epoch for record in moved.history] == list(range(7))
    assert moved.scores["search_val"] >= still.scores["search_val"]
    for name, mask in moved.masks.weights.items():
        assert not moved.weights[name][~mask.kept].any()


def test_a_graph_that_did_not_change_gives_the_same_ticket(forest: Ticket) -> None:
    same = update_ticket(forest, toy_data(), toy_data(), epochs=0)
    assert same.masks == forest.masks
    assert same.graph_fingerprint == forest.graph_fingerprint
    assert same.scores["search_val"] == forest.scores["search_val"]
    assert (
        same.config["update"] | {"agreed": 1.0, "changed": 0.0, "lost": 0.0, "search_again": []}
        == same.config["update"]
    )


def test_soft_edge_masks_go_along_and_new_edges_have_the_mean() -> None:
    ticket = quick_ticket(isolated=False)
    assert ticket.soft_edge_mask is not None
    later = update_ticket(ticket, toy_data(), grown(), epochs=0)
    assert later.soft_edge_mask is not None
    old = dict(zip(sorted(pairs_kept(ticket, toy_data())), ticket.soft_edge_mask.tolist(), strict=True))
    new = dict(zip(sorted(pairs_kept(later, grown())), later.soft_edge_mask.tolist(), strict=True))
    assert {pair: new[pair] for pair in old} == old
    mean = float(ticket.soft_edge_mask.mean())
    assert all(new[pair] == pytest.approx(mean) for pair in new.keys() - old.keys())


def test_removed_edges_and_nodes_are_made_up_for_by_pruned_ones(forest: Ticket) -> None:
    lost = pairs_kept(forest, toy_data())
    gone = sorted(lost)[:20]
    left = grown([pair for pair in PAIRS if tuple(sorted(pair)) not in gone], nodes=NODES)
    later = update_ticket(forest, toy_data(), left, epochs=0)
    assert later.masks.edges.count == kept_count(0.25, 40)
    facts = later.config["update"]
    assert (facts["edges_removed"], facts["edges_added"], facts["nodes_removed"]) == (20, 0, 0)
    # without its pruned edges the ticket keeps too much, and the rule chooses among what it kept
    dense = grown(sorted(lost), nodes=NODES)
    fewer = update_ticket(forest, toy_data(), dense, epochs=0)
    assert fewer.masks.edges.count == kept_count(0.25, 45)
    assert pairs_kept(fewer, dense) < lost


def test_nodes_may_come_in_any_order_if_it_is_said(forest: Ticket) -> None:
    old, turned = toy_data(), torch.arange(NODES).flip(0)
    data = Data(
        x=old.x[turned],
        y=old.y[turned],
        edge_index=NODES - 1 - old.edge_index,
        train_mask=old.train_mask[turned],
        val_mask=old.val_mask[turned],
        test_mask=old.test_mask[turned],
    )
    later = update_ticket(forest, old, data, nodes_before=turned, epochs=0)
    mirrored = {(NODES - 1 - b, NODES - 1 - a) for a, b in pairs_kept(forest, old)}
    assert pairs_kept(later, data) == mirrored
    assert later.config["update"]["agreed"] == 1.0


def test_an_updated_ticket_is_an_ordinary_one(forest: Ticket, tmp_path: object) -> None:
    later = update_ticket(forest, toy_data(), grown(), epochs=2)
    assert later.config["method"] == "forest"
    assert compile_ticket(later, grown()).logits().shape == (NODES + 2, 3)
    assert len(evaluate(later, None, grown(), seeds=[0]).ticket_scores) == 1
    again = update_ticket(later, grown(), grown([*PAIRS, *MORE, (5, 20)]), epochs=0)
    assert again.config["update"]["number"] == 2
    assert again.config["update"]["edges_changed"] == 7
    assert again.config["update"]["search_edges"] == 60


def test_low_degrees_are_the_rule_of_fastglt_and_teddy(forest: Ticket) -> None:
    hub = [*PAIRS, (0, 10), (0, 13), (0, 16), (0, 19), (5, 22)]
    for method in ("fastglt", "teddy"):
        given: dict[str, Any] = {"graph_sparsity": 0.8, "weight_sparsity": 0.0, "hidden": 8, "budget": BUDGET}
        ticket = find_ticket("gcn", toy_data(), method=method, isolated=False, **given)
        later = update_ticket(ticket, toy_data(), grown(hub, nodes=NODES), epochs=0)
        assert pairs_kept(later, grown(hub, nodes=NODES)) - pairs_kept(ticket, toy_data()) == {(5, 22)}


def test_a_method_that_nobody_knows_draws_its_new_edges(forest: Ticket) -> None:
    unknown = forest.with_config(method="transfer", options={})
    assert method_of(unknown).name == "fixed"
    later = update_ticket(unknown, toy_data(), grown(), epochs=0)
    assert later.config["method"] == "transfer"
    assert later.masks.edges.count == kept_count(0.25, 66)


def test_the_rule_for_a_new_search_names_its_reasons() -> None:
    assert Drift(lost=0.01, changed=0.2, agreed=0.9).reasons == []
    assert Drift(lost=0.02, changed=0.3, agreed=0.8).reasons == [
        "the validation score has fallen by 2.0 points since the search",
        "30 % of the edges have come or gone since the search",
        "20 % of the nodes are predicted otherwise",
    ]
    fresh = {"number": 0, "search_val": 0.5, "search_edges": 9, "edges_changed": 0}
    for record in (None, "no record", {"number": "many"}):
        assert since_search(record, val=0.5, edges=9) == fresh  # type: ignore[arg-type]


def test_what_does_not_fit_is_refused(forest: Ticket) -> None:
    wider = grown()
    wider.x = torch.cat([wider.x, wider.x], dim=1)
    with pytest.raises(InputError, match=r"must have the 6 features of the one before \(got 12\)"):
        update_ticket(forest, toy_data(), wider)
    more = grown()
    more.y[0] = 3
    with pytest.raises(InputError, match=r"must have the 3 classes of the one before \(got 4\)"):
        update_ticket(forest, toy_data(), more)
    with pytest.raises(InputError, match=r"which of the 30 nodes are left"):
        update_ticket(forest, toy_data(), toy_data().subgraph(torch.arange(20)))
    with pytest.raises(InputError, match=r"once at most \(got one twice\)"):
        update_ticket(forest, toy_data(), toy_data(), nodes_before=torch.zeros(NODES, dtype=torch.int64))
    numbers: Any = list(range(NODES))
    with pytest.raises(InputError, match=rf"nodes_before must be an int64 tensor of {NODES} nodes \(got list\)"):
        update_ticket(forest, toy_data(), toy_data(), nodes_before=numbers)
    with pytest.raises(InputError, match=r"epochs must not be negative \(got -1\)"):
        update_ticket(forest, toy_data(), grown(), epochs=-1)
    with pytest.raises(InputError, match=r"decides on 60 edges \(got a graph with 66\)"):
        update_ticket(forest, grown(), toy_data())
    with pytest.raises(InputError, match="both graphs must be directed, or none"):
        update_ticket(forest, toy_data(), toy_data(directed=True))
