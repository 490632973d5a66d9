"""From finished runs to cells: tickets of one setting over all their seeds, each beside its dense twin.

A store has tickets and dense twins as rows of their own, whichever command made them. A twin belongs to every
ticket with which it shares graph, split, network, seed, machine, epochs and recipe. Seeds of the split are runs of
one cell, whatever follows from the split: labels and masks, for links and hidden nodes the graph as well. Where
runs of one split seed differ in that, they were on other data of the same name, and each of these is a cell of its
own.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastglt.runs.differences import differing, flat
from fastglt.studies.compare.figures import Cell
from fastglt.studies.compare.results import deviation, mean, verdict_of
from fastglt.system.numbers import real
from fastglt.tasks import TASKS, place_of
from fastglt.tickets.phases import DISTILLED

Row = Mapping[str, Any]
_OWN = ("dense", "epochs", "distill")  # of a twin's settings, what tickets say otherwise
_NOT_SETTINGS = ("seed", "split_seed", "labels_and_split", "threads", "device", "backend", "fastglt", "initial")
_OF_SPLIT = {"task_options": ("split_seed",), "inductive": ("split_seed", "of")}  # inside other settings
_DATA = ("graph", "features", "edge_values")  # digests; with links and hidden nodes they follow from the split
_UNTOLD = ("model.in_channels", "model.out_channels", "model.seed", *_DATA, "code", "model_code")
_SCORES = ("dense", "search", "isolated")
_COSTS = ("search_seconds", "dense_seconds", "macs_dense", "macs_ticket", "macs_paper_dense", "macs_paper_ticket")


def cells_of(rows: Iterable[Row]) -> list[Cell]:
    """One cell for each setting, in the order of their first tickets; the latest run of a seed and split counts."""
    rows = list(rows)
    twins = _Twins(row for row in rows if row["kind"] == "dense")
    groups: dict[str, list[Cell]] = {}
    for row in rows:
        if row["kind"] == "ticket":
            groups.setdefault(_key(row["settings"]), []).append(_run(row, twins))
    cells = [_cell(runs) for group in groups.values() for runs in _of_equal_data(group)]
    _tell_apart(cells)
    _number_data(cells)
    return cells


def _of_equal_data(runs: Sequence[Cell]) -> list[list[Cell]]:
    """The runs of a setting, apart where runs of one split seed are on other data; the latest of a seed counts."""
    data: dict[Any, set[str]] = {}
    for run in runs:
        data.setdefault(run["split_seed"], set()).add(_data(run))
    several = any(len(found) > 1 for found in data.values())
    parts: dict[str, dict[tuple[Any, Any], Cell]] = {}
    for run in runs:
        parts.setdefault(_data(run) if several else "", {})[run["split_seed"], run["seed"]] = run
    return [list(part.values()) for part in parts.values()]


def _data(run: Cell) -> str:
    """What a run was on: graph, features, labels and split."""
    return json.dumps([run["settings"].get(name) for name in (*_DATA, "labels_and_split")])


class _Twins:
    """Dense twins by what they share with their tickets."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._known: dict[tuple[str, ...], dict[str, Row]] = {}
        for row in rows:
            settings = row["settings"]
            names = tuple(sorted(name for name in settings if name not in _OWN))
            own = [settings.get("epochs"), settings.get("distill", 0)]
            self._known.setdefault(names, {})[_digest(settings, names, own)] = row["metrics"]

    def of(self, row: Row) -> dict[str, Any]:
        """The scores and seconds of a ticket's twins."""
        settings, epochs = row["settings"], row["metrics"].get("epochs")
        found: dict[str, Any] = {}
        for names, known in self._known.items():
            for weight in {0, settings.get("distill", 0)}:
                found |= known.get(_digest(settings, names, [epochs, weight]), {})
        return {name: value for name, value in found.items() if name.startswith("dense_")}


def _digest(settings: Row, names: Sequence[str], own: list[Any]) -> str:
    return json.dumps([[settings.get(name) for name in names], own], sort_keys=True)


def _key(settings: Row) -> str:
    """What all runs of a cell share."""
    unshared = (*_NOT_SETTINGS, *(_DATA if _graph_follows(settings) else ()))
    kept = {name: value for name, value in settings.items() if name not in unshared}
    for name, inner in {"model": ("seed",), **_OF_SPLIT}.items():
        if isinstance(value := kept.get(name), Mapping):
            kept[name] = {part: value[part] for part in value if part not in inner}
    return json.dumps({name: value for name, value in kept.items() if value != {}}, sort_keys=True)


def _graph_follows(settings: Row) -> bool:
    """Whether the split decides which edges and nodes a network sees."""
    of_pairs = {place_of(task) for task in TASKS.values() if task.of_pairs}
    return "inductive" in settings or settings.get("task") in of_pairs


def _run(row: Row, twins: _Twins) -> Cell:
    """A ticket with its twins' scores, in fractions; a score that a run has not is None."""
    metrics = row["metrics"]
    values = {**twins.of(row), **metrics}
    names = (*(f"{score}_test" for score in (*_SCORES, DISTILLED)), *(f"{score}_val" for score in _SCORES), *_COSTS)
    return {
        "id": row.get("id"),
        "settings": row["settings"],
        "metric": metrics.get("metric"),
        "seed": row["seed"],
        "split_seed": row["settings"].get("split_seed"),
        "finished": row["finished"],
        "folder": row["folder"],
        "ticket": row["ticket"],
        "rounds": _rounds(metrics.get("rounds")),
        **{name: real(values.get(name)) for name in names},
        **{name: metrics.get(name) for name in ("edges_kept", "edges_total", "weights_kept", "weights_total")},
        **{name: row[name] for name in ("dataset", "model", "method", "graph_sparsity", "weight_sparsity")},
    }


def _cell(runs: list[Cell]) -> Cell:
    first = runs[0]
    several = len({run["split_seed"] for run in runs}) > 1
    judged = runs if several else [{k: v for k, v in run.items() if k != "split_seed"} for run in runs]
    names = (*(f"{score}_test" for score in _SCORES), *_COSTS)
    values = {name: [run[name] for run in runs if run[name] is not None] for name in names}
    distilled = "distill" in first["settings"]
    return {
        **{name: first[name] for name in ("dataset", "model", "method", "graph_sparsity", "weight_sparsity")},
        "label": str(first["method"]) + " distilled" * distilled,
        "metric": first["metric"],
        "n": len(runs),
        "mean": {name: mean(found) for name, found in values.items()},
        "std": {name: deviation(found) for name, found in values.items()},
        "verdicts": {score: verdict_of(judged, score) for score in ("search", "isolated")},
        "verdicts_distilled": {s: verdict_of(judged, s, DISTILLED) for s in ("search", "isolated")}
        if distilled
        else {},
        "runs": runs,
    }


def _tell_apart(cells: Sequence[Cell]) -> None:
    """Name what differs between cells that would look alike: an option of the method, the hidden width, …"""
    alike: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell["dataset"], cell["model"], cell["label"]), []).append(cell)
    for group in alike.values():
        settings = [flat(cell["runs"][0]["settings"]) for cell in group]
        of_split = (f"{name}.{part}" for name, parts in _OF_SPLIT.items() for part in parts)
        skipped = (*_NOT_SETTINGS, *of_split, *_UNTOLD, "graph_sparsity", "weight_sparsity")
        names = [name for name in differing(*settings) if name not in skipped]
        usual = {name: _usual([known.get(name) for known in settings]) for name in names}
        for cell, known in zip(group, settings, strict=True):
            told = ", ".join(
                f"{name.rpartition('.')[2]} {known[name]}"
                for name in names[:4]
                if name in known and repr(known[name]) != usual[name]
            )
            cell["label"] += f" ({told})" if told else ""


def _number_data(cells: Sequence[Cell]) -> None:
    """Call cells that look alike still, as they are on other data of the same name, by numbers of these data."""
    alike: dict[tuple[Any, ...], list[Cell]] = {}
    names = ("dataset", "model", "label", "graph_sparsity", "weight_sparsity")
    for cell in cells:
        alike.setdefault(tuple(cell[name] for name in names), []).append(cell)
    numbers: dict[tuple[Any, Any], dict[str, int]] = {}
    for group in alike.values():
        data = [_data(cell["runs"][0]) for cell in group]
        if len(set(data)) > 1:
            for cell, one in zip(group, data, strict=True):
                known = numbers.setdefault((cell["dataset"], cell["model"]), {})
                cell["label"] += f" (data {known.setdefault(one, len(known) + 1)})"


def _usual(values: Sequence[Any]) -> str | None:
    """What more than two thirds have, if there is such a value: it need not be told."""
    ((value, count),) = Counter(map(repr, values)).most_common(1)
    return value if 3 * count > 2 * len(values) else None


def _rounds(found: Any) -> list[Row]:
    """The rounds of an iterative method, those that have what a curve needs."""
    names = ("graph_sparsity", "weight_sparsity", "search_test")
    rounds = found if isinstance(found, list) else []
    return [one for one in rounds if isinstance(one, Mapping) and all(real(one.get(n)) is not None for n in names)]


__all__ = ["Cell", "cells_of"]
