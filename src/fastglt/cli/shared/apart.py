"""What tells runs apart that would look alike in a list: hidden width, budget, options, the file of the graph."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError
from fastglt.runs.differences import differing, flat

Row = Mapping[str, Any]
_FILE, _EPOCHS = "graph file", "epochs"
_HEADINGS = {
    **dict.fromkeys(("graph", "features", "labels_and_split"), _FILE),
    **dict.fromkeys(("oneshot_epochs", "denoise_epochs", "epochs"), _EPOCHS),
}
_FIRST = ("hidden", _EPOCHS, "lr", "weight decay", _FILE)  # the others follow
_UNTOLD = ("model.in_channels", "model.out_channels", "model.seed")
_MOST = 6  # columns
_SHOWN = 8  # characters of a digest


def apart(rows: Sequence[Row], looks: Callable[[Row], Any]) -> dict[str, list[str]]:
    """Columns for rows that look the same, as `looks` says: a heading, and a cell for each row."""
    settings = [flat(row["settings"]) for row in rows]
    alike: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        alike.setdefault(looks(row), []).append(place)
    names: dict[str, list[str]] = {}
    for places in alike.values():
        for name in differing(*(settings[place] for place in places)):
            if name not in _UNTOLD and name not in names.setdefault(heading_of(name), []):
                names[heading_of(name)].append(name)
    headings = sorted(
        filter(names.get, names), key=lambda text: _FIRST.index(text) if text in _FIRST else len(_FIRST)
    )
    return {
        heading: [_cell(heading, names[heading], row, known) for row, known in zip(rows, settings, strict=True)]
        for heading in headings[:_MOST]
    }


def heading_of(name: str) -> str:
    """What a setting is called above a column.

    >>> heading_of("model.hidden"), heading_of("weight_decay"), heading_of("graph")
    ('hidden', 'weight decay', 'graph file')
    """
    return _HEADINGS.get(name, name.rpartition(".")[2].replace("_", " "))


def _cell(heading: str, names: Sequence[str], row: Row, settings: Mapping[str, Any]) -> str:
    if heading == _FILE:
        return graph_file(row) or _short(settings.get(names[0]))
    if heading == _EPOCHS and "oneshot_epochs" in settings:
        return f"{settings['oneshot_epochs']}+{settings.get('denoise_epochs')}"
    return _short(next((settings[name] for name in names if name in settings), None))


def graph_file(row: Row) -> str | None:
    """Where a run's graph came from, as seen from here, if its folder can tell."""
    from fastglt.cli.shared.tickets import origin_of

    place = row["folder"] or (row["ticket"] and os.path.dirname(row["ticket"]))
    try:
        origin = None if not place else origin_of(Path(place) / "ticket.safetensors")
    except FastGLTError:
        return None
    if origin is None:
        return None
    here = Path.cwd()
    near = [path.relative_to(here) if path.is_relative_to(here) else path for path in origin.named]
    return "+".join(map(str, near))


def _short(value: Any) -> str:
    """A value; of a digest, its beginning."""
    text = "–" if value is None else str(value)
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:_SHOWN] if is_digest else text
