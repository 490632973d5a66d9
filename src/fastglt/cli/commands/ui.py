"""`fastglt ui`: finished runs and those under way as a page in the browser."""

from importlib.util import find_spec
from typing import Annotated

import typer

from fastglt.cli.commands.report import OwnDataset, Places
from fastglt.cli.shared import arguments
from fastglt.errors import MachineError
from fastglt.report.tables import say

EXAMPLES = (
    "Examples: [bold]fastglt ui[/] (then open the printed page) · [bold]fastglt ui --port 0[/] (any free port) · "
    "[bold]fastglt ui lab.sqlite runs/compare-cora-gcn[/] (several places)"
)
_NEEDED = ("starlette", "uvicorn")


def ui(
    places: Places = None,
    port: Annotated[int, typer.Option(help="0: any free one.")] = 8010,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the default browser.")] = False,
    dataset: OwnDataset = None,
    data_root: arguments.DataRoot = None,
    store: arguments.Store = arguments.STORE,
) -> None:
    """Show the report's page over the results store while runs go on, with their progress.

    It is served to this machine alone (127.0.0.1), and requests that name another host are refused; nothing is
    loaded from elsewhere, and nothing can be started or changed from the page. The page says when more runs have
    finished. Runs under way are looked for in the store's folder and in runs/. Ctrl-C stops it.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MachineError(f"fastglt ui needs {', '.join(missing)}; run pip install 'fastglt[report,serve]'")
    import webbrowser

    from fastglt.serve.guard import Guard
    from fastglt.serve.server import listen, run_on
    from fastglt.ui import Live, make_app

    live = Live(places or [store], data_root=data_root, dataset=dataset)

    def announce(address: str) -> None:
        say(f"fastglt ui at {address}; Ctrl-C stops it")
        if open_page:
            webbrowser.open(address)

    run_on(
        listen("127.0.0.1", port),
        Guard(make_app(live), hint="open the address that was printed"),
        announce,
        patience=5.0,
    )
