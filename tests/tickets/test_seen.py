"""What a ticket has seen of its graph: of tickets from which nodes were hidden, and of tickets for links."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fastglt import InputError, Ticket, compile_ticket, find_ticket, rank_edges, update_ticket
from fastglt.tickets.seen import classes_in, seen_in
from tests.tasks.links import link_data
from tests.toy_data import QUICK, quick_ticket, toy_data


@pytest.fixture(scope="module")
def hidden() -> Ticket:
    """A ticket from which six of thirty nodes were hidden, drawn by another split seed than the usual one."""
    return quick_ticket(inductive=0.2, split_seed=3)


def test_a_ticket_is_loaded_and_drawn_with_the_data_it_was_found_on(hidden: Ticket, tmp_path: Path) -> None:
    hidden.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", toy_data())
    assert loaded.masks == hidden.masks
    graph, x, labels = seen_in(hidden, toy_data())
    assert x is not None
    assert labels is not None
    assert (graph.num_nodes, x.fingerprint, labels.shape) == (24, hidden.feature_fingerprint, (24,))
    edges = hidden.masks.edges
    expected = f"{edges.count} kept and {edges.size - edges.count} pruned edges between 24 nodes."
    assert hidden.plot(toy_data()).text == expected
    with pytest.raises(InputError, match=r"found on another graph|decides on"):
        Ticket.load(tmp_path / "ticket.safetensors", toy_data(directed=True))


def test_a_ticket_for_links_is_drawn_without_what_is_held_back() -> None:
    options: dict[str, Any] = {
        "task": "link",
        "task_options": {"split_seed": 1},
        "hidden": 6,
        "budget": QUICK,
        "isolated": False,
    }
    ticket = find_ticket("gcn", link_data(), graph_sparsity=0.3, weight_sparsity=0.5, **options)
    edges = ticket.masks.edges
    assert ticket.plot(link_data()).text.startswith(
        f"{edges.count} kept and {edges.size - edges.count} pruned edges"
    )


def test_what_needs_the_whole_graph_refuses_hidden_nodes(hidden: Ticket) -> None:
    def asked(use: str, data: Data) -> object:
        uses: dict[str, Callable[[], object]] = {
            "compiled": lambda: compile_ticket(hidden, data),
            "updated": lambda: update_ticket(hidden, data, data),
            "applied to data": lambda: hidden.prune(data),
            "asked for suspects": lambda: rank_edges(data, ticket=hidden),
        }
        return uses[use]()

    for use in ("compiled", "updated", "applied to data", "asked for suspects"):
        with pytest.raises(InputError, match=f"a ticket that is {use} must have seen its whole graph"):
            asked(use, toy_data())


def test_classes_are_one_whole_number_a_node() -> None:
    whole = torch.tensor([0, 2, 1])
    assert classes_in(whole, 3) is whole
    assert [classes_in(labels, 3) for labels in (None, whole.float(), whole[:2], whole[:, None])] == [None] * 4
