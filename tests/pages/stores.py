"""Stores with runs that nobody trained: settings and metrics as `fastglt compare` records them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastglt.runs.store import Entry, Store, key_of

SHARED = {
    "dataset": "toy",
    "graph": "a" * 64,
    "features": "b" * 64,
    "labels_and_split": "c" * 64,
    "split_seed": 0,
    "threads": 1,
    "device": "cpu",
    "backend": "auto",
    "fastglt": "0.2.0",
}
RECIPE = {"lr": 0.01, "weight_decay": 5e-4}


def model(seed: int, hidden: int = 8) -> dict[str, Any]:
    return {"name": "gcn", "in_channels": 6, "hidden": hidden, "out_channels": 3, "dropout": 0.5, "seed": seed}


def dense(seed: int, test: float, *, epochs: int = 6, hidden: int = 8, **settings: Any) -> Entry:
    """A dense twin."""
    whole = {
        **SHARED,
        "model": model(seed, hidden),
        "seed": seed,
        "dense": True,
        "epochs": epochs,
        **RECIPE,
        **settings,
    }
    metrics = {"metric": "accuracy", "seed": seed, "epochs": epochs, "dense_test": test, "dense_val": test}
    return entry("dense", whole, {**metrics, "dense_seconds": 1.0})


def ticket(
    seed: int,
    test: float,
    *,
    method: str = "fastglt",
    graph: float = 0.2,
    weight: float = 0.9,
    hidden: int = 8,
    options: dict[str, Any] | None = None,
    path: Path | None = None,
    **settings: Any,
) -> Entry:
    """A ticket that scores so much at the end of its search, and a point less alone."""
    targets = {"graph_sparsity": graph, "weight_sparsity": weight}
    budget = {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2, **RECIPE}
    about = {**SHARED, "model": model(seed, hidden), "seed": seed, "method": method, "options": options or {}}
    metrics = {
        "metric": "accuracy",
        "seed": seed,
        "epochs": 6,
        **targets,
        "search_test": test,
        "search_val": test,
        "isolated_test": test - 0.01,
        "isolated_val": test,
        "edges_kept": 48,
        "edges_total": 60,
        "weights_kept": 12,
        "weights_total": 120,
        "rounds": [],
        "search_seconds": 1.5,
        "isolated_seconds": 1.0,
        "macs_dense": 1000,
        "macs_ticket": round(1000 * (1 - weight)),
        "macs_paper_dense": 1000,
        "macs_paper_ticket": 100,
    }
    return entry("ticket", {**about, **targets, **budget, **settings}, metrics, None if path is None else str(path))


def entry(kind: str, settings: dict[str, Any], metrics: dict[str, Any], path: str | None = None) -> Entry:
    return Entry(
        key=key_of(settings),
        kind=kind,
        command="compare",
        settings=settings,
        metrics=metrics,
        folder=None,
        ticket=path,
    )


def store(path: Path, entries: Iterable[Entry]) -> Path:
    """A store with these runs."""
    made = Store(path)
    for one in entries:
        made.record(one)
    return path


def study(seeds: int = 3) -> list[Entry]:
    """Two methods at two graph sparsities."""
    found = [dense(seed, 0.80 + 0.01 * seed) for seed in range(seeds)]
    for method, loss in (("fastglt", 0.0), ("random", 0.05)):
        for graph in (0.2, 0.5):
            found += [
                ticket(seed, 0.81 + 0.01 * seed - loss - 0.02 * (graph > 0.3), method=method, graph=graph)
                for seed in range(seeds)
            ]
    return found


def rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The rows that a store would have of runs, without one."""
    facts = ("dataset", "method", "seed", "graph_sparsity", "weight_sparsity")
    scores = ("dense_test", "search_test", "isolated_test")
    return [
        {
            "id": number,
            "kind": one.kind,
            "command": one.command,
            "finished": "2026-01-31T18:00:00+00:00",
            **{name: one.settings.get(name) for name in facts},
            **{name: one.metrics.get(name) for name in scores},
            "model": one.settings["model"]["name"],
            "seconds": 2.5,
            "folder": None,
            "ticket": one.ticket,
            "settings": dict(one.settings),
            "metrics": dict(one.metrics),
            "versions": {},
            "machine": {},
        }
        for number, one in enumerate(entries, 1)
    ]
