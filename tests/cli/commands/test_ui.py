"""`fastglt ui` on the command line: what it refuses in one line."""

from pathlib import Path

from fastglt.serve.server import listen
from tests.cli.conftest import Cli


def test_a_port_that_is_taken_is_one_line(cli: Cli, tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        done = cli("ui", "--store", tmp_path / "results.sqlite", "--port", port)
    assert done.code == 2
    assert f"127.0.0.1:{port}" in done.err
    assert done.err.rstrip().endswith("pass another --port, or 0 for any free one")
