import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fastglt.pages import Material, gather, report_page
from fastglt.pages.html import as_csv
from fastglt.pages.page import report_of
from fastglt.runs.store import Entry
from tests.pages.stores import dense, rows, study, ticket

HOSTILE = "<script>alert(1)</script>\"'&"


class Seen(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def page() -> str:
    return report_page(Material(rows=rows(study()), sources=["runs/results.sqlite"]))


def test_the_page_says_what_was_found_and_has_its_sections(page: str) -> None:
    seen = Seen(page)
    assert "a ticket of fastglt, retrained alone, is winning" in seen.words
    ids = [attributes["id"] for tag, attributes in seen.tags if tag == "section"]
    assert ids == ["sparsity", "verdicts", "methods", "front", "tables"]
    assert "No ticket's file is there any more" in seen.words
    assert seen.count("table") == 2


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    seen = Seen(page)
    given = [value or "" for _, found in seen.tags for name, value in found.items() if name in ("src", "href")]
    assert given
    assert all(value.startswith(("#", "data:")) for value in given)
    assert not re.search(r"url\((?!#)|@import", page)
    (policy,) = [found["content"] or "" for tag, found in seen.tags if found.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_names_with_html_in_them_are_text() -> None:
    hostile = [dense(0, 0.8, dataset=HOSTILE)]
    hostile += [ticket(0, 0.8, dataset=HOSTILE, method=HOSTILE, graph=graph) for graph in (0.2, 0.5)]
    page = report_page(Material(rows=rows(hostile), sources=[HOSTILE], notes=[HOSTILE]))
    seen = Seen(page)
    assert seen.count("script") == 1  # the page's own
    assert seen.words.count("alert(1)") > 5
    assert not any(name.startswith("on") for _, found in seen.tags for name in found)


def test_every_figure_is_described(page: str) -> None:
    drawings = [found for tag, found in Seen(page).tags if tag == "svg"]
    assert len(drawings) == 2 * page.count("<figure")  # for wide and for narrow windows
    assert all(found["role"] == "img" and found["aria-label"] for found in drawings)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_an_empty_store_gives_a_page_that_says_so() -> None:
    words = Seen(report_page(Material(notes=["no run is recorded yet"]))).words
    assert "No ticket has been found yet." in words
    assert "no run is recorded yet" in words


def test_a_real_run_has_its_search_graph_effects_and_cost(finished_run: Path) -> None:
    report = report_of(gather([finished_run]))
    names = [section.name for section in report.sections]
    assert names == ["verdicts", "graph", "effects", "training", "cost", "tables"]
    assert report.notes == []
    (graph,) = next(section.pictures for section in report.sections if section.name == "graph")
    assert graph.text == "160 kept and 40 pruned edges between 80 nodes."


def test_a_ticket_whose_graph_is_not_known_keeps_its_search(finished_run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((finished_run / "ticket.safetensors").read_bytes())
    report = report_of(gather([alone]))
    assert [section.name for section in report.sections] == ["verdicts", "training", "tables"]
    assert len(report.notes) == 1
    assert "the ticket's graph must be named" in report.notes[0]


def test_a_thousand_runs_stay_small() -> None:
    many = [one for seed in range(20) for one in [dense(seed, 0.8), *_tickets(seed)]]
    assert len(many) >= 1000
    page = report_page(Material(rows=rows(many)))
    assert len(page.encode()) < 10_000_000
    assert Seen(page).count("tr") > 1000


def _tickets(seed: int) -> list[Entry]:
    names = ("fastglt", "oneshot", "random", "ugs", "snip", "grasp", "ace")
    return [ticket(seed, 0.8, method=name, graph=0.2, weight=w) for name in names for w in (*_WEIGHTS,)]


_WEIGHTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def test_what_a_spreadsheet_would_compute_is_text() -> None:
    assert as_csv([{"method": "=1+1", "mean": -3, "about": "left out"}]) == "method,mean\n'=1+1,-3\n"
