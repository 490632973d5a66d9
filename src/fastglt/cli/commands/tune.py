"""`fastglt tune`: who serves each kernel fastest on this machine."""

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.report.tables import say
from fastglt.system.terminal import warn

if TYPE_CHECKING:
    from fastglt.kernels import Table
    from fastglt.kernels.tune import Measured

EXAMPLES = (
    "Examples: [bold]fastglt tune[/] (measure, and use the result from now on) · "
    "[bold]fastglt tune --show[/] (what is in use) · "
    "[bold]fastglt tune --reset[/] (back to the table that comes with fastglt)"
)

_BUSY = 0.25  # load of each core


def tune(
    show: Annotated[bool, typer.Option("--show", help="Print the table in use; measure nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Forget what was measured here.")] = False,
    threads: Annotated[int, typer.Option(help="0: all cores.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Measure this machine and keep the table of back ends that suits it, for every later run.

    Takes some ten seconds. A run that has begun keeps the table it began with, so it stays bit-identical.
    """
    from fastglt.kernels import Table
    from fastglt.kernels.table import backend

    results: list[Measured] = []
    if reset:
        path = Table.forget()
        say("there was nothing to forget" if path is None else f"removed {path}", err=True)
    elif not show:
        results = _measure(threads)
    table, forced = Table.of_machine(), backend()
    if forced != "auto":
        say(f"FASTGLT_BACKEND={forced} serves every kernel now, whatever the table says", err=True)
    if json_output:
        measured = [asdict(result) for result in results]
        typer.echo(json.dumps({"table": table.to_dict(), "measured": measured}))
    else:
        _print(table, results)


def _measure(threads: int) -> "list[Measured]":
    from fastglt.cli.shared.progress import Notes
    from fastglt.kernels.tune import measure, to_table
    from fastglt.runs.experiment import use_machine

    _warn_if_busy()
    use_machine(threads)
    results = []
    with Notes("measuring", quiet=False) as notes:
        for result in measure():
            results.append(result)
            notes.tell(f"{result.kernel}, size {result.size:g}: {result.chosen}")
    say(f"kept in {to_table(results).save()}", err=True)
    return results


def _warn_if_busy() -> None:
    """Times that are taken while others compute choose the wrong kernels, for every later run."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > _BUSY * cores:
        about = f"the machine is busy (load average {load:.1f} on {cores} cores), so what is measured may mislead"
        warn(f"{about}; run `fastglt tune` again when it is idle, or `fastglt tune --reset`")


def _print(table: "Table", results: "list[Measured]") -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    if results:
        grid = Grid(title="measured, in ms", title_justify="left")
        for heading in ("kernel", "up to", "times", "chosen"):
            grid.add_column(heading)
        for result in results:
            times = ", ".join(f"{name} {taken:.2f}" for name, taken in result.milliseconds.items())
            grid.add_row(result.kernel, f"{result.size:g}", times, result.chosen)
        console.print(grid)
    for kernel, steps in table.to_dict().items():
        parts = [f"{name} up to {limit:g}" if limit is not None else name for limit, name in steps]
        console.print(f"{kernel}: {', else '.join(parts)}", highlight=False)
