"""Bars while trainings are under way, in Python."""

import io
import sys

import pytest
import torch

import fastglt
from fastglt.report import bars
from tests.toy_data import toy_data

QUICK = {"oneshot_epochs": 2, "denoise_epochs": 2, "interval": 1}


class Screen(io.StringIO):
    """What a terminal shows."""

    def isatty(self) -> bool:
        return True


def test_a_search_and_an_evaluation_can_show_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    data, screen = toy_data(), Screen()
    plain = fastglt.find_ticket("gcn", data, hidden=8, budget=QUICK)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", screen)
    ticket = fastglt.find_ticket("gcn", data, hidden=8, budget=QUICK, progress=True)
    assert "search" in screen.getvalue()
    assert "retrained" in screen.getvalue()
    assert "4/4" in screen.getvalue()
    assert ticket.masks == plain.masks
    assert all(torch.equal(plain.weights[name], value) for name, value in ticket.weights.items())
    screen.truncate(0)
    fastglt.evaluate(ticket, None, data, seeds=range(2), progress=True)
    assert "ticket, seed 1" in screen.getvalue()
    assert "4/4" in screen.getvalue(), "trainings"
    screen.truncate(0)
    fastglt.find_ticket("gcn", data, hidden=8, budget=QUICK, progress=False)
    assert screen.getvalue().strip("\0") == ""


def test_where_there_is_no_terminal_there_is_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    fastglt.find_ticket("gcn", toy_data(), hidden=8, budget=QUICK, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_function_is_called_as_before() -> None:
    called: list[str] = []
    fastglt.find_ticket(
        "gcn", toy_data(), hidden=8, budget=QUICK, progress=lambda phase, training, epochs: called.append(phase)
    )
    assert called == ["search"] * 4 + ["isolated"] * 4
    with bars.shown(None) as nothing:
        assert nothing is None
