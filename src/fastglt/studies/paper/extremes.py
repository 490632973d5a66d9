"""Tables of extreme sparsities: the largest at which tickets still win, by the papers' rule."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastglt.report.wording import counted
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction, made
from fastglt.studies.paper.scope import GRAPHS, STAND_INS, SUBSTITUTE, Answer, Ask, Scope

_STEP = {"quick": "0.1:0.5:0.2", "normal": "0.05:0.8:0.05", "full": "0.05:0.9:0.05"}
_WEIGHTS = {"quick": "0.9,0.98", "normal": "bisect", "full": "bisect"}
_LARGE_STEP = {"quick": "0.05,0.3", "normal": "0.05:0.55:0.1", "full": "0.05:0.9:0.05"}
_STARTS = {"oneshot": ("one-shot start", "fastglt"), "random": ("random start", "fastglt[start=random]")}
SETS = ("ogbn-arxiv", "ogbn-proteins", "ogbl-collab")
KEYS = {"edges": "graph_sparsity", "weights": "weight_sparsity"}


def table5_asks(scope: Scope) -> list[Ask]:
    """Weights first, then edges."""
    return [
        Ask.on(
            side,
            levels,
            graph=graph,
            model=model,
            methods=tuple(method for _, method in _STARTS.values()),
            extreme=True,
        )
        for graph in scope.graphs("citeseer")
        for model in scope.backbones()
        for side, levels in (("weights", _WEIGHTS[scope.size]), ("edges", _STEP[scope.size]))
    ]


def table5(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Denoising from a random start against one from a one-shot start: extreme sparsities."""
    lines = [
        _line(answer, method, name, paper.STARTS[answer.ask.about][start].get(answer.ask.pair))
        for answer in answers
        for start, (name, method) in _STARTS.items()
    ]
    return made("table5", table5, lines, [_rule(scope)], [], answers)


def table8_asks(scope: Scope) -> list[Ask]:
    """Edges only."""
    methods = ("oneshot", "fastglt", *(["wdglt"] if scope.size == "full" else []))
    return [
        Ask(graph=graph, model=model, methods=methods, edges=_STEP[scope.size], extreme=True, about="edges")
        for graph in scope.graphs("cora", "pubmed")
        for model in scope.backbones("gcn", "gat")
    ]


def table8(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Extreme graph sparsities of one-shot pruning and FastGLT (in full also WD-GLT)."""
    lines = [
        _line(answer, method, method, paper.EDGES[method].get(answer.ask.pair))
        for answer in answers
        for method in answer.ask.methods
    ]
    return made("table8", table8, lines, [_rule(scope)], [], answers)


def table2_asks(scope: Scope) -> list[Ask]:
    """Edges of OGB's graphs, or of what stands in for them."""
    return _large_asks(scope, "edges", _LARGE_STEP[scope.size])


def table2(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Extreme graph sparsities on large graphs (28-layer ResGCN in full, three layers of 32 channels else)."""
    return _large("table2", table2, scope, answers)


def table4_asks(scope: Scope) -> list[Ask]:
    """Weights of networks on OGB's graphs, or on what stands in for them."""
    return _large_asks(scope, "weights", {"quick": "0.3,0.7"}.get(scope.size, "0.1:0.9:0.1"))


def table4(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Extreme weight sparsities on large graphs (28-layer ResGCN in full, three layers of 32 channels else)."""
    return _large("table4", table4, scope, answers)


def _large_asks(scope: Scope, side: str, levels: str) -> list[Ask]:
    """One set unless in full, or asked for; the bundled digits where none is there."""
    wanted = [name for name in SETS if not scope.only_graphs or name in scope.only_graphs]
    there = [(name, found) for name in wanted if (found := scope.large(name)) is not None]
    there = there if scope.size == "full" or scope.only_graphs else there[:1]
    methods = ("random", "fastglt", *(["ugs", "wdglt"] if scope.size == "full" else []))
    shared: dict[str, Any] = {"model": "resgcn", "methods": methods, "extreme": True}
    if not there:
        small = {"hidden": 32, "model_options": {"num_layers": 3}}
        return [Ask.on(side, levels, graph=SUBSTITUTE, settings=small, **shared)]
    return [
        Ask.on(side, levels, graph=_called(name, found["dataset"]), settings=found, **shared)
        for name, found in there
    ]


def _called(name: str, dataset: str) -> str:
    """What a set is called: what stands in for it by its own name, a set without OGB's features as that."""
    return name if dataset == name else f"{Path(dataset).name} (in place of {name})"


def _large(name: str, about: object, scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    lines = list[Line]()
    for answer in answers:
        known_as = _known_as(answer.ask, scope)
        for method in answer.ask.methods:
            number = paper.LARGE[answer.ask.about][method].get(known_as)
            lines.append(_line(answer, method, method, number, f"{known_as} resgcn"))
    return made(name, about, lines, [_rule(scope), *_missing(scope)], [], answers)


def _known_as(ask: Ask, scope: Scope) -> str:
    """What a graph is: only OGB's own set, with OGB's features, goes by its name."""
    from fastglt.data import load

    return load(ask.graph, root=scope.root).name if ask.graph in SETS else ask.graph


def _missing(scope: Scope) -> list[str]:
    """What stands in for OGB's sets, and which have nothing."""
    told = []
    for name in SETS:
        found = scope.large(name)
        if found is None:
            told.append(f"{name} is not at hand: `fastglt find --dataset {name}` says how to get it.")
        elif found["dataset"] != name:
            stand_in = STAND_INS[name]
            told.append(f"{stand_in} stands in for {name}; its figures are its own and never OGB's.")
    return told


def _rule(scope: Scope) -> str:
    seeds = counted(len(scope.all_seeds), "seed")
    return (
        f"Extreme sparsities are chosen on the validation scores of {seeds} by the papers' rule (mean at least "
        "dense), at the end of the search; `fastglt extreme` also tests and confirms them on fresh seeds."
    )


def _line(answer: Answer, method: str, name: str, number: float | None, at: str = "") -> Line:
    side = answer.ask.about
    key = KEYS[side]
    found = [row for row in answer.hunted.rows if row["method"] == method and row[key] is not None]
    known = number is not None and answer.ask.graph in (*GRAPHS, *SETS)
    return Line(
        what=f"{at or answer.at}, {name}, extreme share of {side} removed",
        value=" and ".join(f"{100 * row[key]:.2f} %" for row in found) or _nothing(answer, method),
        paper=f"{number:g} %" if known else "–",
        note="chosen on validation scores",
    )


def _nothing(answer: Answer, method: str) -> str:
    is_open = any(question.method == method for question in answer.hunted.hunt.open)
    return "not told: runs are missing" if is_open else "none that was tried wins"
