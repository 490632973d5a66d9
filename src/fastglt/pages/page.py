"""The report: one page that holds all it needs, so that it opens anywhere and asks nobody for anything."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from fastglt import __version__
from fastglt.pages import html
from fastglt.pages.cells import Cell, cells_of
from fastglt.pages.headline import featured_run, headline
from fastglt.pages.material import Material
from fastglt.pages.one_ticket import OneTicket, pictures_of
from fastglt.pages.tables import PageTable, cell_table, run_table
from fastglt.report.charts import Picture
from fastglt.report.notebook import text
from fastglt.report.wording import counted
from fastglt.studies.compare import figures

_MOST_PANELS = 6  # graphs and models whose charts are drawn; tables have all
_MOST_CHARTS = 4  # of a kind, for each of them


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page; one without content is not shown."""

    name: str
    title: str
    about: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[PageTable] = ()
    zoomable: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a page says, before it is HTML."""

    sentence: str
    note: str
    sections: list[Section]
    picture: Picture | None = None  # of the sentence
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    runs: int = 0


def report_page(material: Material, *, data_root: Path | None = None, dataset: str | None = None) -> str:
    """A page of all runs, whole: scripts, styles and pictures are in it."""
    return as_html(report_of(material, data_root=data_root, dataset=dataset))


def report_of(material: Material, *, data_root: Path | None = None, dataset: str | None = None) -> Report:
    """What there is to say about runs."""
    cells, notes = cells_of(material.rows), list(material.notes)
    head = headline(cells)
    panels = figures.panels(cells)
    if len(panels) > _MOST_PANELS:
        notes.append(f"Charts show {_MOST_PANELS} of {len(panels)} pairs of graph and model; the tables have all.")
    sections = [*_study_sections(panels[:_MOST_PANELS])]
    run = featured_run(cells, head.cell)
    if run is not None:
        one = OneTicket(Path(run["ticket"]), run["settings"], dataset, data_root)
        sections += _ticket_sections(pictures_of(one, notes))
    elif head.cell is not None:
        notes.append("No ticket's file is there any more: searches and graphs cannot be shown.")
    tables = [cell_table(cells)] if cells else []
    tables += [run_table(material.rows)] if material.rows else []
    sections.append(Section(name="tables", title="Tables", tables=tables))
    return Report(
        sentence=head.sentence,
        note=head.note,
        picture=None if head.cell is None else next(figures.verdicts(_name(head.cell), [head.cell]), None),
        sections=[section for section in sections if section.pictures or section.tables],
        notes=notes,
        sources=material.sources,
        runs=len(material.rows),
    )


def _name(cell: Cell) -> str:
    return f"{cell['dataset'] or 'a graph'} · {cell['model']}"


def _study_sections(panels: Sequence[figures.Panel]) -> Iterator[Section]:
    kinds: dict[str, tuple[str, str, Callable[[str, Sequence[Cell]], Iterator[Picture]]]] = {
        "sparsity": ("Scores over sparsity", _SPARSITY, figures.over_sparsity),
        "verdicts": ("Verdicts", _VERDICTS, figures.verdicts),
        "methods": ("Methods side by side", _METHODS, figures.side_by_side),
        "front": ("Score against cost", _FRONT, figures.fronts),
    }
    for name, (title, about, make) in kinds.items():
        pictures = [picture for panel in panels for picture in list(make(*panel))[:_MOST_CHARTS]]
        yield Section(name=name, title=title, about=about, pictures=pictures)


def _ticket_sections(found: dict[str, list[Picture]]) -> Iterator[Section]:
    titles = {
        "graph": ("The graph, before and after", _GRAPH),
        "effects": ("What pruning did to the graph", _EFFECTS),
        "training": ("The search", _TRAINING),
        "cost": ("Cost by layer", _COST),
    }
    for name, (title, about) in titles.items():
        yield Section(name=name, title=title, about=about, pictures=found.get(name, ()), zoomable=name == "graph")


def as_html(report: Report, *, live: str | None = None) -> str:
    """The page; `live` names what it is made of when it is served, so that it can tell when there is more."""
    script, style = _asset("page.js"), _asset("page.css") + html.colour_rules()
    scripts = [script] if live is None else [script, _asset("live.js")]
    allowed = " ".join(f"'sha256-{_digest(one)}'" for one in scripts)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
    policy += "" if live is None else "; connect-src 'self'"
    under_way = "" if live is None else _LIVE.format(live=text(live))
    whole = (
        "This page is whole: it loads nothing from anywhere." if live is None else "Served to this machine alone."
    )
    links = "".join(f'<li><a href="#{part.name}">{text(part.title)}</a></li>' for part in report.sections)
    body = _sections(report.sections)
    notes = "".join(f"<li>{text(note)}</li>" for note in report.notes)
    told = f'<aside aria-label="Notes"><h2>Notes</h2><ul>{notes}</ul></aside>' if notes else ""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    sources = ", ".join(map(text, report.sources))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>fastglt report</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">To the results</a>
<header>
<p class="brand">fastglt report <button type="button" id="theme">Theme: as the system</button></p>
<h1>What was found</h1>
<p class="lead">{text(report.sentence)}</p>
<p class="soft">{text(report.note)}</p>
{"" if report.picture is None else html.figure(report.picture, 0)}</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="main">
{under_way}{told}
{body}
</main>
<footer><p class="soft">{counted(report.runs, "run")} from {sources}.
Made by fastglt {text(__version__)} on {made} UTC.
{whole}</p></footer>
<div id="tip" role="status" hidden></div>
{"".join(f"<script>{one}</script>" for one in scripts)}
</body>
</html>
"""


def _sections(sections: Sequence[Section]) -> str:
    number, parts = 0, []
    for section in sections:
        about = f"<p>{text(section.about)}</p>" if section.about else ""
        parts.append(f'<section id="{section.name}"><h2>{text(section.title)}</h2>{about}')
        for picture in section.pictures:
            number += 1
            parts.append(html.figure(picture, number, zoomable=section.zoomable))
        parts += [html.table(table) for table in section.tables]
        parts.append("</section>\n")
    return "".join(parts)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (files("fastglt.pages") / "assets" / name).read_text(encoding="utf-8")


_LIVE = """<section id="live" data-version="{live}"><h2>Under way</h2>
<p id="live-told" role="status">Asking for progress …</p>
<p class="tools"><button type="button" id="live-more" hidden>Show new results</button></p>
<div class="scroll" tabindex="0" role="region" aria-label="Runs under way"><table id="live-runs" hidden>
<caption>Runs that are not finished</caption><thead><tr><th scope="col">run</th><th scope="col">state</th>
<th scope="col">phase</th><th scope="col">progress</th><th scope="col">validation, %</th>
<th scope="col">seconds</th></tr></thead><tbody></tbody></table></div></section>
"""
_SPARSITY = (
    "Mean test scores over seeds; bands are one standard deviation. End of search is the network that the search "
    "leaves, retrained alone is the ticket trained from its initial weights."
)
_VERDICTS = (
    "Ticket minus dense, paired by seed, with the confidence interval of the difference. A ticket is shown to be "
    "no worse than the margin where its whole interval lies right of the dashed line."
)
_METHODS = "Methods at equal sparsities, budgets and seeds; lines are one standard deviation."
_FRONT = (
    "Nobody on the dashed line is beaten by another that is both cheaper and better. MACs are those really needed."
)
_GRAPH = "Arrow keys move, + and − zoom while the drawing has the focus."
_EFFECTS = "By the labels of all nodes, test nodes included: looked at here, never pruned by."
_TRAINING = "Scores while the search went on. A cut drops elements, a swap drops some and regrows others."
_COST = "Multiplications of one forward pass over all nodes that are really needed, dense beside ticket."
