"""`fastglt federated`, end to end on a tiny graph."""

import json
import re
from pathlib import Path

from tests.cli.conftest import TINY, Cli

SHORT = ("--dataset", TINY, "--clients", "3", "--parts", "random", "--hidden", "8", "--rounds", "6")


def test_a_ticket_is_trained_told_and_used(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = cli("federated", *SHORT, "--weight-sparsity", "0.8", "--vanish", "1:3", "--out", out, "--json")
    assert result.code == 0, result.err
    found = result.document
    assert found["weights_kept"] == round(0.2 * found["weights_total"])
    assert found["left_out"] == {str(number): {"1": "it did not answer"} for number in (4, 5, 6, 7)}
    assert found["bytes_last_round"] < found["bytes_first_round"]
    assert "left out: client 1 (it did not answer)" in result.err
    assert len(json.loads((out / "rounds.json").read_text())) == 7
    assert cli("predict", out, "--nodes", "0-3").code == 0
    assert cli("evaluate", out, "--seeds", "0", "--threads", "1").code == 0
    page = tmp_path / "page.html"
    shown = cli("report", out, "--out", page)
    assert (shown.code, shown.err, shown.out) == (0, "", f"1 run in '{page}'\n")
    assert f"On {TINY} with gcn" in page.read_text()
    assert cli("plot", "graph", out, "--out", tmp_path / "graph.svg").code == 0
    again = cli("federated", *SHORT, "--out", out)
    assert (again.code, "must be new or empty" in again.err) == (2, True)


def test_dense_training_and_clients_alone(cli: Cli, tmp_path: Path) -> None:
    result = cli("federated", *SHORT, "--weight-sparsity", "0", "--alone", "--quiet", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert re.search(r"Each client alone, on its own part: \d", result.out)
    assert result.err == ""


def test_bad_options_get_one_line(cli: Cli) -> None:
    for more, message in (
        (("--vanish", "7:1"), "must name a client from 0 to 2 and a round from 1 to 6 (got '7:1')"),
        (("--vanish", "x"), "must be CLIENT:ROUND, as in 3:20 (got 'x')"),
        (("--engine", "smoke"), "unknown engine (got 'smoke')"),
        (("--patience", "3"), "--patience must come with --engine flower (got 3 with local); leave it out"),
        (("--agreement", "smoke"), "unknown agreement (got 'smoke')"),
        (("--warmup", "6"), "warmup must be at least 1 and less than the 6 rounds"),
        (("--weight-sparsity", "1"), "weight_sparsity must lie in [0, 1)"),
    ):
        result = cli("federated", *SHORT, *more)
        assert (result.code, message in result.err) == (2, True), result.err
        assert len(result.err.strip().splitlines()) == 1
