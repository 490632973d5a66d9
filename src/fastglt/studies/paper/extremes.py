"""Tables of extreme sparsities: the largest at which tickets still win, by the papers' rule."""

from typing import Any

from fastglt.studies.extreme import ExtremeResult
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction
from fastglt.studies.paper.scope import SUBSTITUTE, Scope

_RULE = (
    "Extreme sparsities are chosen on validation scores by the papers' rule (mean at least dense), at the end of "
    "the search; `fastglt extreme` also tests and confirms them on fresh seeds."
)
_STEP = {"quick": "0.1:0.5:0.2", "normal": "0.05:0.8:0.05", "full": "0.05:0.9:0.05"}


def table5(scope: Scope) -> Reproduction:
    """Denoising from a random start against one from a one-shot start: extreme sparsities."""
    methods = {"oneshot": "fastglt", "random": "fastglt[start=random]"}
    lines, failures = list[Line](), list[Any]()
    for graph in scope.graphs("citeseer"):
        for model in scope.backbones:
            for side, levels in (("weights", _weights(scope)), ("edges", {"graph_sparsity": _STEP[scope.size]})):
                result = scope.extreme(graph, model, list(methods.values()), **levels)
                failures += result.failures
                lines += [
                    _line(
                        result, graph, model, method, side, f"{start} start", paper.STARTS[side][start].get(model)
                    )
                    for start, method in methods.items()
                ]
    title = str(table5.__doc__).rstrip(".")
    return Reproduction(name="table5", title=title, lines=lines, sentences=[_RULE], failures=failures)


def table8(scope: Scope) -> Reproduction:
    """Extreme graph sparsities of one-shot pruning and FastGLT (in full also WD-GLT)."""
    methods = ["oneshot", "fastglt", *(["wdglt"] if scope.size == "full" else [])]
    lines, failures = list[Line](), list[Any]()
    for graph in scope.graphs("cora", "pubmed"):
        for model in ("gcn", "gat") if scope.size == "full" else ("gcn",):
            result = scope.extreme(graph, model, methods, graph_sparsity=_STEP[scope.size])
            failures += result.failures
            lines += [
                _line(result, graph, model, method, "edges", method, paper.EDGES[method].get((graph, model)))
                for method in methods
            ]
    title = str(table8.__doc__).rstrip(".")
    return Reproduction(name="table8", title=title, lines=lines, sentences=[_RULE], failures=failures)


def _weights(scope: Scope) -> dict[str, str]:
    return {"weight_sparsity": "0.9,0.98" if scope.size == "quick" else "bisect"}


def _line(
    result: ExtremeResult, graph: str, model: str, method: str, side: str, name: str, number: float | None
) -> Line:
    key = {"edges": "graph_sparsity", "weights": "weight_sparsity"}[side]
    found = [row for row in result.rows if row["method"] == method and row[key] is not None]
    known = number is not None and graph != SUBSTITUTE
    return Line(
        what=f"{graph} {model}, {name}, extreme share of {side} removed",
        value=" and ".join(f"{100 * row[key]:.2f} %" for row in found) or "none that was tried wins",
        paper=f"{number:g} %" if known else "–",
        note="chosen on validation scores",
    )
