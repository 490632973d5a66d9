"""Tables and figures on a tiny graph that stands in for the paper's: every run is a real one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastglt.data.named import NAMED, Named
from fastglt.data.synthetic import SyntheticGraph
from fastglt.runs.engine import Outcome
from fastglt.runs.plan import Run
from fastglt.runs.worker import work
from fastglt.studies.paper import ITEMS, Scope
from fastglt.studies.paper.reproduction import Line, Reproduction
from fastglt.studies.paper.scope import at_hand

TINY = SyntheticGraph.parse("nodes=80,edges=200,features=16,classes=3")


class HereEngine:
    """Executes runs in this process."""

    def __init__(self, jobs: int, *, logs: Path, **job_settings: Any) -> None:
        self.stop, self._job_settings = False, job_settings

    def run(self, runs: Sequence[Run]) -> Any:
        for run in runs:
            work(run.job(**self._job_settings))
            yield Outcome(run=run, metrics=run.result())


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scope:
    """Two seeds of six epochs; "cora" is a tiny graph, which is at hand."""
    for name in ("cora", "citeseer"):
        monkeypatch.setitem(NAMED, name, Named(source=TINY, about="a stand-in", size=None))
    settings = {
        "hidden": 8,
        "budget": {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2},
        "out": tmp_path / "runs",
        "store": tmp_path / "store.sqlite",
        "engine": HereEngine,
        "threads": 1,
        "options": None,
    }
    return Scope(size="quick", settings=settings)


def test_decays_stand_beside_the_papers(scope: Scope) -> None:
    found = ITEMS["table6"].make(scope)
    assert [line.what for line in found.lines] == [f"cora gcn, κ = {decay}" for decay in (1, 2, 3)]
    assert [line.published for line in found.lines] == [0.8009, 0.7984, 0.7986]
    assert all(len(line.ours) == 2 for line in found.lines)
    assert found.summary.startswith("Of 3 scores beside published ones: ")
    assert found.sentences[0].startswith("cora gcn, κ = 1: ours ")
    assert [row["published"] for row in found.document()["lines"]] == [0.8009, 0.7984, 0.7986]
    assert r"cora gcn, $\kappa$ = 1" in found.latex()
    again = ITEMS["table6"].make(scope)
    assert again.document() == found.document()  # from the store


def test_the_first_table_has_scores_times_and_macs(scope: Scope) -> None:
    found = ITEMS["table1"].make(scope)
    assert [line.what.split(", ", 1)[1] for line in found.lines] == [
        "dense",
        "fastglt, 93 % of weights removed, end of search",
        "fastglt, retrained alone",
        "fastglt, time of a search",
        "MACs as the paper counts",
        "MACs really needed",
    ]
    assert found.lines[0].published == 0.8025
    assert "(−92.8 %)" in found.lines[4].value  # 141 of 152 weights
    assert found.lines[3].paper == "1.63 × dense"


def test_one_shot_and_fastglt_each_at_its_own_sparsity(scope: Scope) -> None:
    found = ITEMS["table7"].make(scope)
    told = [(line.what, line.published) for line in found.lines]
    assert told == [
        ("cora gcn, oneshot, 15 % of edges removed", 0.8009),
        ("cora gcn, fastglt, 35 % of edges removed", 0.8033),
    ]


def test_extreme_sparsities_stand_beside_the_papers(scope: Scope) -> None:
    found = ITEMS["table8"].make(scope)
    assert [line.paper for line in found.lines] == ["15 %", "35 %"]
    assert all(line.value for line in found.lines)
    assert found.summary == "Nothing here has a published score to stand beside."


def test_without_the_graph_there_is_a_substitute_and_no_published_number(tmp_path: Path) -> None:
    scope = Scope(settings={"data_root": tmp_path})
    assert not at_hand("cora", tmp_path)
    assert scope.graphs("cora") == ["digits"]


def test_a_full_scope_has_all_graphs_and_backbones(scope: Scope) -> None:
    full = Scope(size="full", settings=scope.settings)
    assert (full.graphs("cora", "citeseer"), len(full.all_seeds)) == (["cora", "citeseer"], 10)
    assert full.backbones == ("gcn", "gin", "gat")
    assert (scope.graphs("cora", "citeseer"), scope.all_seeds) == (["cora"], (0, 1))
    assert scope.few([1, 2, 3, 4, 5]) == [1, 3, 5]
    assert Scope(seeds=[7]).all_seeds == (7,)


def test_a_line_shows_what_it_has() -> None:
    assert Line(what="time", value="1.2 × dense", paper="1.63 × dense").cells == [
        "time",
        "1.2 × dense",
        "–",
        "1.63 × dense",
        "–",
    ]
    empty = Reproduction(name="fig0", title="nothing", lines=[Line(what="failed")])
    assert empty.lines[0].cells == ["failed", "–", "–", "–", "–"]
