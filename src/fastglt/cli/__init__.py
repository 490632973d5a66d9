"""The command line: one file per command."""

import errno
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from fastglt import __version__
from fastglt.cli.commands import (
    attack,
    bench,
    compare,
    data,
    diff,
    evaluate,
    export,
    extreme,
    federated,
    find,
    methods,
    models,
    plot,
    predict,
    report,
    reproduce,
    runs,
    serve,
    show,
    suspects,
    transfer,
    tune,
    ui,
    update,
)
from fastglt.cli.shared.help_text import as_lines
from fastglt.cli.shared.torchrun import silent_helper
from fastglt.errors import FastGLTError, InputError
from fastglt.report.tables import plain
from fastglt.system import ranks
from fastglt.system.process import Reserve, refuse_numba_settings, require_room, what_ran_out
from fastglt.system.terminal import warn, write_anyhow

app = typer.Typer(
    help="Find graph lottery tickets: a sparser graph and a sparser GNN that train as well as the dense original.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _add(name: str, command: Callable[..., None], examples: str) -> None:
    """A command, with its docstring as paragraphs that a terminal wraps at its own width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, help=text, epilog=as_lines(examples))(command)


_add("find", find.find, find.EXAMPLES)
_add("evaluate", evaluate.evaluate, evaluate.EXAMPLES)
_add("compare", compare.compare, compare.EXAMPLES)
_add("extreme", extreme.extreme, extreme.EXAMPLES)
_add("methods", methods.methods, methods.EXAMPLES)
_add("models", models.models, models.EXAMPLES)
_add("runs", runs.runs, runs.EXAMPLES)
_add("reproduce", reproduce.reproduce, reproduce.EXAMPLES)
_add("report", report.report, report.EXAMPLES)
_add("plot", plot.plot, plot.EXAMPLES)
_add("ui", ui.ui, ui.EXAMPLES)
_add("show", show.show, show.EXAMPLES)
_add("suspects", suspects.suspects, suspects.EXAMPLES)
_add("attack", attack.attack, attack.EXAMPLES)
_add("diff", diff.diff, diff.EXAMPLES)
_add("transfer", transfer.transfer, transfer.EXAMPLES)
_add("federated", federated.federated, federated.EXAMPLES)
_add("update", update.update, update.EXAMPLES)
_add("predict", predict.predict, predict.EXAMPLES)
_add("export", export.export, export.EXAMPLES)
_add("serve", serve.serve, serve.EXAMPLES)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
_add("tune", tune.tune, tune.EXAMPLES)

_OUTPUT_FAILS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # closed, or full
_LESS = "a smaller --hidden"
_WITHOUT_TORCH = ("runs",)
_TOGETHER = ("find",)  # what several processes of torchrun can do together
_HELP = {"--help"}
_reserve: list[Reserve] = []


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fastglt {__version__}")
        raise typer.Exit


def _use(places: str) -> None:
    """Make classes from outside known before a command runs."""
    from fastglt.registration import register
    from fastglt.system.plugins import load_class

    for place in places.split(","):
        register(load_class(place.strip(), "class"))


@app.callback()
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    use: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:CLASS",
            envvar="FASTGLT_USE",
            help="A method or model of your own that a command or a ticket names; comma-separated if several.",
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand not in _WITHOUT_TORCH and not _HELP.intersection(sys.argv):
        require_room()
    if use:
        _use(use)
    if ranks.started()[1] > 1:
        if context.invoked_subcommand not in _TOGETHER:
            got = f"{context.invoked_subcommand} in {ranks.started()[1]} processes"
            raise InputError(f"torchrun is for find (got {got}); compare and extreme have --jobs and --engine")
        context.with_resource(ranks.joined())


def main() -> None:
    """Run the command line; what goes wrong on purpose becomes one line and an exit code."""
    write_anyhow(sys.stdout)
    errors = silent_helper()
    _reserve.append(Reserve())
    try:
        refuse_numba_settings()
        with warnings.catch_warnings():
            warnings.showwarning = partial(_tell, set())
            app(prog_name="fastglt")
    except FastGLTError as error:
        errors.speak(error.exit_code)
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        errors.speak(130)
        _fail("interrupted", 130)
    except Exception as error:
        errors.speak(1)
        _fail_of_machine(error)


def _fail_of_machine(error: Exception) -> None:
    """One line for what the machine does not give; anything else is a mistake of ours, and raised."""
    lacks = what_ran_out(error)
    if lacks is not None:
        error.__traceback__ = error.__context__ = error.__cause__ = None  # and all that their frames hold
        _fail(lacks.format(_LESS), 1)
    if not isinstance(error, OSError):
        raise error
    if error.filename is not None or error.errno not in _OUTPUT_FAILS:
        _fail(f"the machine refuses: {error}", 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _fail(f"cannot write the result ({error.strerror})", 1)


_show = warnings.showwarning


def _tell(told: set[str], message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
    """A warning of ours as one line, once, without the places in the code that it comes from."""
    if category.__module__.startswith("fastglt."):
        if str(message) not in told:
            warn(str(message))
        told.add(str(message))
    else:
        _show(message, category, *place, **options)


def _fail(message: str, code: int) -> None:
    while _reserve:
        _reserve.pop().release()
    console = Console(stderr=True, highlight=False)
    console.soft_wrap = not console.is_terminal  # a terminal gets it wrapped between words
    console.print("error: ", style="bold red", end="")
    console.print(plain(" ".join(message.split())))
    sys.exit(code)
