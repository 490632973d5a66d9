"""Finished runs as entries of the results store: a ticket and its dense twins apart, whichever command made them.

`find` makes all of them in one folder and `compare` each in its own; equal settings give equal keys, so that
`compare` can take what `find` has left.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastglt.runs.store import Entry, key_of

Values = Mapping[str, Any]
_RESULTS = ("val", "test", "seconds")
_COMPARED = "winning_"
_HIDDEN = ("inductive", "hidden_nodes", "hidden_edges", "new_test_nodes")
_SHARED = ("dataset", "model", "metric", "seed", "split_seed", "epochs", "threads", "device")


def stored_settings(settings: Values) -> dict[str, Any]:
    """What decides a result: whether a ticket's folder has its dense twin in it is of no account."""
    return {name: value for name, value in settings.items() if (name, value) != ("dense", False)}


def entry_of(settings: Values, metrics: Values, *, command: str, folder: Path) -> Entry:
    """A ticket, or a dense twin, that has a folder."""
    decisive, place = stored_settings(settings), folder.absolute()
    is_dense = "dense" in decisive
    return Entry(
        key=key_of(decisive),
        kind="dense" if is_dense else "ticket",
        command=command,
        settings=decisive,
        metrics=metrics,
        folder=str(place),
        ticket=None if is_dense else str(place / "ticket.safetensors"),
    )


def entries_of_find(
    ticket: Values, twins: Mapping[str, Values], metrics: Values, *, command: str, folder: Path
) -> list[Entry]:
    """A ticket and its twins, each with its own settings, from the metrics of the folder that has all of them."""
    parts = (*_RESULTS, *["new"] * ("inductive" in metrics))
    results = {twin: [f"{twin}_{result}" for result in parts] for twin in twins}
    others = {name for names in results.values() for name in names}
    alone = {n: value for n, value in metrics.items() if n not in others and not n.startswith(_COMPARED)}
    found = [entry_of(ticket, alone, command=command, folder=folder)]
    for twin, settings in twins.items():
        said = [name for name in settings if name.startswith("distill")]
        teacher = [*said, *(f"teacher_{result}" for result in _RESULTS)] if said else []
        hidden = [name for name in _HIDDEN if name in metrics]
        own = {name: metrics[name] for name in (*_SHARED, *hidden, *teacher, *results[twin])}
        found.append(entry_of(settings, own, command=command, folder=folder))
    return found
