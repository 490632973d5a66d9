"""`fastglt data`."""

from pathlib import Path

from tests.cli.conftest import Cli


def test_lists_datasets_and_where_they_are(cli: Cli) -> None:
    entries = {entry["name"]: entry for entry in cli("data", "list", "--json").document}
    assert entries["digits"]["where"] == "built in"
    assert {"cora", "citeseer", "pubmed", "tolokers", "synthetic"} <= set(entries)
    assert "digits" in cli("data", "list").out


def test_prepares_a_graph_shows_it_and_takes_it_as_a_dataset(cli: Cli, tmp_path: Path) -> None:
    recipe, folder = "synthetic:nodes=60,edges=100,classes=3", str(tmp_path / "graph.fgr")
    made = cli("data", "prepare", recipe, "--out", folder, "--memory", "100MB", "--json").document
    assert (made["nodes"], made["edges"], made["features"]) == (60, 100, 32)
    told = cli("data", "show", folder, "--verify").out
    assert "60 nodes, 100 edges (undirected), 32 features" in told
    assert "all as their checksums say" in told
    plan = {"--hidden": "4", "--oneshot-epochs": "1", "--denoise-epochs": "2", "--interval": "1"}
    words = [word for pair in plan.items() for word in pair]
    found = [
        cli("find", "--dataset", dataset, *words, "--out", str(tmp_path / name), "--json").document
        for name, dataset in (("one", recipe), ("two", folder))
    ]
    assert found[0]["search_test"] == found[1]["search_test"]
    tickets = [(tmp_path / name / "ticket.safetensors").read_bytes() for name in ("one", "two")]
    assert tickets[0] == tickets[1]


def test_a_ray_address_without_ray_is_refused(cli: Cli) -> None:
    refused = cli("compare", "--ray-address", "head:6379")
    assert refused.code == 2
    assert "--ray-address must come with --engine ray (got 'head:6379' with local)" in refused.err
