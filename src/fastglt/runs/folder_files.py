"""The files that a run leaves in its folder beside the ticket: JSON with digests, and the history."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.system import digests, plain_json
from fastglt.system.storage import disk_errors, read_bytes
from fastglt.training.records import EpochRecord

RUN, METRICS, TICKET = "run.json", "metrics.json", "ticket.safetensors"
CHECKPOINTS = "checkpoint"  # a folder, while the run is under way
ORIGIN = "graph_from"  # the key in run.json of where a graph from files is
_MOST = 1 << 24  # bytes
_REMEDIES = {
    RUN: "remove that folder, or choose another --out",
    METRICS: "remove it to run again what it told",
}


def read_json(path: Path, key: str) -> Any:
    """A JSON object that has a key, as it was recorded; None where there is no file."""
    with disk_errors(path, "read"):
        if not path.exists():
            return None
    content = read_bytes(path, most=_MOST)
    if digests.is_as_recorded(path, content) is False:
        raise damaged(path, f"it is not what '{digests.FILE}' beside it says")
    try:
        found = plain_json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or key not in found:
        raise damaged(path)
    return found


def has_ticket_alone(folder: Path) -> bool:
    """Whether a folder has a ticket whose command leaves no metrics, and no run in it can go on."""
    return (folder / TICKET).exists() and not (folder / METRICS).exists() and not (folder / CHECKPOINTS).exists()


def damaged(path: Path, how: object = "") -> InputError:
    """The error for one of these files."""
    return InputError(f"'{path}' is damaged{f' ({how})' if how else ''}; {_REMEDIES[path.name]}")


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """A JSON object as it is written, for people to read as well."""
    return (json.dumps(value, indent=2) + "\n").encode()


def history_bytes(histories: Mapping[str, Sequence[EpochRecord]]) -> bytes:
    """A CSV file with a line for each epoch of each phase."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ["phase", *EpochRecord.__dataclass_fields__], lineterminator="\n")
    writer.writeheader()
    for phase, records in histories.items():
        writer.writerows({"phase": phase, **asdict(record)} for record in records)
    return text.getvalue().encode()
