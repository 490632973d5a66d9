"""Scores, and the time of a search, over the share of edges or of weights that is removed.

An iterative method is run once, to the sparsest; its rounds are its curve, as in its own paper. So sparsities are
those of rounds that remove 5 % of the edges, or 20 % of the weights, that are left.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from fastglt.report.charts import Picture
from fastglt.report.charts.scores import lines as line_chart
from fastglt.report.charts.scores import over_sparsity
from fastglt.report.wording import mean_and_deviation
from fastglt.studies.compare.results import deviation, mean
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction, made
from fastglt.studies.paper.scope import Answer, Ask, Scope, published

ITERATIVE = ("ugs", "wdglt")
SINGLE = ("fastglt", "oneshot", "random", "forest")
SIDES = {"edges": "graph_sparsity", "weights": "weight_sparsity"}
_LEFT = {"edges": 0.95, "weights": 0.8}  # after a round
_ROUNDS = {"edges": (2, 5, 8, 11, 14), "weights": (5, 8, 10, 12, 14)}
_QUICK = {"edges": (2, 8, 14), "weights": (10, 14)}
_IN_FULL = (17, 20)
_NEAR = 0.005  # of a sparsity
Point = dict[str, Any]  # of a curve: method, sparsity and scores, in fractions


def levels(scope: Scope, side: str) -> list[float]:
    """The sparsities of rounds, never a round beyond them.

    >>> levels(Scope(size="quick"), "edges")
    [0.0975, 0.3365, 0.5123]
    """
    rounds = _QUICK[side] if scope.size == "quick" else (*_ROUNDS[side], *(_IN_FULL * (scope.size == "full")))
    return [int(10_000 * (1 - _LEFT[side] ** number)) / 10_000 for number in rounds]


def side_asks(scope: Scope, graph: str, model: str, single: tuple[str, ...], **settings: Any) -> list[Ask]:
    """Edges with all weights, weights with all edges; each for methods of one search and for those of rounds."""
    asks = []
    for side in SIDES:
        wanted = levels(scope, side)
        shared: dict[str, Any] = {"graph": graph, "model": model, "settings": settings}
        asks.append(Ask.on(side, wanted, methods=single, **shared))
        asks.append(Ask.on(side, wanted[-1], methods=ITERATIVE[: 1 if scope.size == "quick" else None], **shared))
    return asks


def fig4_asks(scope: Scope) -> list[Ask]:
    """Nine panels in full: three graphs and three backbones."""
    pairs = [(graph, model) for graph in scope.graphs() for model in scope.backbones()]
    return [ask for graph, model in pairs for ask in side_asks(scope, graph, model, SINGLE)]


def fig4(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Scores over edges, and over weights, removed: FastGLT, UGS, WD-GLT (not quick), random, one-shot, forests."""
    lines, sentences, pictures = list[Line](), list[str](), list[Picture]()
    for at, side, group in _panels(answers):
        points = [point for answer in group for point in curve(answer, side)]
        lines += [_line(at, side, point) for point in points if _is_level(point, levels(scope, side))]
        dense = _dense_scores(group[0])
        if dense and points:
            ask = group[0].ask
            known = published(ask.graph, paper.DENSE.get(ask.pair))
            lines.append(Line(what=f"{at}, dense", ours=dense, published=known))
            sentences.append(_held(at, side, points, mean(dense) or 0.0))
            pictures.append(_picture(at, side, points, dense))
    return made("fig4", fig4, lines, sentences, pictures, answers)


def fig5_asks(scope: Scope) -> list[Ask]:
    """Some of figure 4's runs; in full, or asked for, the paper's graph, ogbn-arxiv with ResGCN."""
    wanted = "ogbn-arxiv" in (scope.only_graphs or (["ogbn-arxiv"] if scope.size == "full" else []))
    found = scope.large("ogbn-arxiv") if wanted else None
    if found is not None:
        return side_asks(scope, "ogbn-arxiv", "resgcn", ("fastglt",), **found)
    return side_asks(scope, scope.graphs()[0], scope.backbones()[0], ("fastglt",))


def fig5(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """The time of a search over edges, and over weights, removed: UGS, WD-GLT (not quick) and FastGLT."""
    lines, pictures = list[Line](), list[Picture]()
    for at, side, group in _panels(answers):
        points = [point for answer in group for point in times(answer, side)]
        lines += _slower(at, side, points)
        if points:
            pictures.append(_time_picture(at, side, points))
    sentence = (
        "Time is a search's own, in multiples of one dense training in the same series; an iterative method's at a "
        "round is that share of its whole search, whose rounds have equally many epochs. The paper's ratios are of "
        "ogbn-arxiv, at 36.9 % of edges and 49.7 % of weights together."
    )
    return made("fig5", fig5, lines, [sentence], pictures, answers)


def _panels(answers: Sequence[Answer]) -> Iterator[tuple[str, str, list[Answer]]]:
    """Answers of one graph, backbone and side."""
    groups: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.at, answer.ask.about), []).append(answer)
    for (at, side), group in groups.items():
        yield at, side, group


def curve(answer: Answer, side: str) -> list[Point]:
    """Scores by method and sparsity: of cells or, of an iterative method, of its rounds."""
    points, key = list[Point](), SIDES[side]
    for cell in answer.comparison.cells():
        for one in cell["rounds"] or [{**cell, "n": cell["n"]}]:
            if one["mean"]["search_test"] is not None:
                points.append(
                    {
                        "method": cell["method"],
                        "sparsity": one[key],
                        "mean": one["mean"]["search_test"],
                        "std": one["std"]["search_test"],
                        "n": one["n"],
                    }
                )
    return sorted(points, key=lambda point: float(point["sparsity"]))


def times(answer: Answer, side: str) -> list[Point]:
    """Multiples of a dense training by method and sparsity."""
    points, key = list[Point](), SIDES[side]
    for cell in answer.comparison.cells():
        whole = [row["relative_time"] for row in cell["runs"] if row["relative_time"]]
        rounds = cell["rounds"] or [cell]
        for number, one in enumerate(rounds, 1):
            if whole:
                share = number / len(rounds)
                points.append(
                    {
                        "method": cell["method"],
                        "sparsity": one[key],
                        "mean": share * fmean(whole),
                        "std": None if len(whole) < 2 else share * (deviation(whole) or 0.0),
                        "n": len(whole),
                    }
                )
    return points


def _dense_scores(answer: Answer) -> list[float]:
    """The dense networks', one for each seed."""
    found = {row["seed"]: row["dense_test"] for row in answer.comparison.rows if row["dense_test"] is not None}
    return list(found.values())


def _is_level(point: Point, wanted: Sequence[float]) -> bool:
    return any(abs(point["sparsity"] - level) < _NEAR for level in wanted)


def _line(at: str, side: str, point: Point) -> Line:
    what = f"{at}, {point['method']}, {100 * point['sparsity']:.1f} % of {side} removed"
    value = f"{mean_and_deviation(point['mean'], point['std'])} (n = {point['n']})"
    return Line(what=what, value=value, note="end of search")


def _held(at: str, side: str, points: Sequence[Point], dense: float) -> str:
    """Up to where each method's mean is at least dense, or within a point of it."""
    told = []
    for method in dict.fromkeys(point["method"] for point in points):
        own = [point for point in points if point["method"] == method]
        ends = []
        for loss in (0.0, 0.01):
            good = [point["sparsity"] for point in own if point["mean"] >= dense - loss]
            ends.append(f"{100 * max(good):.0f} %" if good else "none")
        told.append(f"{method} {ends[0]} ({ends[1]})")
    return (
        f"{at}, {side}: the most removed, of what was tried, with a mean of at least dense, in brackets at most "
        f"one point below: {', '.join(told)}. Means of the seeds alone decide here, without a test."
    )


def _row(point: Mapping[str, Any], factor: float, form: str) -> Point:
    spread = point["std"]
    low, high = (None if spread is None else factor * (point["mean"] + sign * spread) for sign in (-1, 1))
    told = form.format(factor * point["mean"])
    about = f"{point['method']}, {100 * point['sparsity']:.1f} % removed: {told} (n = {point['n']})"
    return {
        "method": point["method"],
        "sparsity": 100 * point["sparsity"],
        "mean": factor * point["mean"],
        "low": low,
        "high": high,
        "about": about,
    }


def _picture(at: str, side: str, points: Sequence[Point], dense: Sequence[float]) -> Picture:
    middle, spread = mean(dense) or 0.0, deviation(dense)
    low, high = (None if spread is None else 100 * (middle + sign * spread) for sign in (-1, 1))
    return over_sparsity(
        [_row(point, 100, "{:.2f} %") for point in points],
        dense={"mean": 100 * middle, "low": low, "high": high},
        removed=side,
        metric="test accuracy",
        title=f"{at}: end of search, all {'weights' if side == 'edges' else 'edges'} kept",
    )


def _time_picture(at: str, side: str, points: Sequence[Point]) -> Picture:
    names = ", ".join(dict.fromkeys(point["method"] for point in points))
    return line_chart(
        [_row(point, 1, "{:.1f} × dense") for point in sorted(points, key=lambda point: float(point["sparsity"]))],
        x={"title": f"{side} removed, %", "scale": {"zero": False}},
        y={"title": "time of a search, × dense", "scale": {"type": "log", "nice": True}},
        title=f"{at}: time of a search over {side} removed",
        text=f"Time of a search in multiples of a dense training, over {side} removed, for {names}; log scale.",
    )


def _slower(at: str, side: str, points: Sequence[Point]) -> list[Line]:
    """At the sparsest: each method's time, and how many times FastGLT's it is."""
    last = {method: [p for p in points if p["method"] == method][-1:] for method in ("fastglt", *ITERATIVE)}
    base = last["fastglt"][0]["mean"] if last["fastglt"] else None
    lines = []
    for method, (point,) in ((name, found) for name, found in last.items() if found):
        ratio = "" if base is None or method == "fastglt" else f", {point['mean'] / base:.1f} × FastGLT's"
        known = paper.SLOWER.get(method)
        lines.append(
            Line(
                what=f"{at}, {method}, {100 * point['sparsity']:.0f} % of {side} removed",
                value=f"{point['mean']:.1f} × dense{ratio} (n = {point['n']})",
                paper="–" if known is None else f"{known:g} × FastGLT's (ogbn-arxiv)",
                note="time of a search",
            )
        )
    return lines
