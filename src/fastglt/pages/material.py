"""What a page is made of: finished runs from stores and folders, and notes on whatever could not be read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError, InputError
from fastglt.runs.folder_files import METRICS, RUN, TICKET, has_ticket_alone, read_json
from fastglt.runs.store import COLUMNS, Store
from fastglt.runs.store_repair import check
from fastglt.runs.store_schema import NotAStoreError, read_row
from fastglt.system.storage import disk_errors

Row = dict[str, Any]
_GRAPH = ("dataset", "split_seed")  # settings that say which graph a ticket is for
_RULE = "runs must be in a store, a folder or a ticket file"


@dataclass(frozen=True, kw_only=True)
class Material:
    """Finished runs, as rows of a store, the oldest first; where they are from; what could not be read, and why."""

    rows: list[Row] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # of these notes one for each place that gave nothing


def gather(places: Iterable[Path]) -> Material:
    """The runs of stores, of runs' folders, of folders of runs' folders and of ticket files.

    What is damaged or of a newer fastglt becomes a note, and the rest is read.
    """
    found = Material()
    for place in places:
        found.sources.append(str(place))
        try:
            found.rows.extend(_read(place, found.notes))
        except FastGLTError as error:
            found.notes.append(str(error))
            found.unread.append(str(error))
    return found


def _read(place: Path, notes: list[str]) -> Iterator[Row]:
    with disk_errors(place, "read"):
        if not place.exists():
            raise InputError(f"{_RULE} (got '{place}', which is not there); name another")
        if place.is_file() and place.suffix == ".safetensors":
            yield _ticket_row(place)
        elif place.is_file():
            yield from _store_rows(place, notes)
        else:
            yield from _folder_rows(place, notes)


def _store_rows(path: Path, notes: list[str]) -> Iterator[Row]:
    """All rows; of a damaged store those that are whole."""
    try:
        rows = Store(path).rows()
    except NotAStoreError:
        raise InputError(f"{_RULE} (got '{path}', which is none of these, or damaged); name another") from None
    except FastGLTError as error:
        rows = [read_row(values[:-1], values[-1]) for values in check(path).rows]
        if not rows:
            raise
        notes.append(str(error))
    else:
        if not rows:
            notes.append(f"no run is recorded in '{path}' yet; `fastglt find` and others record theirs")
    yield from rows


def _folder_rows(folder: Path, notes: list[str]) -> Iterator[Row]:
    """The run in a folder, or the runs in the folders below it."""
    if (folder / RUN).exists():
        yield _folder_row(folder)
        return
    below = sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    if not below:
        raise InputError(f"a folder must be that of a run, or of several (got '{folder}', without {RUN})")
    shown = 0
    for each in below:
        try:
            yield _folder_row(each)
            shown += 1
        except FastGLTError as error:
            notes.append(str(error))
    if not shown:
        raise InputError(f"a folder must have a run that can be shown (got '{folder}', with none of {len(below)})")


def _folder_row(folder: Path) -> Row:
    """A finished run as the store would have it."""
    begun, metrics = read_json(folder / RUN, "settings"), read_json(folder / METRICS, "seed")
    settings, ticket = begun["settings"], folder / TICKET
    if not isinstance(settings, dict):
        raise InputError(f"'{folder / RUN}' is damaged")
    if metrics is None and has_ticket_alone(folder):
        return _ticket_row(ticket, {name: settings[name] for name in _GRAPH if name in settings})
    if metrics is None:
        raise InputError(f"a run must be finished to be shown (got '{folder}'); the command that began it goes on")
    is_dense = settings.get("dense") is True
    return _row(settings, metrics, kind="dense" if is_dense else "ticket", folder=folder, ticket=ticket)


def _ticket_row(path: Path, graph: Row | None = None) -> Row:
    """A ticket that came without its run's metrics: what the file itself tells, and which graph it is for."""
    from fastglt.tickets.ticket_file import load

    ticket = load(path)
    masks = ticket.masks
    counts = {
        "edges_kept": masks.edges.count,
        "edges_total": masks.edges.size,
        "weights_kept": masks.weights_kept,
        "weights_total": masks.weights_total,
        "graph_sparsity": masks.graph_sparsity,
        "weight_sparsity": masks.weight_sparsity,
    }
    about = {"model": dict(ticket.model), "seed": ticket.seed, "graph": ticket.graph_fingerprint}
    method = {"method": ticket.config["method"], "options": dict(ticket.config["options"])}
    settings = {**about, **(graph or {}), **method}
    metrics = {"metric": ticket.config["metric"], **counts, **ticket.scores}
    return _row({**settings, **_targets(counts)}, metrics, kind="ticket", folder=None, ticket=path)


def _targets(counts: Row) -> Row:
    return {name: counts[name] for name in ("graph_sparsity", "weight_sparsity")}


def _row(settings: Row, metrics: Row, *, kind: str, folder: Path | None, ticket: Path) -> Row:
    model = settings.get("model")
    known = {
        "kind": kind,
        "model": model.get("name") if isinstance(model, dict) else model,
        "settings": {name: value for name, value in settings.items() if (name, value) != ("dense", False)},
        "metrics": metrics,
        "versions": {},
        "machine": {},
        "folder": None if folder is None else str(folder.absolute()),
        "ticket": str(ticket.absolute()) if kind == "ticket" else None,
    }
    plain = {name: settings.get(name, metrics.get(name)) for name in COLUMNS if name not in known}
    return {**plain, **known}
