"""A comparison for people: in a notebook as tables, and as pictures."""

from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.report.charts import Picture
from fastglt.report.notebook import grid
from fastglt.studies.compare import figures
from fastglt.studies.compare.between import by_sparsities
from fastglt.studies.compare.results import Comparison, mean
from fastglt.studies.compare.table import row_of

KINDS = {
    "methods": figures.side_by_side,
    "verdicts": figures.verdicts,
    "sparsity": figures.over_sparsity,
    "front": figures.fronts,
}


def as_html(comparison: Comparison) -> str:
    """A table for each pair of sparsities, as the command prints it."""
    document = comparison.document()
    found = []
    for pair, cells in by_sparsities(document["cells"]):
        rows = [row_of(cell) for cell in cells]
        title = f"{document['dataset']} · {document['model']} · {figures.removed(*pair)}"
        found.append(grid(title, list(rows[0]), [list(row.values()) for row in rows]))
    return f"<div>{''.join(found)}</div>"


def picture(comparison: Comparison, kind: str) -> Picture:
    """The first picture of a kind; refused where the runs give none."""
    if kind not in KINDS:
        raise unknown_name("picture", kind, KINDS)
    document = comparison.document()
    cells = [_with_costs(cell, document["metric"]) for cell in document["cells"]]
    found = next(KINDS[kind](f"{document['dataset']} · {document['model']}", cells), None)
    if found is None:
        raise InputError(f"the picture '{kind}' needs more to show (got {len(cells)} cells); try another kind")
    return found


def _with_costs(cell: dict[str, Any], metric: str | None) -> dict[str, Any]:
    names = ("macs_dense", "macs_ticket")
    costs = {name: mean([row[name] for row in cell["runs"] if row[name] is not None]) for name in names}
    return {**cell, "label": cell["method"], "metric": metric, "mean": {**cell["mean"], **costs}}
