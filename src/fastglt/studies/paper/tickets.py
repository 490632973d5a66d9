"""What is measured on tickets themselves: how far their masks are apart, and how fast they answer."""

from pathlib import Path
from statistics import fmean
from typing import Any

from fastglt.analysis.difference import compare_tickets, edge_degree_groups, start_gradients, weight_gradient_groups
from fastglt.report.charts import Picture
from fastglt.report.charts.scores import over_sparsity
from fastglt.studies.compare import Comparison
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction
from fastglt.studies.paper.scope import SUBSTITUTE, Scope
from fastglt.tickets.networks import restore_start
from fastglt.tickets.ticket import Ticket

_PAIRS = {"one-shot and iterative": "oneshot", "random and iterative": "random"}
_METHODS = ("ugs", "oneshot", "random")


def fig2(scope: Scope) -> Reproduction:
    """Hamming distances of one-shot, random and iterative masks; degrees and gradients of what is pruned."""
    (graph, *_) = scope.graphs("cora")
    levels = scope.few((0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    found = scope.compare(graph, "gcn", _METHODS, levels, 0.5)
    rows = {(row["method"], row["graph_sparsity"], row["seed"]): row for row in found.rows if not row["reason"]}
    points, lines = list[dict[str, Any]](), list[Line]()
    for level in levels:
        for name, method in _PAIRS.items():
            apart = [
                share
                for seed in scope.all_seeds
                if {("ugs", level, seed), (method, level, seed)} <= set(rows)
                and (share := _hamming(rows["ugs", level, seed], rows[method, level, seed])) is not None
            ]
            if apart:
                points.append(_point(name, level, apart))
                what = f"{graph} gcn, {name}, {100 * level:g} % of edges removed: share of edges that differ"
                lines.append(Line(what=what, value=f"{100 * fmean(apart):.2f} % (n = {len(apart)})"))
    seed, last = scope.all_seeds[0], levels[-1]
    if {("ugs", last, seed), ("oneshot", last, seed)} <= set(rows):
        lines += _what_differs(found, rows["ugs", last, seed], rows["oneshot", last, seed], f"{graph} gcn")
    title = str(fig2.__doc__).rstrip(".")
    sentence = _told(points)
    pictures = [_picture(points, graph)] if points else []
    return Reproduction(
        name="fig2", title=title, lines=lines, sentences=[sentence], pictures=pictures, failures=found.failures
    )


def speedup(scope: Scope) -> Reproduction:
    """How much faster a compiled ticket answers than its dense network."""
    lines, failures = list[Line](), list[Any]()
    for graph in scope.graphs():
        for model in scope.backbones:
            found = scope.compare(graph, model, ["fastglt"], 0.2, 0.95)
            failures += found.failures
            row = next((row for row in found.rows if not row["reason"]), None)
            if row is not None:
                lines += _measured(scope, graph, model, Path(row["folder"]) / "ticket.safetensors")
    title = str(speedup.__doc__).rstrip(".")
    sentence = (
        "Milliseconds for all nodes' outputs, medians of interleaved calls on this machine. The paper says neither "
        "which machine nor which dense network its mean is against."
    )
    return Reproduction(name="speedup", title=title, lines=lines, sentences=[sentence], failures=failures)


def _measured(scope: Scope, graph: str, model: str, file: Path) -> list[Line]:
    from fastglt.bench.infer import measure
    from fastglt.data import load

    settings = scope.settings
    root = settings.get("data_root")
    dataset = load(graph, root=root)
    source = {"dataset": graph, "root": None if root is None else str(root), "split_seed": 0, "directed": False}
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


def _hamming(a: dict[str, Any], b: dict[str, Any]) -> float | None:
    """The share of edges on which two runs' tickets differ."""
    edges = compare_tickets(_ticket(a), _ticket(b)).edges
    return None if edges is None else edges.hamming_share


def _ticket(row: dict[str, Any]) -> Ticket:
    return Ticket.load(Path(row["folder"]) / "ticket.safetensors")


def _what_differs(found: Comparison, iterative: dict[str, Any], oneshot: dict[str, Any], at: str) -> list[Line]:
    """Degrees of edges and gradients of weights that one of them alone prunes."""
    a, b = _ticket(iterative), _ticket(oneshot)
    task = found.first_experiment.prepare().task
    gradients = start_gradients(restore_start(a, None)[0], task)
    lines = []
    for name, groups in (
        ("mean degree of edges", edge_degree_groups(a.masks, b.masks, task)),
        ("mean gradient of weights", weight_gradient_groups(a.masks, b.masks, gradients)),
    ):
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
