"""What is measured on tickets themselves: how far their masks are apart, and how fast they answer."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from fastglt.analysis.difference import compare_tickets, edge_degree_groups, start_gradients, weight_gradient_groups
from fastglt.report.charts import Picture
from fastglt.report.charts.scores import over_sparsity
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.curves import levels
from fastglt.studies.paper.reproduction import Line, Reproduction, made
from fastglt.studies.paper.scope import SUBSTITUTE, Answer, Ask, Scope
from fastglt.tickets.networks import restore_start
from fastglt.tickets.ticket import Ticket

_PAIRS = {"one-shot and iterative": "oneshot", "random and iterative": "random"}
_NEAR = 0.005  # of a sparsity
_TICKET = "ticket.safetensors"


def fig2_asks(scope: Scope) -> list[Ask]:
    """Some of figure 4's runs: edge masks with all weights, weight masks with all edges."""
    (graph, *_) = scope.graphs("cora")
    edges, weights = levels(scope, "edges"), levels(scope, "weights")[-1]
    shared: dict[str, Any] = {"graph": graph, "model": "gcn", "with_tickets": True}
    return [
        Ask(methods=("oneshot", "random"), edges=edges, about="edges", **shared),
        Ask(methods=("ugs",), edges=edges[-1], about="edges", **shared),
        Ask(methods=("oneshot",), weights=weights, about="weights", **shared),
        Ask(methods=("ugs",), weights=weights, about="weights", **shared),
    ]


def fig2(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Hamming distances of one-shot, random and iterative masks; degrees and gradients of what is pruned."""
    single, iterative, single_weights, iterative_weights = answers
    rounds = {row["seed"]: _rounds(row) for row in iterative.comparison.rows if not row["reason"]}
    points, lines = list[dict[str, Any]](), list[Line]()
    for level, (name, method) in product(levels(scope, "edges"), _PAIRS.items()):
        apart = [
            share
            for row in single.comparison.rows
            if (row["method"], row["graph_sparsity"]) == (method, level) and not row["reason"]
            and (share := _distance(row, rounds.get(row["seed"], []))) is not None
        ]  # fmt: skip
        if apart:
            points.append(_point(name, level, apart))
            what = f"{single.at}, {name}, {100 * level:.1f} % of edges removed: share of edges that differ"
            lines.append(Line(what=what, value=f"{100 * fmean(apart):.2f} % (n = {len(apart)})"))
    sentences = [_told(points)]
    for name, groups in {
        "degree of edges": _edges_that_differ(single, iterative, levels(scope, "edges")[-1]),
        "gradient of weights": _weights_that_differ(single_weights, iterative_weights),
    }.items():
        if groups is not None:
            lines += _group_lines(single.at, f"mean {name}", groups)
            sentences += _lower(name, groups)
    pictures = [_picture(points, single.ask.graph)] if points else []
    return made("fig2", fig2, lines, sentences, pictures, answers)


def speedup_asks(scope: Scope) -> list[Ask]:
    """A ticket with 20 % of edges and 95 % of weights removed."""
    pairs = [(graph, model) for graph in scope.graphs() for model in scope.backbones()]
    shared: dict[str, Any] = {"methods": ("fastglt",), "edges": 0.2, "weights": 0.95, "with_tickets": True}
    return [Ask(graph=graph, model=model, **shared) for graph, model in pairs]


def speedup(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """How much faster a compiled ticket answers than its dense network."""
    lines = list[Line]()
    for answer in answers:
        row = next((row for row in answer.comparison.rows if not row["reason"]), None)
        if row is not None:
            lines += _measured(scope, answer.ask.graph, answer.ask.model, Path(row["folder"]) / _TICKET)
    sentence = (
        "Milliseconds for all nodes' outputs, medians of interleaved calls on this machine. The paper says neither "
        "which machine nor which dense network its mean is against."
    )
    return made("speedup", speedup, lines, [sentence], [], answers)


def _measured(scope: Scope, graph: str, model: str, file: Path) -> list[Line]:
    from fastglt.bench.infer import measure
    from fastglt.data import load

    settings = scope.settings
    root = settings.get("data_root")
    dataset = load(graph, root=root)
    source = {"name": graph, "root": None if root is None else str(root), "split_seed": 0, "directed": False}
    source |= {"device": "cpu", "threads": settings.get("threads", 1)}
    row = measure(Ticket.load(file), file, dataset, source, repeats=5 if scope.size == "quick" else 25)
    said = "–" if graph == SUBSTITUTE else f"{paper.SPEEDUP:g} × (mean of all)"
    names = {
        "our dense network": ("ratio_to_dense", said),
        "our dense network, compiled in the same way": ("ratio_to_compiled_dense", said),
        "stock PyG's dense network": ("ratio_to_pyg", said),
    }
    return [
        Line(what=f"{graph} {model}, ticket against {name}", value=f"{row[key]:.2f} × as fast", paper=told)
        for name, (key, told) in names.items()
    ]


def _rounds(row: dict[str, Any]) -> list[Ticket]:
    """The tickets of an iterative method's rounds."""
    files = sorted((Path(row["folder"]) / "rounds").glob("*.safetensors"))
    return [Ticket.load(file) for file in files] or [_ticket(row)]


def _distance(row: dict[str, Any], rounds: Sequence[Ticket]) -> float | None:
    """The share of edges on which a ticket differs from the round that is as sparse, within half a per cent."""
    near = [one for one in rounds if abs(one.graph_sparsity - row["graph_sparsity"]) < _NEAR]
    edges = compare_tickets(near[0], _ticket(row)).edges if near else None
    return None if edges is None else edges.hamming_share


def _ticket(row: dict[str, Any]) -> Ticket:
    return Ticket.load(Path(row["folder"]) / _TICKET)


def _first(answer: Answer, method: str, level: float | None = None) -> dict[str, Any] | None:
    """The first seed's finished run of a method."""
    rows = [row for row in answer.comparison.rows if row["method"] == method and not row["reason"]]
    return next((row for row in rows if level is None or row["graph_sparsity"] == level), None)


def _edges_that_differ(single: Answer, iterative: Answer, level: float) -> Any:
    """Degrees of edges that iterative, or one-shot, pruning alone removes."""
    a, b = _first(iterative, "ugs"), _first(single, "oneshot", level)
    if a is None or b is None:
        return None
    task = single.comparison.first_experiment.prepare().task
    return edge_degree_groups(_ticket(a).masks, _ticket(b).masks, task)


def _weights_that_differ(single: Answer, iterative: Answer) -> Any:
    """Gradients of weights that iterative, or one-shot, pruning alone removes."""
    a, b = _first(iterative, "ugs"), _first(single, "oneshot")
    if a is None or b is None:
        return None
    task, ticket = single.comparison.first_experiment.prepare().task, _ticket(a)
    gradients = start_gradients(restore_start(ticket, None)[0], task)
    return weight_gradient_groups(ticket.masks, _ticket(b).masks, gradients)


def _lower(name: str, groups: Any) -> list[str]:
    """The paper's claim about what either alone removes, and how it came out for the first seed."""
    a, b = groups.only_a.mean, groups.only_b.mean
    if a is None or b is None:
        return []
    said = "is lower, as the paper says" if a < b else "is not lower, where the paper says that it is"
    return [f"The mean {name} that iterative pruning alone removes {said} ({a:.3g} and {b:.3g}, one seed)."]


def _group_lines(at: str, name: str, groups: Any) -> list[Line]:
    lines = []
    for who, group in (("iterative", groups.only_a), ("one-shot", groups.only_b)):
        value = "–" if group.mean is None else f"{group.mean:.3g} (n = {group.count:,})"
        lines.append(Line(what=f"{at}, {name} that {who} pruning alone removes", value=value))
    return lines


def _point(name: str, level: float, shares: list[float]) -> dict[str, Any]:
    middle = 100 * fmean(shares)
    low, high = 100 * min(shares), 100 * max(shares)
    about = f"{name}, {100 * level:g} % removed: {middle:.2f} % of edges differ (n = {len(shares)})"
    return {"method": name, "sparsity": 100 * level, "mean": middle, "low": low, "high": high, "about": about}


def _picture(points: list[dict[str, Any]], graph: str) -> Picture:
    made = over_sparsity(
        points, dense=None, removed="edges", metric="edges that differ", title=f"{graph} · gcn: distance of masks"
    )
    text = made.text.replace("bands: one standard deviation", "bands: from the least to the most of the seeds")
    return Picture(title=made.title, text=text, spec=made.spec)


def _told(points: list[dict[str, Any]]) -> str:
    """The paper's claim, and how it came out."""
    near, far = ({p["sparsity"]: p["mean"] for p in points if p["method"] == name} for name in _PAIRS)
    shared = [level for level in near if level in far]
    closer = sum(near[level] < far[level] for level in shared)
    return (
        f"One-shot masks lie nearer to iterative ones than random masks do at {closer} of {len(shared)} sparsities "
        "(the paper: at all)."
    )
