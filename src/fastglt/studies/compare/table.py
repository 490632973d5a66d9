"""A comparison as tables for people: one for each pair of sparsities, one row for each method."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from fastglt.report.tables import empty_table, print_text, print_wide
from fastglt.report.wording import OPPONENTS, OUTCOMES, mean_and_deviation, phase_title, points, signed
from fastglt.studies.compare.between import SCORES, by_sparsities
from fastglt.tasks.metrics import title_of

Cell = Mapping[str, Any]
_COSTS = ("edges", "weights", "epochs", "seconds", "× dense")
_NOTE = (
    "n: {runs} · dense, search (at its end), retrained (from initial weights): {metric} of the test nodes "
    "in %, mean ± standard deviation · edges, weights: kept · epochs, seconds, × dense: of the search"
)
_VERDICT = (
    "verdict, search/retrained: non-inferior (a paired test over seeds rules out a loss of {margin} or more, "
    "level {level:g} %), winning (so, and the mean is at least dense), worse (such a loss is shown), undecided"
)
_DISTILLED = (
    "distilled tickets: the dense network has taught search and retraining · verdict: against dense, which had no "
    "teacher · verdict distilled: against dense distilled, which was taught in the same way · seconds, × dense: "
    "with the teacher's"
)
_SAME_LR = "verdict same lr: against dense same lr, which had no teacher and the learning rate of the taught ticket"
_INDUCTIVE = (
    "dense new, new, new kept: scores on test nodes among the {share:g} % of all nodes that were hidden with their "
    "edges from all trainings, of dense and of the ticket alone; kept: with the edges that the ticket's rule keeps"
)
_BETWEEN = (
    "against {first}: its mean subtracted, in points · better, worse, undecided: a paired two-sided t-test, level "
    "{level:g} % for all tests of a table together · p: corrected for their number (Holm)"
)
_FLAG = "! not exactly the count that was asked for, for all seeds"


def print_cells(document: Mapping[str, Any], console: Console) -> None:
    """A table for each pair of sparsities, and what its columns mean."""
    for pair, cells in by_sparsities(document["cells"]):
        table = empty_table(*_headings(cells[0]))
        for cell in cells:
            table.add_row(*_row(cell))
        title = f"{document['dataset']} · {document['model']} · {_removed(*pair)}{_totals(cells)}"
        print_wide(title, table, console)
        _print_between(document["between_methods"], pair, console)
    for note in _notes(document):
        print_text(note, console)


def _print_between(tests: Sequence[Cell], pair: tuple[float, float], console: Console) -> None:
    """Each method against the first, where there are several."""
    here = [test for test in tests if (test["graph_sparsity"], test["weight_sparsity"]) == pair]
    if not here:
        return
    table = empty_table(
        "method", "n", *(heading for score in SCORES for heading in (phase_title(score), "p")), "outcome"
    )
    for search, isolated in zip(here[::2], here[1::2], strict=True):
        counts = dict.fromkeys(str(test["n"]) for test in (search, isolated))
        values = [text for test in (search, isolated) for text in _difference(test)]
        outcomes = (test["outcome"] for test in (search, isolated))
        table.add_row(search["method"], "/".join(counts), *values, "/".join(outcomes))
    print_wide(f"against {here[0]['against']}", table, console)


def _difference(test: Cell) -> tuple[str, str]:
    p = test["p_holm"]
    probability = "–" if p is None else f"{p:.4f}" if p >= 0.0001 else "< 0.0001"
    return "–" if test["difference"] is None else signed(test["difference"]), probability


def print_rounds(document: Mapping[str, Any], console: Console) -> None:
    """The sparsity curves of methods that have rounds; if none has some, that is said."""
    if not any(cell["rounds"] for cell in document["cells"]):
        names = ", ".join(dict.fromkeys(str(cell["method"]) for cell in document["cells"]))
        print_text(f"No sparsity curves: no run of {names} has rounds.", console)
    for cell in document["cells"]:
        if cell["rounds"]:
            title = f"{cell['method']} · on the way to {_removed(cell['graph_sparsity'], cell['weight_sparsity'])}"
            table = empty_table("round", "n", "edges removed", "weights removed", "search")
            for point in cell["rounds"]:
                removed = (f"{100 * point[key]:.2f} %" for key in ("graph_sparsity", "weight_sparsity"))
                table.add_row(str(point["round"]), str(point["n"]), *removed, _score(point, "search_test"))
            print_wide(title, table, console)


def _notes(document: Mapping[str, Any]) -> Iterator[str]:
    """What the columns mean, and the flags that are there."""
    splits = len(document.get("split_seeds", ()))
    runs = f"runs, {len(document['seeds'])} seeds on each of {splits} splits" if splits else "seeds"
    yield _NOTE.format(runs=runs, metric=title_of(document["metric"]))
    verdicts = [verdict for cell in document["cells"] for verdict in cell["verdicts"].values() if verdict]
    if verdicts:
        yield _VERDICT.format(margin=points(verdicts[0]["margin"]), level=100 * verdicts[0]["level"])
    tests = document["between_methods"]
    if tests:
        yield _BETWEEN.format(first=tests[0]["against"], level=100 * tests[0]["level"])
    if any(map(_is_distilled, document["cells"])):
        yield _DISTILLED
    if any("verdicts_same_lr" in cell for cell in document["cells"]):
        yield _SAME_LR
    if any(map(_is_inductive, document["cells"])):
        yield _INDUCTIVE.format(share=100 * document["inductive"])
    if any("!" in part for cell in document["cells"] for part in _kept(cell)):
        yield _FLAG


def row_of(cell: Cell) -> dict[str, str]:
    """A cell as a table shows it, by its headings."""
    return dict(zip(_headings(cell), _row(cell), strict=True))


def _row(cell: Cell) -> list[str]:
    twins = _twins(cell)
    verdicts = [f"verdicts{twin.removeprefix('dense')}" for twin in twins]
    mean, texts = (
        cell["mean"],
        {"search_epochs": "{:,.0f}", "search_seconds": "{:,.1f}", "relative_time": "{:.2f}×"},
    )
    costs = {key: mean[key] for key in texts}
    if costs["search_seconds"] is not None:
        costs["search_seconds"] += mean.get("teacher_seconds") or 0.0
    return [
        cell["method"],
        str(cell["n"]),
        *(_dense(cell, twin) for twin in twins),
        *(_score(cell, f"{run}_test") for run in ("search", "isolated")),
        *(_score(cell, name) for name in ("dense_new", "isolated_new", "isolated_new_kept") if name in mean),
        *("/".join(_word(cell[name][score]) for score in ("search", "isolated")) for name in verdicts),
        *_kept(cell),
        *("–" if costs[key] is None else text.format(costs[key]) for key, text in texts.items()),
    ]


def _headings(cell: Cell) -> list[str]:
    """The columns of a table, with the opponents that its tickets have."""
    twins = [twin.replace("_", " ") for twin in _twins(cell)]
    verdicts = [f"verdict{twin.removeprefix('dense')}" for twin in twins]
    new = ["dense new", "new", "new kept"] if _is_inductive(cell) else []
    return ["method", "n", *twins, "search", "retrained", *new, *verdicts, *_COSTS]


def _is_inductive(cell: Cell) -> bool:
    return "isolated_new" in cell["mean"]


def _twins(cell: Cell) -> list[str]:
    return [twin for twin in OPPONENTS if f"n_{twin}" in cell]


def _is_distilled(cell: Cell) -> bool:
    return "verdicts_distilled" in cell


def _dense(cell: Cell, twin: str) -> str:
    """A twin's score, with its number of seeds where some have failed."""
    count = cell[f"n_{twin}"]
    return _score(cell, f"{twin}_test") + (f" (n {count})" if count != cell["n"] else "")


def _score(cell: Cell, key: str) -> str:
    return mean_and_deviation(cell["mean"][key], cell["std"][key])


def _word(verdict: Mapping[str, Any] | None) -> str:
    """A verdict in one word, as `fastglt evaluate` says it."""
    return "–" if verdict is None else OUTCOMES[verdict["outcome"]]


def _kept(cell: Cell) -> list[str]:
    """Kept edges and weights, with a flag where a seed has not exactly the count that was asked for."""
    found = []
    for part in ("edges", "weights"):
        counts = cell[f"{part}_kept"]
        several = " to ".join(dict.fromkeys(f"{count:,}" for count in (counts[0], counts[-1]))) if counts else "–"
        found.append(several + ("" if cell[f"{part}_exact"] else " !"))
    return found


def _totals(cells: Sequence[Cell]) -> str:
    """How many edges and weights there are, the same for every method."""
    for cell in cells:
        if cell["edges_total"]:
            return f", of {cell['edges_total'][-1]:,} and {cell['weights_total'][-1]:,}"
    return ""


def _removed(graph_sparsity: float, weight_sparsity: float) -> str:
    return f"{100 * graph_sparsity:g} % of edges and {100 * weight_sparsity:g} % of weights removed"
