"""A comparison for people: in a notebook as tables, and as pictures."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.report.charts import Picture
from fastglt.report.latex import latex_table
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
    return f"<div>{''.join(grid(*table) for table in _tables(comparison.document()))}</div>"


def as_latex(document: Mapping[str, Any]) -> str:
    """Those tables for a paper."""
    return "\n".join(latex_table(*table) for table in _tables(document))


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    for pair, cells in by_sparsities(document["cells"]):
        rows = [row_of(cell) for cell in cells]
        title = f"{document['dataset']} · {document['model']} · {figures.removed(*pair)}"
        yield title, list(rows[0]), [list(row.values()) for row in rows]


def picture(comparison: Comparison, kind: str) -> Picture:
    """The first picture of a kind; refused where the runs give none."""
    if kind not in KINDS:
        raise unknown_name("picture", kind, KINDS)
    document, cells = comparison.document(), picture_cells(comparison)
    found = next(KINDS[kind](f"{document['dataset']} · {document['model']}", cells), None)
    if found is None:
        raise InputError(f"the picture '{kind}' needs more to show (got {len(cells)} cells); try another kind")
    return found


def picture_cells(comparison: Comparison) -> list[dict[str, Any]]:
    """A comparison's cells with what figures need besides."""
    document = comparison.document()
    return [_with_costs(cell, document["metric"]) for cell in document["cells"]]


def _with_costs(cell: dict[str, Any], metric: str | None) -> dict[str, Any]:
    names = ("macs_dense", "macs_ticket")
    costs = {name: mean([row[name] for row in cell["runs"] if row[name] is not None]) for name in names}
    return {**cell, "label": cell["method"], "metric": metric, "mean": {**cell["mean"], **costs}}
