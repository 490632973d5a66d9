"""Tables and figures of scores: over sparsity, with κ, of one-shot and FastGLT, and what tickets cost."""

from collections.abc import Sequence
from typing import Any

from fastglt.report.charts import Picture
from fastglt.studies.compare import Comparison, figures
from fastglt.studies.compare.showing import picture_cells
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction, told
from fastglt.studies.paper.scope import Scope, published

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def fig1(scope: Scope) -> Reproduction:
    """Accuracy over graph sparsity with 90 % of weights removed, and the time of a search."""
    model = "gat" if scope.size == "full" else "gcn"  # the paper's is GAT's, which takes ten times as long
    (graph, *_), methods = scope.graphs("cora"), ("fastglt", "ugs")
    found = scope.compare(graph, model, methods, scope.few(_LEVELS), 0.9)
    lines = [_time_line(found, graph, model, method) for method in methods]
    for cell in found.cells():
        what = f"{graph} {model}, {cell['method']}, {100 * cell['graph_sparsity']:g} % of edges removed"
        lines.append(Line(what=what, ours=_scores(cell)))
    between = found.document()["between_methods"]
    better = sum(test["outcome"] == "worse" for test in between if test["score"] == "search")  # UGS's
    levels = sum(test["score"] == "search" for test in between)
    sentence = f"FastGLT scores shown to be better than UGS's at {better} of {levels} sparsities (the paper: all)."
    return _made("fig1", fig1, lines, [sentence], _curves(found), found)


def table1(scope: Scope) -> Reproduction:
    """The sparsest winning tickets: accuracy, search time, MACs and their savings."""
    lines, found = list[Line](), list[Comparison]()
    for graph in scope.graphs():
        for model in scope.backbones:
            weights = paper.WEIGHTS.get((graph, model), 93.0) / 100
            result = scope.compare(graph, model, ["fastglt"], 0.0, weights)
            found.append(result)
            (cell,) = result.cells()
            at = f"{graph} {model}"
            dense, ticket = (table.get((graph, model)) for table in (paper.DENSE, paper.TICKETS))
            lines += [
                Line(what=f"{at}, dense", ours=_scores(cell, "dense"), published=published(graph, dense)),
                Line(
                    what=f"{at}, fastglt, {100 * weights:g} % of weights removed, end of search",
                    ours=_scores(cell),
                    published=published(graph, ticket),
                ),
                Line(
                    what=f"{at}, fastglt, retrained alone", ours=_scores(cell, "isolated"), note="not in the paper"
                ),
                _time_line(result, graph, model, "fastglt"),
                *_macs_lines(cell, at),
            ]
    return _made("table1", table1, lines, told(lines), [], *found)


def table6(scope: Scope) -> Reproduction:
    """The decay κ of swaps: 1, 2 and 3."""
    lines, found, pictures = list[Line](), list[Comparison](), list[Picture]()
    methods = [f"fastglt[decay={decay}]" for decay in (1, 2, 3)]
    for graph in scope.graphs("cora", "citeseer"):
        for model in scope.backbones:
            result = scope.compare(graph, model, methods, paper.DECAY_EDGES.get(graph, 0.3), 0.9)
            found.append(result)
            known = paper.DECAY.get((graph, model), {})
            lines += [
                Line(
                    what=f"{graph} {model}, κ = {decay}",
                    ours=_scores(cell),
                    published=published(graph, known.get(decay)),
                )
                for decay, cell in enumerate(result.cells(), 1)
            ]
            pictures += figures.side_by_side(f"{graph} · {model}", picture_cells(result))
    return _made("table6", table6, lines, told(lines), pictures, *found)


def table7(scope: Scope) -> Reproduction:
    """One-shot pruning and FastGLT, each at the extreme graph sparsity that the paper has for it."""
    lines, found = list[Line](), list[Comparison]()
    for graph in scope.graphs():
        for model in ("gcn", "gat") if scope.size == "full" else ("gcn",):
            for method, table in paper.AT_EXTREME.items():
                score, edges = table.get((graph, model), (None, 35.0))
                result = scope.compare(graph, model, [method], edges / 100, 0.0)
                found.append(result)
                what = f"{graph} {model}, {method}, {edges:g} % of edges removed"
                (cell,) = result.cells()
                lines.append(Line(what=what, ours=_scores(cell), published=published(graph, score)))
    return _made("table7", table7, lines, told(lines), [], *found)


def _made(
    name: str,
    about: Any,
    lines: Sequence[Line],
    sentences: Sequence[str],
    pictures: Sequence[Picture],
    *found: Comparison,
) -> Reproduction:
    failures = [failure for result in found for failure in result.failures]
    title = str(about.__doc__).strip().rstrip(".")
    return Reproduction(
        name=name, title=title, lines=lines, sentences=sentences, pictures=pictures, failures=failures
    )


def _curves(found: Comparison) -> list[Picture]:
    document = found.document()
    return list(figures.over_sparsity(f"{document['dataset']} · {document['model']}", picture_cells(found)))


def _scores(cell: dict[str, Any], score: str = "search") -> list[float]:
    return [row[f"{score}_test"] for row in cell["runs"] if row[f"{score}_test"] is not None]


def _time_line(found: Comparison, graph: str, model: str, method: str) -> Line:
    """The time of a search, relative to one dense training of ours."""
    times = [row["relative_time"] for row in found.rows if row["method"] == method and row["relative_time"]]
    published_time = paper.RELATIVE_TIME.get(method, {}).get(model)
    return Line(
        what=f"{graph} {model}, {method}, time of a search",
        value=f"{sum(times) / len(times):.2f} × dense" if times else "–",
        paper="–" if published_time is None else f"{published_time:g} × dense",
        note="against a dense training of ours, on this machine",
    )


def _macs_lines(cell: dict[str, Any], at: str) -> list[Line]:
    """MACs as the paper counts them, and those that are really needed."""
    rows = [row for row in cell["runs"] if row["macs_dense"]]
    if not rows:
        return []
    row = rows[0]
    counts = {"as the paper counts": "macs_paper", "really needed": "macs"}
    ends = {name: (row[f"{key}_dense"] / 1e6, row[f"{key}_ticket"] / 1e6) for name, key in counts.items()}
    return [
        Line(
            what=f"{at}, MACs {name}",
            value=f"{dense:,.0f} M dense, {ticket:,.0f} M ticket (−{100 * (1 - ticket / dense):.1f} %)",
            note="an exact count",
        )
        for name, (dense, ticket) in ends.items()
    ]
