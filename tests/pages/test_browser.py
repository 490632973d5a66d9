"""A report in a real browser, where one is at hand: nothing is fetched, nothing complains, controls work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastglt.pages import Material, gather, report_page
from tests.pages.browser import Browser, browser, executable
from tests.pages.stores import rows, study

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium is at hand")
WINDOWS = {"desktop": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, finished_run: Path) -> str:
    found = gather([finished_run])
    page = report_page(Material(rows=[*rows(study()), *found.rows[:1]], sources=["a <b> store"]))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page)
    return path.as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_page_opens_alone_and_fits(window: str, dark: bool, chromium: Browser, address: str) -> None:
    width, height = WINDOWS[window]
    chromium.look(width=width, height=height, dark=dark)
    chromium.open(address)
    assert chromium.complaints == []
    assert chromium.requests == [address]
    assert chromium.run("document.documentElement.scrollWidth") <= width
    shown = "[...document.querySelectorAll('figure svg')].filter(svg => svg.getClientRects().length)"
    assert chromium.run(f"{shown}.length") == chromium.run("document.querySelectorAll('figure').length")
    paper = chromium.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(21, 24, 27)" if dark else "rgb(255, 255, 255)")
    ink = chromium.run("getComputedStyle(document.querySelector('.role-axis-label text')).fill")
    assert ink == ("rgb(163, 171, 179)" if dark else "rgb(89, 97, 106)")


def test_the_controls_work(chromium: Browser, address: str) -> None:
    chromium.look(width=1200, height=900, dark=False)
    chromium.open(address)
    chromium.run("document.getElementById('theme').click(), document.getElementById('theme').click()")
    assert chromium.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 27)"
    heads = "[...document.querySelectorAll('[data-name=settings] th button')]"
    column = chromium.run(f"{heads}.findIndex(head => head.textContent === 'end of search')")
    cells = f"[...document.querySelectorAll('[data-name=settings] tbody tr')].map(row => row.cells[{column}])"
    for order in (1, -1):
        chromium.run(f"{heads}[{column}].click()")
        values = chromium.run(f"{cells}.map(cell => Number(cell.dataset.v))")
        assert values == sorted(values, reverse=order < 0)
    whole = chromium.run("document.querySelector('.zoomable svg').getAttribute('viewBox')")
    chromium.run("document.querySelector('[data-zoom=\"0.8\"]').click()")
    assert chromium.run("document.querySelector('.zoomable svg').getAttribute('viewBox')") != whole
    chromium.run("document.querySelector('[data-show=pruned]').click()")
    assert chromium.run("getComputedStyle(document.querySelector('.pruned_marks')).display") == "none"
    assert chromium.run("getComputedStyle(document.querySelector('.kept_marks')).display") != "none"


def test_what_is_downloaded_is_whole(chromium: Browser, address: str) -> None:
    chromium.open(address)
    chromium.run("URL.createObjectURL = blob => { (window.made ??= []).push(blob); return 'data:,'; }; 1")
    chromium.run(
        "document.querySelector('[data-save=table]').click(); document.querySelector('[data-save=svg]').click()"
    )
    table, drawing = chromium.run("Promise.all(window.made.map(blob => blob.text()))")
    assert table.splitlines()[0].startswith("method,graph,model,edges −%")
    assert len(table.splitlines()) == 6
    assert drawing.startswith("<svg")
    assert "var(--" not in drawing
    assert chromium.complaints == []
