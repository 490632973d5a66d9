"""`fastglt runs --check` and `--repair`: whether the results store is what was written."""

import json
from pathlib import Path

import typer

from fastglt.report.tables import say


def check_store(path: Path, *, repairs: bool, as_json: bool) -> None:
    """Tell what is whole and what is not, after a repair where the old store is; exit code 1 for damage left."""
    from fastglt.runs.store_repair import check, repair

    found, old = repair(path) if repairs else (check(path), None)
    if as_json:
        document = {
            "whole": found.whole,
            "without_digest": found.without_digest,
            "damaged": found.damaged,
            "notes": found.notes,
            "old": None if old is None else str(old),
        }
        typer.echo(json.dumps(document))
    else:
        counts = {
            "whole": found.whole,
            "damaged": found.damaged,
            "of before, without a digest": found.without_digest,
        }
        told = ", ".join(f"{len(numbers):,} {name}" for name, numbers in counts.items())
        say(f"rows in '{path}': {told}")
        for number, reason in found.damaged.items():
            say(f"row {number}: {reason}")
        for note in found.notes:
            say(note)
        if old is not None:
            say(f"a new store has all that is not damaged; the old one is '{old}'")
    if not found.is_sound and old is None:
        raise typer.Exit(1)
