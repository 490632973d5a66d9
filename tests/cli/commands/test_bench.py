"""`fastglt bench`, end to end on a tiny graph; memory is measured elsewhere."""

import json
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastglt.runs.store import Store
from tests.cli.conftest import TINY, Cli, Result

WHOLE = f"{TINY},homophily=0.8,seed=0"  # as it is recorded
QUICK = ("--hidden", "8", "--threads", "1", "--repeats", "1")
SHORT = (*QUICK, "--oneshot-epochs", "2", "--denoise-epochs", "4", "--pyg-epochs", "1")
TRAIN_KEYS = {
    *("dataset", "model", "ours_ms", "pyg_ms", "ratio_to_pyg"),
    *("soft_ms", "hard_ms", "dense_ms", "pyg_edge_index_ms", "pyg_csr_ms"),
}
SEARCH_KEYS = {
    *("dataset", "model", "search_seconds", "dense_seconds", "pyg_dense_seconds"),
    *("ratio_to_dense", "ratio_to_pyg", "pyg_epochs_timed"),
}
PEAKS = {"peak_mb_ours": 111.4, "peak_mb_pyg": 222.2, "peak_mb_pyg_edge_index": 333.3, "peak_mb_pyg_csr": 222.2}


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("train", "search"):
        monkeypatch.setattr(f"fastglt.bench.{command}.peaks", lambda *arguments: PEAKS)
    monkeypatch.setattr("fastglt.bench.infer.in_own_process", lambda job: 100 * 2**20)


@pytest.fixture
def train(cli: Cli) -> Cli:
    def run(*arguments: object) -> Result:
        return cli("bench", "train", "--datasets", TINY, *QUICK, *arguments)

    return run


def test_train_measures_every_pair(cli: Cli) -> None:
    other = "synthetic:nodes=60,edges=90"
    result = cli("bench", "train", "--datasets", f"{TINY},{other}", "--models", "gcn,gat", *QUICK, "--json")
    assert result.code == 0, result.err
    assert result.out.count("\n") == 1
    assert result.document["settings"]["hidden"] == 8
    assert result.document["machine"]["threads"] == 1
    rows = result.document["rows"]
    for row, (dataset, model) in zip(rows, product((TINY, other), ("gcn", "gat")), strict=True):
        assert set(row) == TRAIN_KEYS | set(PEAKS) | {"pyg_faster", "data"}
        assert row["dataset"].startswith(dataset), "with what was left out"
        assert row["model"] == model
    assert f"{rows[0]['dataset']} gcn: warming up soft" in result.err


def test_what_is_measured_is_recorded(train: Cli, store: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert train("--out", tmp_path / "train.json", "--quiet").code == 0
    assert train("--quiet").code == 0
    first, second = Store(store).rows()
    assert (first["kind"], first["command"], first["dataset"], first["model"]) == (
        *("bench", "bench train", WHOLE, "gcn"),
    )
    assert first["metrics"] == json.loads((tmp_path / "train.json").read_text())["rows"][0]
    assert (first["settings"]["hidden"], first["settings"]["threads"]) == (8, 1)
    assert (first["folder"], second["folder"]) == (str(tmp_path / "train.json"), None)
    assert first["key"] == second["key"]


def test_search_measures_whole_searches(cli: Cli) -> None:
    result = cli("bench", "search", "--dataset", TINY, "--model", "gin", *SHORT, "--json", "--quiet")
    assert (result.code, result.err) == (0, "")
    (row,) = result.document["rows"]
    assert set(row) > SEARCH_KEYS | set(PEAKS)
    assert (row["epochs"], row["pyg_epochs_timed"]) == (6, 1)
    assert result.document["settings"]["oneshot_epochs"] == 2


@pytest.mark.parametrize(("command", "options"), [("train", QUICK), ("search", SHORT)])
def test_a_table_for_people_is_never_cut_off(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    result = cli("bench", command, "--datasets", TINY, "--models", "gcn,gin", *options)
    assert result.code == 0, result.err
    headings, _, *rows, machine = result.out.rstrip().splitlines()
    assert headings.split()[:2] == ["dataset", "model"]
    assert headings.endswith("PyG CSR MB")
    assert [row.split()[:2] for row in rows] == [[WHOLE, "gcn"], [WHOLE, "gin"]]
    assert all(row.split()[-3:] == ["111", "333", "222"] for row in rows)
    assert "…" not in result.out
    assert "1 thread on" in machine
    assert "PyG 2." in machine


def test_the_papers_budget_is_the_default(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measure(experiment: Any, **options: Any) -> dict[str, str]:
        asked.append((experiment, options))
        return {"dataset": "digits", "model": "gcn"}

    monkeypatch.setattr("fastglt.bench.search.measure", measure)
    cli("bench", "search", "--datasets", "digits", "--models", "gcn", "--json")
    ((experiment, options),) = asked
    assert (experiment.budget.oneshot_epochs, experiment.budget.denoise_epochs) == (30, 400)
    assert (experiment.hidden, experiment.method, options["repeats"]) == (512, "fastglt", 3)


def test_what_is_in_the_file_is_not_measured_again(train: Cli, tmp_path: Path) -> None:
    first = train("--json", "--out", tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == first.document
    again = train("--json", "--models", "gin,gcn", "--out", tmp_path / "rows.json")
    gin, gcn = again.document["rows"]
    assert gcn == first.document["rows"][0]
    assert gin["model"] == "gin"
    assert "gcn:" not in again.err
    assert json.loads((tmp_path / "rows.json").read_text())["rows"] == [gcn, gin]
    assert train("--json", "--out", tmp_path / "rows.json").document == first.document


def test_another_graph_under_the_same_name_is_measured(cli: Cli, tmp_path: Path) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "graph.npz"
    rows = []
    for nodes in (40, 40, 50):
        edges, x = rng.integers(0, nodes, (2, 100)), rng.random((nodes, 5), dtype=np.float32)
        if nodes == 50 or not file.exists():
            np.savez(file, edge_index=edges, x=x, y=np.arange(nodes) % 2)
        result = cli("bench", "train", "--datasets", file, *QUICK, "--json", "--out", tmp_path / "rows.json")
        assert result.code == 0, result.err
        rows += result.document["rows"]
    assert rows[0] == rows[1]
    assert rows[0]["data"] != rows[2]["data"]
    assert len(json.loads((tmp_path / "rows.json").read_text())["rows"]) == 2


def test_another_back_end_is_another_machine(train: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train("--out", tmp_path / "rows.json").code == 0
    monkeypatch.setenv("FASTGLT_BACKEND", "plain")
    result = train("--out", tmp_path / "rows.json")
    assert (result.code, "backend was 'auto', now 'plain'" in result.err) == (2, True), result.err


@pytest.mark.parametrize("command", ["train", "search", "infer"])
def test_a_device_that_is_not_here_is_told(cli: Cli, command: str) -> None:
    result = cli("bench", command, "--datasets", TINY, "--device", "cuda:99", "--hidden", "8")
    assert (result.code, "device 'cuda:99' cannot be used here" in result.err) == (1, True), result.err


def test_a_failure_keeps_the_rows_before_it(train: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastglt.bench import train as measured

    real = measured.measure

    def fails_on_gin(experiment: Any, **options: Any) -> Any:
        if experiment.model == "gin":
            raise MemoryError
        return real(experiment, **options)

    monkeypatch.setattr(measured, "measure", fails_on_gin)
    result = train("--models", "gcn,gin", "--out", tmp_path / "rows.json")
    assert result.code == 1
    assert "not enough memory" in result.err
    assert f"{WHOLE}   gcn" in result.out
    assert [row["model"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]] == ["gcn"]


def test_another_call_does_not_touch_the_file(train: Cli, tmp_path: Path) -> None:
    train("--out", tmp_path / "rows.json")
    result = train("--seed", "1", "--out", tmp_path / "rows.json")
    assert (result.code, result.out) == (2, "")
    assert "seed was 0, now 1" in result.err


def test_a_graph_from_a_file_may_be_directed(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 40, (2, 100))
    np.savez(tmp_path / "graph.npz", edge_index=edges, x=rng.random((40, 5), dtype=np.float32), y=np.arange(40) % 2)
    result = cli("bench", "train", "--datasets", tmp_path / "graph.npz", "--directed", *QUICK, "--json")
    assert result.code == 0, result.err
    assert result.document["settings"]["directed"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--models", "gcn,gcm"), "unknown model (got 'gcm'); did you mean 'gcn'?"),
        (("train", "--datasets", "digits,cora2"), "unknown dataset (got 'cora2'); did you mean 'cora'?"),
        (("train", "--datasets", " ,"), "datasets must name at least one (got ' ,')"),
        (("train", "--repeats", "0"), "repeats must be at least 1 (got 0)"),
        (("train", "--weight-sparsity", "1"), "weight_sparsity must lie in [0, 1) (got 1.0)"),
        (("train", "--device", "tpu"), "unknown device (got 'tpu')"),
        (("train", "--threads", "-1"), "threads must not be negative (got -1)"),
        (("search", "--repeats", "0"), "repeats must be at least 1 (got 0)"),
        (("search", "--pyg-epochs", "0"), "pyg_epochs must be at least 1 (got 0)"),
        (("search", "--denoise-epochs", "0"), "denoise_epochs must be at least 1 (got 0)"),
    ],
)
def test_wrong_input_is_one_clear_line_before_anything_is_measured(
    cli: Cli, arguments: tuple[str, ...], message: str
) -> None:
    result = cli("bench", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "warming up" not in result.err


def test_a_terminal_shows_a_spinner(train: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    result = train("--json")
    assert result.code == 0
    assert "\x1b[" in result.err
    assert f"{WHOLE} gcn" in result.err
    assert len(result.document["rows"]) == 1


def test_help_teaches_with_an_example(cli: Cli) -> None:
    for command in ("train", "search"):
        assert f"fastglt bench {command}" in cli("bench", command, "--help").out


INFER_KEYS = {
    *("dataset", "model", "ticket", "graph_sparsity", "weight_sparsity", "ticket_ms", "dense_ms", "pyg_ms"),
    *("pyg_edge_index_ms", "pyg_csr_ms", "ratio_to_dense", "ratio_to_pyg", "pyg_faster", "max_difference"),
    *("live_units", "used_features", "features", "layouts", "ticket_bytes", "dense_bytes"),
    *("peak_mb_ticket", "peak_mb_pyg"),
}


def test_infer_finds_a_ticket_and_measures_it(
    cli: Cli, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("bench", "infer", "--datasets", TINY, "--models", "gcn,gat", *QUICK, "--repeats", "3", "--json")
    result = cli(*command)
    assert result.code == 0, result.err
    for row, model in zip(result.document["rows"], ("gcn", "gat"), strict=True):
        assert set(row) > INFER_KEYS
        assert (row["dataset"].startswith(TINY), row["model"]) == (True, model)
        assert row["ratio_to_pyg"] == pytest.approx(row["pyg_ms"] / row["ticket_ms"])
        assert row["ratio_to_compiled_dense"] == pytest.approx(row["compiled_dense_ms"] / row["ticket_ms"])
        again = row["compiled_dense_in_a_row_ms"] / row["ticket_in_a_row_ms"]
        assert row["in_a_row_ratio_to_compiled_dense"] == pytest.approx(again)
        assert row["ticket_p90_ms"] <= row["ticket_p99_ms"]
        assert row["max_difference"] < 1e-5
        assert row["live_units"] <= 8 * (8 if model == "gat" else 1)
        assert Path(row["ticket"]).exists()
    assert "finding a ticket" in result.err
    assert "finding a ticket" not in cli(*command).err
    kinds = [row["kind"] for row in Store(store).rows()]
    assert kinds.count("ticket") == 2
    ticket = result.document["rows"][0]["ticket"]
    named = cli("bench", "infer", ticket, "--threads", "1", "--repeats", "1")
    assert named.code == 0, named.err
    assert "−90.13 %" in named.out
    refused = cli("bench", "infer", ticket, "--hidden", "7")
    assert (refused.code, "--hidden is for tickets that are found first (got 7, and" in refused.err) == (2, True)
    refused = cli("bench", "infer", ticket, "--dataset", f"{TINY},seed=1")
    assert (refused.code, "found on another graph" in refused.err) == (2, True)


def test_another_ticket_in_the_same_place_is_measured(cli: Cli, tmp_path: Path) -> None:
    rows = []
    for sparsity in ("0.9", "0.5"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        find = ("find", "--dataset", TINY, "--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4")
        assert cli(*find, "--weight-sparsity", sparsity, "--quiet", "--out", tmp_path / "run").code == 0
        kept = ("--json", "--out", tmp_path / "rows.json")
        result = cli("bench", "infer", tmp_path / "run", "--threads", "1", "--repeats", "1", *kept)
        assert result.code == 0, result.err
        rows += result.document["rows"]
    assert [round(row["weight_sparsity"], 1) for row in rows] == [0.9, 0.5]


def test_infer_refuses_a_users_model(cli: Cli, tmp_path: Path) -> None:
    from fastglt import Budget, find_ticket
    from tests.deploy.test_predictor import Convolution, data

    budget = Budget(oneshot_epochs=1, denoise_epochs=1, interval=1)
    find_ticket(Convolution(), data(), weight_sparsity=0.5, budget=budget, isolated=False).save(tmp_path / "t.st")
    result = cli("bench", "infer", tmp_path / "t.st")
    assert result.code == 2
    assert "use fastglt.compile_ticket(ticket, data, model) in Python" in " ".join(result.err.split())


def test_scale_measures_each_size_once(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[int] = []

    def measure(size: Any, note: Any) -> dict[str, float]:
        asked.append(size.edges)
        names = ("seconds_per_epoch", "prepare_seconds", "swap_seconds", "cpu_seconds_per_epoch", "peak_mb")
        return {"edges": size.edges, "bytes_per_edge": 10 * size.hidden, **dict.fromkeys(names, 1.5)}

    monkeypatch.setattr("fastglt.bench.scale.measure", measure)
    rows = ("bench", "scale", "--hidden", "8", "--out", tmp_path / "scale.json")
    assert cli(*rows, "--edges", "2e3").code == 0
    result = cli(*rows, "--edges", "2e3,5000", "--json")
    assert asked == [2000, 5000]
    assert [row["edges"] for row in result.document["rows"]] == [2000, 5000]
    assert result.document["settings"]["hidden"] == 8
    assert result.document["rows"][0]["bytes_per_edge"] == 80
    table = cli(*rows, "--edges", "2e3").out
    assert "750.00" in table, "microseconds for each edge"
    assert cli(*rows, "--edges", "few").code == 2


def test_options_of_a_model_are_measured_with(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measure(experiment: Any, **_options: Any) -> dict[str, str]:
        asked.append(experiment.prepare().network)
        return {"dataset": "x", "model": "resgcn"}

    monkeypatch.setattr("fastglt.bench.train.measure", measure)
    chosen = ("--model", "resgcn", "--model-option", "num_layers=3")
    result = cli("bench", "train", "--dataset", TINY, *chosen, *QUICK, "--json")
    assert result.code == 0, result.err
    assert asked[0].num_layers == 3
    assert result.document["settings"]["model_option"] == ["num_layers=3"]
