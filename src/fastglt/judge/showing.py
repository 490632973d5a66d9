"""A verdict for people: in a notebook as a table, and as a picture."""

import math
from typing import Any

from fastglt.judge.verdict import Verdict
from fastglt.report.charts import Picture
from fastglt.report.charts.scores import intervals
from fastglt.report.notebook import grid, text
from fastglt.report.wording import percent, signed


def as_html(verdict: Verdict) -> str:
    """What it says, and the scores of every seed."""
    rows = [
        (_pair(verdict, place), percent(dense), percent(ticket), signed(ticket - dense))
        for place, (dense, ticket) in enumerate(zip(verdict.dense_scores, verdict.ticket_scores, strict=True))
    ]
    table = grid("test scores, %", ("seed", "dense", "ticket", "difference, points"), rows)
    said = "".join(f"<p>{text(line)}</p>" for line in str(verdict).splitlines())
    return f"<div>{said}{table}</div>"


def picture(verdict: Verdict) -> Picture:
    """Ticket minus dense for every seed, and the mean with its interval; of a distilled ticket, against both."""
    rows = [row for one in (verdict, verdict.distilled) if one is not None for row in _rows(one)]
    confidence = 100 * (1 - 2 * verdict.level)
    return intervals(rows, margin=100 * verdict.margin, confidence=confidence, title=verdict.sentence)


def _rows(verdict: Verdict) -> list[dict[str, Any]]:
    against = f"against {verdict.against.replace('_', ' ')}"
    low, high = (None if math.isnan(end) else 100 * end for end in verdict.interval)
    mean: dict[str, Any] = {"label": "mean", "difference": 100 * verdict.difference, "low": low, "high": high}
    seeds: list[dict[str, Any]] = [
        {"label": f"seed {_pair(verdict, place)}", "difference": 100 * difference, "low": None, "high": None}
        for place, difference in enumerate(verdict.differences)
    ]
    return [
        {**row, "score": against, "about": f"{row['label']}: {row['difference']:+.2f} points {against}"}
        for row in (mean, *seeds)
    ]


def _pair(verdict: Verdict, place: int) -> str:
    """A seed, with its split where there are several."""
    split = f", split {verdict.split_seeds[place]}" if verdict.split_seeds else ""
    return f"{verdict.seeds[place]}{split}"
