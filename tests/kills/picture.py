"""What a command has left: all that has to be equal whether it was killed or not, times apart."""

import hashlib
import json
from pathlib import Path
from typing import Any

from fastglt.runs.store import Store
from fastglt.runs.store_repair import check

STORE = "store.sqlite"
_TIMES = ("id", "finished", "relative_time", "versions", "machine", "revision")


def picture(folder: Path, printed: str) -> dict[str, Any]:
    """Tickets and histories byte for byte, metrics, the store's rows, what was printed, which files there are."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [str(path.relative_to(folder)) for path in files]
    found: dict[str, Any] = {"files": names, "printed": _plain(json.loads(printed)) if printed.strip() else None}
    for name, path in zip(names, files, strict=True):
        if path.suffix in (".safetensors", ".csv"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.name in ("metrics.json", "run.json"):
            found[name] = _plain(json.loads(path.read_text()))
    if (folder / STORE).exists():
        rows = [_plain(row) for row in Store(folder / STORE).rows()]
        text = [json.dumps(row, sort_keys=True).replace(str(folder), "") for row in rows]
        found["rows"], found["the store is sound"] = sorted(text), check(folder / STORE).is_sound
    return found


def _plain(value: Any) -> Any:
    """Without what a clock decides."""
    if isinstance(value, dict):
        kept = (key for key in value if not key.endswith("seconds") and key not in _TIMES)
        return {key: _plain(value[key]) for key in kept}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """In words, what two pictures differ in."""
    changed = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return [f"{name}: {_change(one.get(name), other.get(name))}" for name in changed]


def _change(one: Any, other: Any) -> str:
    if isinstance(one, list) and isinstance(other, list):
        gone, come = [part for part in one if part not in other], [part for part in other if part not in one]
        return f"{gone!r:.600} gone, {come!r:.600} come, {len(one)} became {len(other)}"
    return f"{one!r:.600} became {other!r:.600}"
