"""What tables and figures would take, before anything is trained: how many runs, how many of them are there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastglt.data.named import known_name
from fastglt.runs.experiment import Experiment, thread_count
from fastglt.runs.forecast import Forecast, forecast
from fastglt.runs.plan import Run
from fastglt.runs.store import Store, default_path
from fastglt.studies.extreme.walks import most_left
from fastglt.studies.paper.items import Item
from fastglt.studies.paper.scope import Ask, Scope

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The tickets of a table or figure, without their dense twins."""

    tickets: int
    recorded: int  # in the store, with their files where tickets are looked into
    epochs: int  # of those that are not
    seconds: float | None  # of these, at the pace of runs in the store; None where it has none like them
    hunts: int  # extreme sparsities: more follow, as results decide


def cost_of(item: Item, scope: Scope, rows: Sequence[Row]) -> Cost:
    """By names and numbers, without loading a graph. `rows` are a store's."""
    asks = item.asks(scope)
    tickets = [row for row in rows if row["kind"] == "ticket"]
    known = {_facts(row["settings"]) for row in tickets}
    at_hand = {_facts(row["settings"]) for row in tickets if row["ticket"] and Path(row["ticket"]).is_file()}
    wanted = [(one, at_hand if ask.with_tickets else known) for ask in asks for one in scope.experiments(ask)]
    left = [one for one, there in wanted if _facts_of(one) not in there]
    seconds = [_seconds(one, rows) for one in left]
    return Cost(
        tickets=len(wanted),
        recorded=len(wanted) - len(left),
        epochs=sum(map(_epochs, left)),
        seconds=None if None in seconds else sum(one for one in seconds if one is not None),
        hunts=sum(ask.extreme for ask in asks),
    )


def recorded_rows(scope: Scope) -> list[dict[str, Any]]:
    """The finished runs of the scope's store, none if there is no store yet."""
    path = Path(scope.settings.get("store") or default_path()).expanduser()
    return Store(path).rows() if path.exists() else []


def _facts(settings: Row) -> str:
    """What tells a ticket from others, but for digests of its data and the version."""
    model = settings.get("model")
    network = [model.get("name"), model.get("hidden")] if isinstance(model, Mapping) else [model, None]
    names = ("method", "options", "seed", "split_seed", "threads", "graph_sparsity", "weight_sparsity")
    budget = ("oneshot_epochs", "denoise_epochs", "interval", "lr", "weight_decay")
    return json.dumps(
        [_graph(settings.get("dataset")), *network, *map(settings.get, names), *map(settings.get, budget)],
        sort_keys=True,
    )


def _facts_of(experiment: Experiment) -> str:
    method = experiment.make_method()
    return _facts(
        {
            "dataset": experiment.dataset,
            "model": {"name": experiment.model_name, "hidden": experiment.hidden},
            "method": method.name,
            "options": method.options,
            "seed": experiment.seed,
            "split_seed": experiment.split_seed,
            "threads": thread_count(experiment.threads),
            **method.targets.settings,
            **method.budget.settings,
        }
    )


def _graph(name: Any) -> str:
    """One name for a graph, whether it was loaded by its name or its path."""
    return known_name(str(name)) or Path(str(name)).name


def _epochs(experiment: Experiment) -> int:
    return experiment.make_method().epochs + experiment.budget.epochs


def _seconds(experiment: Experiment, rows: Iterable[Row]) -> float | None:
    """At the pace of the last recorded ticket of its graph, network, width and threads."""
    wanted = _graph(experiment.dataset), experiment.model_name, experiment.hidden, thread_count(experiment.threads)
    for row in reversed(list(rows)):
        metrics, settings = row["metrics"], row["settings"]
        network = settings.get("model")
        width = network.get("hidden") if isinstance(network, Mapping) else None
        spent, epochs = row["seconds"], (metrics.get("search_epochs") or 0) + (metrics.get("epochs") or 0)
        like = _graph(row["dataset"]), row["model"], width, settings.get("threads")
        if row["kind"] == "ticket" and like == wanted and spent and epochs:
            return float(spent) / epochs * _epochs(experiment)
    return None


def forecast_of(items: Sequence[Item], scope: Scope) -> Forecast:
    """What items would run, measured by a few epochs of each kind; a run that several need counts once."""
    asks = [ask for item in items for ask in item.asks(scope)]
    groups: dict[tuple[str, str, str], list[tuple[Ask, list[Run]]]] = {}
    for ask in asks:
        runs = scope.plan(ask)
        experiment = runs[0].experiment
        place = (experiment.dataset, experiment.model_name, str(runs[0].folder.parent))
        groups.setdefault(place, []).append((ask, runs))
    store = Path(scope.settings.get("store") or default_path()).expanduser()
    found = []
    for planned in groups.values():
        runs = list({run.folder: run for _, all_runs in planned for run in all_runs}.values())
        jobs, out = int(scope.settings.get("jobs") or 1), runs[0].folder.parent
        looked_into = [run for ask, all_runs in planned if ask.with_tickets for run in all_runs]
        first = forecast(runs, store, jobs=jobs, out=out, with_ticket=looked_into)
        found.append(_with_hunts(first, planned, scope))
    return _together(found)


def _with_hunts(first: Forecast, planned: Sequence[tuple[Ask, list[Run]]], scope: Scope) -> Forecast:
    """With what may follow the first sparsities of a hunt."""
    most = [most_left(scope.walk(ask), []) or 1 for ask, _ in planned if ask.extreme]
    if not most:
        return first
    more = {"at_most_more_sparsities": max(most) - 1, "fresh_seeds": 0}
    return replace(first, more={**more, "at_most_seconds": first.seconds * max(most)})


def _together(parts: Sequence[Forecast]) -> Forecast:
    left: dict[str, int] = {}
    for part in parts:
        for kind, count in part.left.items():
            name = kind if len(parts) == 1 else f"{kind} in {Path(part.out).name}"
            left[name] = left.get(name, 0) + count
    sums = {name: sum(getattr(part, name) for part in parts) for name in ("runs", "finished", "reused", "epochs")}
    seconds = sum(part.seconds for part in parts)
    more = dict(next((part.more for part in parts if part.more), {}))
    if more:
        more["at_most_seconds"] = sum(float(part.more.get("at_most_seconds", part.seconds)) for part in parts)
        more["at_most_more_sparsities"] = max(int(part.more.get("at_most_more_sparsities", 0)) for part in parts)
    outs = list(dict.fromkeys(part.out for part in parts))
    jobs = max(part.jobs for part in parts)
    return Forecast(**sums, seconds=seconds, left=left, jobs=jobs, out="', '".join(outs), more=more)
