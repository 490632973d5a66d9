"""`fastglt` itself, without a command."""

import fastglt
from tests.cli.conftest import Cli


def test_version(cli: Cli) -> None:
    assert cli("--version").out.strip() == f"fastglt {fastglt.__version__}"


def test_no_command_shows_help(cli: Cli) -> None:
    result = cli()
    assert "Usage" in result.out + result.err
