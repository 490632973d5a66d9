"""`fastglt serve`: a ticket behind HTTP."""

import hashlib
import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared.arguments import RUN
from fastglt.cli.shared.compiled import compiled
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.tickets import OwnGraph, open_ticket, refuse_users_model
from fastglt.errors import InputError, MachineError
from fastglt.report.tables import say

if TYPE_CHECKING:
    from fastglt.serve import Limits

EXAMPLES = (
    "Examples: [bold]fastglt serve runs/a[/] (then open the printed page) · "
    "[bold]fastglt serve cora.safetensors --dataset cora --port 0[/] · "
    """[bold]curl localhost:8000/predict --json '{"nodes": \\[0, 5]}'[/]"""
)
_NEEDED = ("fastapi", "prometheus_client", "uvicorn")
LIMITS, ACCESS = "Limits", "Access"
TOKEN = "FASTGLT_SERVE_TOKEN"
_OPEN = (
    "warning: whoever reaches this address may ask, because there is no token; "
    f"pass --token-file or set {TOKEN}, or listen on 127.0.0.1"
)


@dataclass(frozen=True)
class Bounds:
    """The service's limits as options."""

    queue: Annotated[
        int, typer.Option(help="Requests under way at a time; one more gets 503.", rich_help_panel=LIMITS)
    ] = 64
    max_body: Annotated[
        int, typer.Option(help="Bytes of a request's body; more gets 413.", rich_help_panel=LIMITS)
    ] = 4 * 2**20
    max_nodes: Annotated[int, typer.Option(help="Nodes asked for in a request.", rich_help_panel=LIMITS)] = 10_000
    max_new_nodes: Annotated[
        int, typer.Option(help="New nodes in a request; 0: none are taken.", rich_help_panel=LIMITS)
    ] = 100
    max_new_edges: Annotated[int, typer.Option(help="New edges in a request.", rich_help_panel=LIMITS)] = 10_000
    max_unfinished: Annotated[
        int,
        typer.Option(
            help="Requests whose body is on its way; one more, and the oldest gets 503.", rich_help_panel=LIMITS
        ),
    ] = 64
    max_connections: Annotated[
        int, typer.Option(help="Open connections; one more gets 503.", rich_help_panel=LIMITS)
    ] = 256
    timeout: Annotated[
        float,
        typer.Option(help="Seconds to send a request, and again to wait for its answer.", rich_help_panel=LIMITS),
    ] = 10.0

    def limits(self) -> "Limits":
        """Checked."""
        from fastglt.serve import Limits

        return Limits(**vars(self))


@dataclass(frozen=True)
class Access:
    """Who may ask, as options."""

    allowed_host: Annotated[
        list[str],
        typer.Option(
            help="Another name that requests may address it by (Host header); *: any. Those of this machine's "
            "loopback and the address it listens on are allowed anyway. Repeatable.",
            rich_help_panel=ACCESS,
        ),
    ] = field(default_factory=list)
    token_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File with a token that requests must carry (Authorization: Bearer …); or set {TOKEN}.",
            rich_help_panel=ACCESS,
        ),
    ] = None

    def token(self) -> str | None:
        """From the file, or else from the environment."""
        from fastglt.serve.guard import require_token

        if self.token_file is not None:
            try:
                return require_token(self.token_file.read_text(), str(self.token_file))
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"--token-file must be a readable text file (got {error})") from None
        return require_token(os.environ[TOKEN], TOKEN) if TOKEN in os.environ else None


@gather
def serve(
    ticket: Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")],
    graph: OwnGraph,
    bounds: Bounds,
    access: Access,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: every one.", rich_help_panel=RUN)
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one.", rich_help_panel=RUN)] = 8000,
    threads: Annotated[int, typer.Option(help="Of the predictor; 0: all cores.", rich_help_panel=RUN)] = 0,
    log_level: Annotated[
        str, typer.Option(help="critical, error, warning, info (each request) or debug.", rich_help_panel=RUN)
    ] = "warning",
) -> None:
    """Answer questions about nodes over HTTP: POST /predict, with an OpenAPI page at /docs.

    GET /healthz tells whether it is ready, GET /metrics everything else, for Prometheus. SIGTERM, SIGHUP or Ctrl-C:
    nothing new is accepted, what was accepted is answered, then it ends. Nothing is encrypted: beyond this machine
    set a token and put a proxy in front.
    """
    _require_extra()
    import logging

    from fastglt.runs.experiment import use_machine
    from fastglt.serve import make_app
    from fastglt.serve.guard import Guard, is_loopback, require_host
    from fastglt.serve.server import listen, require_level, run_on

    limits = bounds.limits()
    token = access.token()
    hosts = [require_host(name) for name in access.allowed_host]
    require_level(log_level)
    use_machine(threads)
    with listen(host, port) as listening:  # a port that is taken is told before anything is compiled
        found, path = open_ticket(ticket)
        refuse_users_model(found, "fastglt.serve.make_app(predictor)")
        predictor, _, names = compiled(path, graph, layout="fastest")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        app = make_app(predictor, limits=limits, ticket=digest, names=names)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")

        def announce(address: str) -> None:
            say(f"serving {path} at {address} (API page: {address}/docs); Ctrl-C stops it")

        if token is None and not is_loopback(listening.getsockname()[0]):
            say(_OPEN, err=True)
        guarded = Guard(app, hosts=(host, *hosts), token=token, hint="--allowed-host adds one")
        patience = 2 * limits.timeout + 5
        run_on(listening, guarded, announce, log_level=log_level, patience=patience, limits=limits)


def _require_extra() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MachineError(f"fastglt serve needs {', '.join(missing)}; run pip install 'fastglt[serve]'")
