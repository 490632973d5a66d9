"""Finished runs as entries of the results store: a ticket and its dense twin apart, whichever command made them.

`find` makes both in one folder and `compare` each in its own; equal settings give equal keys, so that `compare` can
take what `find` has left.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastglt.store import Entry, key_of

Values = Mapping[str, Any]
_TWIN = ("dense_val", "dense_test", "dense_seconds")
_COMPARED = ("winning_search", "winning_isolated")
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


def entries_of_pair(ticket: Values, dense: Values, metrics: Values, *, command: str, folder: Path) -> list[Entry]:
    """A ticket and its twin, each with its own settings, from the metrics of the folder that has both."""
    twin = {name: metrics[name] for name in (*_SHARED, *_TWIN)}
    alone = {name: value for name, value in metrics.items() if name not in (*_TWIN, *_COMPARED)}
    return [
        entry_of(ticket, alone, command=command, folder=folder),
        entry_of(dense, twin, command=command, folder=folder),
    ]
