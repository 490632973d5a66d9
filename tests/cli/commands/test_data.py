"""`fastglt data list`."""

from tests.cli.conftest import Cli


def test_lists_datasets_and_where_they_are(cli: Cli) -> None:
    entries = {entry["name"]: entry for entry in cli("data", "list", "--json").document}
    assert entries["digits"]["where"] == "built in"
    assert {"cora", "citeseer", "pubmed", "tolokers", "synthetic"} <= set(entries)
    assert "digits" in cli("data", "list").out
