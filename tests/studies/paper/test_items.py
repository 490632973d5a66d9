"""Tables and figures on a tiny graph that stands in for the paper's: every run is a real one."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastglt.data.named import NAMED, Named
from fastglt.data.synthetic import SyntheticGraph
from fastglt.errors import InputError
from fastglt.runs.engine import Outcome
from fastglt.runs.plan import Run
from fastglt.runs.worker import work
from fastglt.studies.paper import ITEMS, Scope, cost_of, forecast_of, recorded_rows
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
    assert found.summary == "What the paper has here are no scores: its numbers stand beside ours without a test."
    seeds = len(scope.all_seeds)
    assert f"on the validation scores of {seeds} seed" in found.sentences[0]


def test_without_the_graph_there_is_a_substitute_and_no_published_number(tmp_path: Path) -> None:
    scope = Scope(settings={"data_root": tmp_path})
    assert not at_hand("cora", tmp_path)
    assert scope.graphs("cora") == ["digits"]


def test_a_full_scope_has_all_graphs_and_backbones(scope: Scope) -> None:
    full = Scope(size="full", settings=scope.settings)
    assert (full.graphs("cora", "citeseer"), len(full.all_seeds)) == (["cora", "citeseer"], 10)
    assert full.backbones() == ("gcn", "gin", "gat")
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
    alike = Line(what="score", ours=(0.8, 0.801, 0.802), published=0.801)
    higher = Line(what="score", ours=(0.9, 0.901, 0.902), published=0.801)
    both = Reproduction(name="fig0", title="scores", lines=[alike, higher])
    assert "ones: 1 agrees, 1 higher (margin" in both.summary
    assert "ones: 2 agree (margin" in Reproduction(name="fig0", title="scores", lines=[alike, alike]).summary
    empty = Reproduction(name="fig0", title="nothing", lines=[Line(what="failed")])
    assert empty.lines[0].cells == ["failed", "–", "–", "–", "–"]


def test_masks_are_compared_with_iterative_ones(scope: Scope) -> None:
    options = {"ugs": {"round_epochs": 1}}
    quick = Scope(size="quick", seeds=[0], settings={**scope.settings, "options": options})
    found = ITEMS["fig2"].make(quick)
    told = [line.what for line in found.lines]
    assert told[0].startswith("cora gcn, one-shot and iterative, 9.8 % of edges removed")
    assert told[-1] == "cora gcn, mean gradient of weights that one-shot pruning alone removes"
    assert len(told) == 3 * 2 + 4
    (picture,) = found.pictures
    assert len(picture.spec["data"]["values"]) == 6
    assert "of 3 sparsities (the paper: at all)" in found.sentences[0]


def test_a_compiled_ticket_is_timed_against_three_dense_networks(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastglt.bench.infer.in_own_process", lambda job: 0)  # which knows no stand-in for Cora
    found = ITEMS["speedup"].make(scope)
    assert [line.what.split(" against ")[1] for line in found.lines] == [
        "our dense network",
        "our dense network, compiled in the same way",
        "stock PyG's dense network",
    ]
    assert all(line.value.endswith("× as fast") for line in found.lines)


@pytest.fixture
def rounds_scope(scope: Scope) -> Scope:
    """One seed; rounds of one epoch."""
    return Scope(size="quick", seeds=[0], settings={**scope.settings, "options": {"ugs": {"round_epochs": 1}}})


def test_curves_have_a_point_for_each_round_and_figures_share_runs(rounds_scope: Scope) -> None:
    found = ITEMS["fig4"].make(rounds_scope)
    edges, weights = found.pictures
    by_method = Counter(row["method"] for row in edges.spec["data"]["values"])
    assert by_method == {"fastglt": 3, "oneshot": 3, "random": 3, "forest": 3, "ugs": 14}
    assert weights.title == "cora gcn: end of search, all edges kept"
    assert sum("ugs" in line.what for line in found.lines) == 5  # at the others' sparsities alone
    assert found.lines[-1].what == "cora gcn, dense"
    assert found.lines[-1].published == 0.8025
    assert "cora gcn, edges: the most removed" in found.sentences[0]
    for shared in ("fig2", "fig5"):
        cost = cost_of(ITEMS[shared], rounds_scope, recorded_rows(rounds_scope))
        assert (cost.recorded, cost.epochs) == (cost.tickets, 0)
    timed = ITEMS["fig5"].make(rounds_scope)
    assert [line.paper for line in timed.lines] == ["–", "12 × FastGLT's (ogbn-arxiv)"] * 2
    assert len(timed.pictures) == 2


def test_intervals_and_starts(scope: Scope) -> None:
    small = {**scope.settings, "budget": {"oneshot_epochs": 2, "denoise_epochs": 20}}
    found = ITEMS["fig6"].make(Scope(size="quick", settings=small))
    told = [line.what for line in found.lines]
    assert told[:2] == ["citeseer gcn, an interval of 3 epochs", "citeseer gcn, an interval of 20 epochs"]
    assert (found.lines[2].paper, found.lines[2].value.endswith(" points")) == ("1.35 points", True)
    assert told[3:] == ["citeseer gcn, one-shot start, end of search", "citeseer gcn, random start, end of search"]
    assert [picture.title for picture in found.pictures] == [
        "citeseer gcn: the interval between swaps",
        "citeseer gcn: searches from either start",
    ]
    assert found.sentences[0].startswith("The best validation score of the search from a random start is reached ")


def test_large_graphs_have_stand_ins_that_go_by_their_own_name(scope: Scope, tmp_path: Path) -> None:
    bare = Scope(size="quick", settings={**scope.settings, "data_root": tmp_path})
    (ask,) = ITEMS["table2"].asks(bare)
    assert (ask.graph, ask.model) == ("digits", "resgcn")
    (tmp_path / "acl_collab").mkdir()
    (ask,) = ITEMS["table4"].asks(bare)
    assert ask.graph == "acl_collab (in place of ogbl-collab)"
    assert ask.settings["dataset"] == str(tmp_path / "acl_collab")
    assert ask.settings["model_options"]["num_layers"] == 3
    whole = Scope(size="full", settings=bare.settings)
    (ask,) = ITEMS["table4"].asks(whole)
    assert (ask.settings["hidden"], ask.settings["model_options"]["num_layers"]) == (128, 7)
    assert ask.methods == ("random", "fastglt", "ugs", "wdglt")


def test_extremes_of_large_graphs_name_what_is_missing(
    scope: Scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NAMED, "digits", Named(source=TINY, about="a stand-in", size=None))
    found = ITEMS["table2"].make(Scope(size="quick", settings={**scope.settings, "data_root": tmp_path}))
    assert [line.what for line in found.lines] == [
        f"digits resgcn, {method}, extreme share of edges removed" for method in ("random", "fastglt")
    ]
    assert [line.paper for line in found.lines] == ["–", "–"]
    assert found.sentences[1] == (
        "ogbn-arxiv is not at hand: `fastglt find --dataset ogbn-arxiv` says how to get it."
    )


def test_a_forecast_counts_shared_runs_once(rounds_scope: Scope) -> None:
    one = forecast_of([ITEMS["fig4"]], rounds_scope)
    both = forecast_of([ITEMS["fig4"], ITEMS["fig5"]], rounds_scope)
    assert one.runs == both.runs == 1 + 4 * (3 + 2) + 2
    assert not both.finished
    hunt = forecast_of([ITEMS["table8"]], rounds_scope)
    assert hunt.more["at_most_more_sparsities"] == 2


def test_a_list_of_graphs_and_backbones_is_followed(scope: Scope) -> None:
    chosen = Scope(only_graphs=["citeseer"], only_models=["gin"], settings=scope.settings)
    assert {(ask.graph, ask.model) for ask in ITEMS["table1"].asks(chosen)} == {("citeseer", "gin")}
    assert ITEMS["table1"].asks(chosen)[0].weights == pytest.approx(0.9833)


def test_a_graph_that_the_paper_has_not_goes_without_its_numbers(scope: Scope) -> None:
    chosen = Scope(size="quick", seeds=[0], only_graphs=["cora"], settings=scope.settings)
    found = ITEMS["table5"].make(chosen)  # Citeseer's in the paper
    assert {line.what.split(", ")[1] for line in found.lines} == {"one-shot start", "random start"}
    assert [line.paper for line in found.lines] == ["–"] * 4
    assert all(line.what.startswith("cora gcn") for line in found.lines)


@pytest.mark.parametrize(
    ("name", "graphs", "told"),
    [
        (
            "table2",
            ["cora"],
            "the graphs of table2 must be among ogbn-arxiv, ogbn-proteins, ogbl-collab (got cora)",
        ),
        (
            "fig1",
            ["cora", "citeseer"],
            "fig1 must be about one graph (got cora,citeseer); ask for one after the other",
        ),
        (
            "table1",
            ["pubmed"],
            "graphs that are asked for must be at hand (got pubmed); --data-root or FASTGLT_DATA",
        ),
        ("table4", ["ogbl-collab"], "graphs that are asked for must be at hand (got ogbl-collab); --data-root"),
    ],
)
def test_graphs_that_cannot_be_taken_are_refused(
    name: str, graphs: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTGLT_CACHE", str(tmp_path))
    scope = Scope(only_graphs=graphs, settings={"data_root": tmp_path})
    with pytest.raises(InputError, match=re.escape(told)):
        ITEMS[name].check(name, scope)


@pytest.mark.parametrize(
    ("name", "graphs", "models", "told"),
    [
        ("fig2", [], ["gin"], "the backbones of fig2 must be among gcn (got gin)"),
        ("table2", [], ["gcn"], "the backbones of table2 must be among resgcn (got gcn)"),
        ("fig1", [], ["gcn", "gin"], "fig1 must be about one backbone (got gcn,gin); ask for one after the other"),
        ("fig5", ["ogbn-arxiv"], ["gat"], "the backbones of fig5 on ogbn-arxiv must be among resgcn (got gat)"),
    ],
)
def test_backbones_that_cannot_be_taken_are_refused(
    name: str, graphs: list[str], models: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scope, "has", lambda _self, _graph: True)
    scope = Scope(only_graphs=graphs, only_models=models)
    with pytest.raises(InputError, match=re.escape(told)):
        ITEMS[name].check(name, scope)


@pytest.mark.parametrize("name", ["fig1", "fig5", "table7", "table8"])
def test_backbones_are_followed_where_the_paper_has_others(name: str, scope: Scope) -> None:
    chosen = Scope(only_models=["gin"], settings=scope.settings)
    ITEMS[name].check(name, chosen)
    assert {ask.model for ask in ITEMS[name].asks(chosen)} == {"gin"}


def test_a_page_of_it_has_the_table_and_the_sentences() -> None:
    made = Reproduction(name="fig0", title="T", lines=[Line(what="a|b", value="1")], sentences=["So it is."])
    page = made.markdown()
    assert page.startswith("**fig0.** T.\n\n| what | ours | n | paper | outcome |\n| --- |")
    assert "| a/b | 1 | – | – | – |" in page
    assert page.endswith("So it is.\n")


def test_searches_and_rounds_are_compared_over_edges_removed(rounds_scope: Scope) -> None:
    found = ITEMS["fig1"].make(Scope(size="quick", settings=rounds_scope.settings))
    assert [line.paper for line in found.lines[:2]] == ["1.63 × dense", "4 × dense"]
    assert [line.what.split(", ", 1)[1] for line in found.lines[2:]] == [
        f"{method}, {edges} % of edges removed" for edges in (10, 50) for method in ("fastglt", "ugs")
    ]
    assert found.sentences[0].startswith("FastGLT is shown to be better than UGS at ")
    assert len(found.pictures) == 2


def test_starts_are_compared_at_their_extremes(scope: Scope) -> None:
    found = ITEMS["table5"].make(Scope(size="quick", seeds=[0], settings=scope.settings))
    assert [line.paper for line in found.lines] == ["99.27 %", "94.22 %", "34.17 %", "23.16 %"]
    assert all(line.value for line in found.lines)


def test_the_pace_is_that_of_networks_as_wide(scope: Scope) -> None:
    ITEMS["table7"].make(Scope(size="quick", seeds=[0], settings=scope.settings))
    more = Scope(size="quick", seeds=[0, 1], settings=scope.settings)
    rows = recorded_rows(more)
    assert (cost_of(ITEMS["table7"], more, rows).seconds or 0) > 0
    wider = Scope(size="quick", seeds=[0], settings={**scope.settings, "hidden": 16})
    assert cost_of(ITEMS["table7"], wider, rows).seconds is None


def test_without_ours_published_scores_are_not_denied(scope: Scope) -> None:
    found = ITEMS["table7"].make(Scope(size="quick", recorded_only=True, settings=scope.settings))
    assert found.summary == "None of ours is there yet to stand beside the published scores."


def test_what_is_not_recorded_can_be_left_out(scope: Scope) -> None:
    table = Scope(size="quick", seeds=[0], settings=scope.settings)
    ITEMS["table7"].make(table)
    wider = Scope(size="quick", seeds=[0, 1], recorded_only=True, settings=scope.settings)
    found = ITEMS["table7"].make(wider)
    assert [len(line.ours) for line in found.lines] == [1, 1]
    assert found.sentences[-1] == "Not recorded, and left out here: 4 runs."  # with a dense twin, twice
    assert not found.failures
    hunted = ITEMS["table8"].make(wider)
    assert [line.value for line in hunted.lines] == ["not told: runs are missing"] * 2
    assert ITEMS["fig4"].make(wider).pictures == []


def test_tickets_that_are_looked_into_are_made_anew_where_the_store_alone_knows_them(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store may have runs from elsewhere, whose folders are not here; scores are taken from it all the same."""
    monkeypatch.setattr("fastglt.bench.infer.in_own_process", lambda job: 0)
    one = Scope(size="quick", seeds=[0], settings=scope.settings)
    looks, counts = ITEMS["speedup"], ITEMS["table1"]
    lines = looks.make(one).lines
    assert (cost_of(looks, one, recorded_rows(one)).recorded, forecast_of([looks], one).left) == (1, {})
    shutil.rmtree(scope.settings["out"])
    cost = cost_of(looks, one, recorded_rows(one))
    assert (cost.tickets, cost.recorded) == (1, 0)
    assert sum(forecast_of([looks], one).left.values()) == 1, "the ticket; its dense twin is known"
    assert not looks.make(Scope(size="quick", seeds=[0], recorded_only=True, settings=scope.settings)).lines
    assert [line.what for line in looks.make(one).lines] == [line.what for line in lines]
    counts.make(one)
    shutil.rmtree(scope.settings["out"])
    assert forecast_of([counts], one).left == {}, "scores need no folder"
