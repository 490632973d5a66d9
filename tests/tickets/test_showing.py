from dataclasses import replace

import pytest

from fastglt import InputError, Ticket
from tests.toy_data import quick_ticket, toy_data


def test_a_ticket_shows_what_it_keeps(ticket: Ticket) -> None:
    shown = ticket._repr_html_()
    assert "42 of 60 (−30.00 %)" in shown
    assert "search test accuracy" in shown


def test_names_in_a_ticket_are_text(ticket: Ticket) -> None:
    hostile = replace(ticket, model={**ticket.model, "name": "<script>alert(1)</script>"})
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_a_search_is_drawn_from_its_history(ticket: Ticket) -> None:
    picture = ticket.plot()
    assert picture.title == "gcn · fastglt · seed 0: the search"
    assert "70.0 % of edges and 50.0 % of weights are kept" in picture.text
    with pytest.raises(InputError, match="if the ticket has its history"):
        replace(ticket, history=()).plot()


def test_a_graph_is_drawn_with_its_data(ticket: Ticket) -> None:
    picture = ticket.plot(toy_data())
    assert picture.text == "42 kept and 18 pruned edges between 30 nodes."
    nodes = picture.spec["layer"][2]["data"]["values"]
    assert {node["group"] for node in nodes} == {"class 0", "class 1", "class 2"}
    with pytest.raises(InputError, match=r"found on another graph|decides on 60 edges"):
        ticket.plot(toy_data(directed=True))


def test_a_users_model_is_shown_too() -> None:
    from tests.toy_data import USER_MODELS, seeded

    ticket = quick_ticket(seeded(USER_MODELS["GCN"]), isolated=False)
    assert "a graph lottery ticket" in ticket._repr_html_()
    assert ticket.plot().title.startswith("pyg · fastglt")
