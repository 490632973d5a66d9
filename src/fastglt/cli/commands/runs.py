"""`fastglt runs`: what the results store has."""

import csv as csv_files
import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.options import asked_for
from fastglt.errors import InputError, require
from fastglt.report.tables import say
from fastglt.report.wording import counted
from fastglt.studies.lists import read_names, read_seeds
from fastglt.system.storage import disk_errors
from fastglt.system.terminal import safe

EXAMPLES = (
    "Examples: [bold]fastglt runs --dataset cora --kind ticket --seed 0-4[/] · "
    "[bold]fastglt runs 17[/] (one run whole) · "
    "[bold]fastglt runs --method fastglt,ugs --since 2026-01-31 --csv runs.csv[/] · "
    "[bold]fastglt runs --take other-machine.sqlite[/]"
)
Row = Mapping[str, Any]
_FILTERS, _OUTPUT = "Which runs (all that is given must hold)", "How to print them"
_STORE = "The store itself"
_ALONE = {"take": ("store",), "check": ("repair", "json_output", "store"), "repair": ("json_output", "store")}


def _filter(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel=_FILTERS)


def runs(
    context: typer.Context,
    number: Annotated[
        int | None, typer.Argument(metavar="ID", help="One run, with all that is known of it.")
    ] = None,
    dataset: Annotated[str | None, _filter("Names, comma-separated.")] = None,
    model: Annotated[str | None, _filter("Names, comma-separated.")] = None,
    method: Annotated[str | None, _filter("Names, comma-separated.")] = None,
    kind: Annotated[str | None, _filter("ticket, dense, evaluation, bench; comma-separated.")] = None,
    command: Annotated[str | None, _filter("What made them: find, compare, …; comma-separated.")] = None,
    seed: Annotated[str | None, _filter("As in 0-4 or 0,2,5.")] = None,
    since: Annotated[
        str | None, _filter("Finished on this day or later, as in 2026-01-31 or 2026-01-31T18:00.")
    ] = None,
    limit: Annotated[int, typer.Option(help="The last so many; 0: all.", rich_help_panel=_OUTPUT)] = 50,
    csv: Annotated[
        Path | None, typer.Option(help="File for a table of all that match.", rich_help_panel=_OUTPUT)
    ] = None,
    json_output: Annotated[
        bool,
        typer.Option("--json", help="All that match, whole, as one JSON document.", rich_help_panel=_OUTPUT),
    ] = False,
    share: Annotated[
        Path | None,
        typer.Option(
            help="File for all that match, a line each, without places on this machine: for --take elsewhere.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    wide: arguments.Wide = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Say which rows are whole; exit code 1 if some are not.", rich_help_panel=_STORE
        ),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Keep what is whole in a new store, the old one beside it.", rich_help_panel=_STORE
        ),
    ] = False,
    take: Annotated[
        Path | None,
        typer.Option(
            help="Add runs that were recorded elsewhere: another store, or a file of --share.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    store: arguments.Store = arguments.STORE,
) -> None:
    """List the runs that find, compare and the other commands have recorded, the newest last.

    Each has its settings, scores and times, the machine, the versions and git
    revision of the code, and the place of its ticket. Times are UTC.
    """
    require("not be negative", limit=limit)
    given = asked_for(context)
    _refuse_beside(given)
    if check or repair:
        from fastglt.cli.shared.store_check import check_store

        check_store(store, repairs=repair, as_json=json_output)
        return
    if take is not None:
        _take(take, store)
        return
    names = {"dataset": dataset, "model": model, "method": method, "kind": kind, "command": command}
    wanted: dict[str, list[Any]] = {"id": [number]} if number is not None else {}
    wanted |= {} if seed is None else {"seed": read_seeds(seed)}
    everything, first = _read(store), "" if since is None else _as_utc(since)
    wanted |= {name: _names(text, name, everything) for name, text in names.items() if text is not None}
    found = [row for row in everything if all(row[name] in values for name, values in wanted.items())]
    found = [row for row in found if row["finished"] >= first]
    if number is not None and all(row["id"] != number for row in everything):
        raise InputError(f"the id must be that of a run in '{store}' (got {number}); `fastglt runs` lists them")
    if csv is not None:
        _write_csv(csv, found)
    if share is not None and found:
        from fastglt.runs.store_exchange import share as write_shared

        write_shared(found, share)
    written = [] if csv is None else [csv]
    written += [] if share is None or not found else [share]
    for path in written:
        say(f"{counted(len(found), 'run')} written to '{path}'", err=True)
    if json_output:
        typer.echo(json.dumps(found if number is None else next(iter(found), None)))
    elif number is not None and found:
        _print_whole(found[0])
    elif csv is None and share is None and found:
        _print(found[-limit:])
    whole = json_output or csv is not None or share is not None
    _say(found, everything, wanted, store, shown=len(found) if whole else limit or len(found))
    if whole and "limit" in given and limit and limit < len(found):
        say(f"--limit is for the list alone; all {len(found)} runs that match are taken", err=True)


def _refuse_beside(given: Mapping[str, str]) -> None:
    """What says something about the whole store comes without what chooses and prints runs."""
    for name, allowed in _ALONE.items():
        beside = [flag for other, flag in given.items() if other not in (name, *allowed)]
        if name in given and beside:
            raise InputError(f"{beside[0]} must come without {given[name]} (got both); leave one out")


def _take(path: Path, store: Path) -> None:
    """Add runs from elsewhere, and say how many."""
    from fastglt.runs.store import Store
    from fastglt.runs.store_exchange import take

    added, known = take(path, Store(store))
    say(f"{counted(added, 'run')} of '{path}' added to '{store}'" + f"; {known} were there already" * bool(known))


def _read(path: Path) -> list[Row]:
    """A store that is not there yet is an empty one, and stays away."""
    from fastglt.runs.store import Store

    with disk_errors(path, "read"):
        there = path.exists()
    return [*Store(path).rows()] if there else []


def _as_utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since must be as in 2026-01-31 or 2026-01-31T18:00 (got '{text}')") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _names(text: str, column: str, rows: list[Row]) -> list[str]:
    """What stands between the commas; a name that has some itself, as generated graphs have, stays whole."""
    whole = [text] if any(row[column] == text for row in rows) else []
    return whole + [_in_full(name) if column == "dataset" else name for name in read_names(column, text)]


def _in_full(dataset: str) -> str:
    """A generated graph as runs record it, with what was left out."""
    if not dataset.startswith("synthetic:"):
        return dataset
    from fastglt.data.synthetic import SyntheticGraph

    return str(SyntheticGraph.parse(dataset.removeprefix("synthetic:")))


def _say(
    found: list[Row], everything: list[Row], wanted: Mapping[str, list[Any]], store: Path, *, shown: int
) -> None:
    """What the list does not: that it is empty, and why, or not all of it."""
    if not everything:
        say(f"no run is recorded in '{store}' yet; `fastglt find` and others record theirs", err=True)
    elif not found:
        say(f"none of {len(everything)} runs in '{store}' fits", err=True)
        for name, values in wanted.items():
            known = {row[name] for row in everything if row[name] is not None}
            if not known & set(values):
                there = ", ".join(map(str, sorted(known))) or "none"
                say(f"no {name} is {' or '.join(map(str, values))} (there: {there})", err=True)
    elif shown < len(found):
        say(f"the last {shown} of {len(found)} runs; --limit 0 lists all", err=True)


def _write_csv(path: Path, rows: list[Row]) -> None:
    """Columns as in the store; what has parts of its own, as JSON."""
    from fastglt.runs.store import COLUMNS, PARTS
    from fastglt.system.storage import write_atomically

    text = io.StringIO()
    writer = csv_files.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, **{part: json.dumps(row[part]) for part in PARTS}} for row in rows)
    write_atomically(path, text.getvalue().encode())


def _print(rows: list[Row]) -> None:
    from rich.console import Console

    from fastglt.cli.shared.apart import apart
    from fastglt.report.tables import empty_table, print_table

    more = apart(rows, lambda row: tuple(_CELLS[heading][0](row) for heading in _LOOKS))
    left = [heading for heading, (_, is_number) in _CELLS.items() if not is_number]
    table = empty_table(*_CELLS, *more, left=left)
    for row, *cells in zip(rows, *more.values(), strict=True):
        table.add_row(*(cell(row) for cell, _ in _CELLS.values()), *cells)
    print_table(table, Console())


def _text(name: str) -> Callable[[Row], str]:
    return lambda row: "–" if row[name] is None else str(row[name])


def _share(name: str, digits: int) -> Callable[[Row], str]:
    return lambda row: "–" if row[name] is None else f"{100 * row[name]:.{digits}f}"


_CELLS: dict[str, tuple[Callable[[Row], str], bool]] = {  # each column's cell, and whether it is a number
    "id": (_text("id"), True),
    "finished": (lambda row: row["finished"][:16].replace("T", " "), False),
    "command": (_text("command"), False),
    "kind": (lambda row: row["kind"] + ", distilled" * ("distill" in row["settings"]), False),
    **{name: (_text(name), False) for name in ("dataset", "model", "method")},
    "edges −%": (_share("graph_sparsity", 1), True),
    "weights −%": (_share("weight_sparsity", 1), True),
    "seed": (_text("seed"), True),
    "dense %": (_share("dense_test", 2), True),
    "search %": (_share("search_test", 2), True),
    "retrained %": (_share("isolated_test", 2), True),
    "seconds": (lambda row: "–" if row["seconds"] is None else f"{row['seconds']:.1f}", True),
}


_LOOKS = ("kind", "dataset", "model", "method", "edges −%", "weights −%", "seed")  # as far as settings decide


def _print_whole(row: Row) -> None:
    from rich.console import Console
    from rich.text import Text

    from fastglt.runs.store import PARTS

    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    for name, value in row.items():
        if name not in PARTS:
            console.print(Text(safe(f"{name}: {value}")))
    for part in PARTS:
        console.print(f"\n{part}", style="bold")
        for name, value in row[part].items():
            console.print(Text(safe(f"  {name}: {value}")))
