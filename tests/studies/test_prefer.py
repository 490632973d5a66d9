"""A preference chooses on validation scores alone, and says so when nothing qualifies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastglt import InputError
from fastglt.judge.verdict import Verdict
from fastglt.methods import Targets
from fastglt.studies.extreme.hunt import Answer, Question
from fastglt.studies.prefer import PREFERENCES, Preferred, Way, _choose, _cost, prefer

TINY = "synthetic:nodes=60,edges=150,features=16,classes=3"
SHORT: dict[str, Any] = {"oneshot_epochs": 2, "denoise_epochs": 6, "interval": 2, "lr": 0.01}


class Made:
    """A study whose tickets are as good as dense up to some share of weights."""

    def __init__(self, last: float) -> None:
        self.last = last

    def run(
        self, trials: Sequence[tuple[str, Targets]], seeds: Sequence[int], *, plain_twins: bool
    ) -> tuple[list[Any], list[Any]]:
        assert plain_twins  # who chooses looks at no other opponent
        self.asked = [(targets, seed) for _, targets in trials for seed in seeds]
        return [], []


def made(monkeypatch: pytest.MonkeyPatch, preference: str, lasts: dict[str, float]) -> Preferred:
    """What is chosen where each way wins up to a share of weights; test scores would choose otherwise."""
    wanted = PREFERENCES[preference]
    studies: Any = {way: Made(lasts[way.label]) for way in wanted.ways}

    class Rows:
        failures: tuple[Any, ...] = ()

        def __init__(self, *_: object) -> None:
            way = next(way for way in studies if hasattr(studies[way], "asked"))
            study = studies[way]
            self.rows = [
                row(targets, seed, won=targets.weight_sparsity <= study.last) for targets, seed in study.asked
            ]
            del study.asked

    monkeypatch.setattr("fastglt.studies.prefer.Comparison", Rows)
    return _choose(preference, wanted, studies, {}, [0, 1, 2])


def row(targets: Targets, seed: int, *, won: bool) -> dict[str, Any]:
    val, kept = 0.8 + (0.01 if won else -0.01), 1000 * (1 - targets.weight_sparsity)
    return {
        "method": "forest",
        **targets.settings,
        "seed": seed,
        "reason": "",
        "dense_val": 0.8,
        "dense_test": 0.8,
        "search_val": val,
        "isolated_val": val,
        "search_test": 1.6 - val,
        "isolated_test": 1.6 - val,
        "weights_kept": kept,
        "weights_total": 1000,
        "edges_total": 80,
        "macs_ticket": kept,
    }


class TestChoice:
    def test_the_most_extreme_that_wins_on_validation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = made(monkeypatch, "small", {"units": 0.9, "units, taught": 0.98})
        assert found.way == Way(structure="units", taught=True)
        assert found.targets == Targets(graph_sparsity=0.5, weight_sparsity=0.98)

    def test_of_equals_the_one_without_a_teacher(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = made(monkeypatch, "fast", {"units": 0.97, "units, taught": 0.97})
        assert found.way == Way(structure="units", taught=False)

    def test_sparse_may_be_single_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lasts = {"units": 0.8, "weights": 0.9, "units, taught": 0.95, "weights, taught": 0.98}
        found = made(monkeypatch, "sparse", lasts)
        assert found.way == Way(structure="weights", taught=True)
        assert found.targets == Targets(graph_sparsity=0.9, weight_sparsity=0.98)

    def test_nothing_qualifies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = made(monkeypatch, "small", {"units": 0.0, "units, taught": 0.0})
        assert found.way is None
        assert found.document()["chosen"] is None
        assert found.tried

    @pytest.mark.parametrize("name", PREFERENCES)
    def test_ladders_rise(self, name: str) -> None:
        ladder = PREFERENCES[name].ladder
        assert list(ladder) == sorted(set(ladder))
        assert list(ladder) == sorted(ladder, key=lambda pair: (pair[1], pair[0]))


def test_costs_by_hand() -> None:
    targets = Targets(graph_sparsity=0.5, weight_sparsity=0.75)
    question = Question(method="forest", rule="plain", score="isolated")
    verdict = Verdict(seeds=(0,), dense_scores=(0.8,), ticket_scores=(0.8,))
    answer = Answer(question=question, targets=targets, chosen=verdict, confirmation=None, is_last=True)
    rows = [row(targets, 0, won=True)]
    assert [_cost(least, answer, rows) for least in ("macs", "bytes", "shares")] == [250, 4 * 250 + 10, 0.75]


class TestRefusals:
    def test_an_unknown_preference(self) -> None:
        with pytest.raises(InputError, match=r"unknown preference \(got 'tiny'\)"):
            prefer("tiny", TINY)

    def test_what_the_preference_chooses(self) -> None:
        with pytest.raises(InputError, match="structure must be left to the preference"):
            prefer("small", TINY, structure="units")

    def test_a_model_without_units_that_can_be_told_apart(self) -> None:
        with pytest.raises(InputError, match="norm looks at all units"):
            prefer("small", TINY, model="resgcn", model_options={"norm": "layer", "num_layers": 2}, hidden=8)


def test_really_run(tmp_path: Path) -> None:
    """Two ways along the ladder, one seed each; the second call computes nothing."""
    lines: list[str] = []
    settings: dict[str, Any] = {
        "budget": SHORT,
        "hidden": 8,
        "out": tmp_path / "runs",
        "store": tmp_path / "s.sqlite",
    }
    found = prefer("fast", TINY, seeds=[0], progress=lines.append, **settings)
    assert {row["method"] for row in found.tried} == {"units", "units, taught"}
    assert not found.failures
    again: list[str] = []
    assert prefer("fast", TINY, seeds=[0], progress=again.append, **settings).document() == found.document()
    assert any("at a time" in line or "1 run " in line for line in lines)
    assert not any("at a time" in line or "1 run " in line for line in again)
