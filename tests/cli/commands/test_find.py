"""`fastglt find`, end to end on a tiny graph."""

import csv
import fcntl
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from fastglt import Ticket
from fastglt.cli.commands.find import _default_folder
from fastglt.cli.shared.preferring import as_command
from fastglt.cli.shared.setup import Setup
from fastglt.methods import Targets
from fastglt.runs.folder_files import CHECKPOINTS
from fastglt.studies.prefer import Preferred, Way
from tests.cli.conftest import SHORT, TINY, Cli

Array = npt.NDArray[Any]

KEYS = {
    *("dataset", "model", "method", "seed", "graph_sparsity", "weight_sparsity"),
    *("edges_kept", "edges_total", "weights_kept", "weights_total"),
    *("dense_test", "search_test", "isolated_test", "dense_val", "search_val", "isolated_val"),
    *("search_seconds", "dense_seconds", "macs_dense", "macs_ticket", "macs_paper_dense", "macs_paper_ticket"),
    *("winning_search", "winning_isolated"),
}


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("method", ["fastglt", "oneshot", "random"])
@pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
def test_every_method_and_backbone_reaches_the_exact_counts(
    find: Cli, tmp_path: Path, method: str, model: str
) -> None:
    result = find("--method", method, "--model", model, "--json", "--quiet", "--out", tmp_path / "run")
    assert (result.code, result.err) == (0, "")
    metrics = result.document
    assert set(metrics) >= KEYS
    assert metrics["edges_total"] == 200
    assert metrics["edges_kept"] == 160
    assert metrics["weights_kept"] == metrics["weights_total"] - round(0.9 * metrics["weights_total"])
    assert metrics["winning_search"] == (metrics["search_test"] >= metrics["dense_test"])
    ticket = Ticket.load(tmp_path / "run" / "ticket.safetensors")
    assert ticket.masks.weights_kept == metrics["weights_kept"]


def test_writes_ticket_metrics_and_history_and_leaves_no_checkpoint(find: Cli, tmp_path: Path) -> None:
    result = find("--out", tmp_path / "run")
    assert result.code == 0
    assert "end of search" in result.out
    assert "160 (−20.00 %)" in result.out
    assert "search: epoch 16/16" in result.err
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert files == {"ticket.safetensors", "metrics.json", "history.csv", "run.json", ".lock", ".digests.json"}
    rows = list(csv.DictReader((tmp_path / "run" / "history.csv").read_text().splitlines()))
    assert [row["phase"] for row in rows].count("dense") == 16
    assert {row["stage"] for row in rows if row["phase"] == "search"} >= {"oneshot", "denoise"}


def test_json_is_one_document_and_nothing_else(find: Cli, tmp_path: Path) -> None:
    result = find("--json", "--out", tmp_path / "run")
    assert result.document == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert result.out.count("\n") == 1


def test_a_finished_run_is_printed_again(find: Cli, tmp_path: Path) -> None:
    first = find("--json", "--out", tmp_path / "run")
    before = listing(tmp_path)
    again = find("--json", "--out", tmp_path / "run")
    assert (again.code, again.out) == (0, first.out)
    assert "is finished" in again.err
    assert listing(tmp_path) == before


def test_equal_runs_give_equal_tickets(find: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert find("--quiet", "--out", tmp_path / name).code == 0
    assert listing(tmp_path / "a")["ticket.safetensors"] == listing(tmp_path / "b")["ticket.safetensors"]


def test_another_runs_folder_is_not_touched(find: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    before = listing(tmp_path)
    result = find("--seed", "1", "--out", tmp_path / "run")
    assert result.code == 2
    assert "holds another run (--seed 0 there, 1 here); choose another --out" in result.err
    width = find("--hidden", "8", "--out", tmp_path / "run")
    assert "holds another run (--hidden 16 there, 8 here)" in width.err
    assert listing(tmp_path) == before


def test_a_folder_with_other_files_is_not_touched(find: Cli, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    result = find("--out", tmp_path)
    assert result.code == 2
    assert "thesis.tex" in result.err
    assert listing(tmp_path) == {"thesis.tex": b"mine"}


def test_the_default_folder_names_the_run(find: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("--quiet").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("synthetic-gcn-fastglt-g20-w90-s0-")
    assert find("--quiet", "--lr", "0.01").code == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_folder_in_use_is_refused(find: Cli, tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = find("--out", tmp_path)
    assert result.code == 1
    assert "another process" in result.err


def test_an_unwritable_folder_is_the_machines_fault(find: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = find("--out", tmp_path / "file" / "run")
    assert result.code == 1
    assert "is a file, not a folder" in result.err


def test_dry_run_writes_nothing(find: Cli, tmp_path: Path) -> None:
    result = find("--dry-run", "--out", tmp_path / "run")
    assert result.code == 0
    assert "160 edges" in result.out
    assert "epochs" in result.out
    plan = find("--dry-run", "--json", "--out", tmp_path / "run").document
    assert plan["epochs"] == 48
    assert plan["seconds"] > 0
    assert plan["memory_mb"] > 0
    assert plan["there"] is None
    assert not (tmp_path / "run").exists()


def test_a_dry_run_looks_into_the_folder(find: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert find("--quiet", "--out", out).code == 0
    plan = find("--dry-run", "--json", "--out", out).document
    assert (plan["there"], plan["epochs"], plan["seconds"]) == ("finished", 0, 0)
    told = find("--dry-run", "--out", out).out
    assert "is finished; nothing would be trained" in told
    assert "memory" not in told
    other = find("--dry-run", "--seed", 9, "--out", out)
    assert (other.code, "holds another run" in other.err) == (2, True)
    (out / "metrics.json").unlink()
    (out / CHECKPOINTS).mkdir()
    assert find("--dry-run", "--json", "--out", out).document["there"] == "begun"


def test_config_file_sets_defaults_and_the_command_line_wins(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("graph-sparsity: 0.5\nweight_sparsity: 0.8\nmodel: gin\n")
    arguments = ("--dataset", TINY, *SHORT, "--config", config, "--graph-sparsity", "0.1", "--json", "--quiet")
    metrics = cli("find", *arguments, "--out", tmp_path / "run").document
    assert metrics["model"] == "gin"
    assert metrics["edges_kept"] == 180
    assert metrics["weights_kept"] == metrics["weights_total"] - round(0.8 * metrics["weights_total"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph_sparsty: 0.5", "did you mean 'graph_sparsity'"),
        ("- a list", "must map option names"),
        ("a: [", "must be YAML"),
    ],
)
def test_a_bad_config_is_refused(find: Cli, tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(text)
    result = find("--config", config, "--out", tmp_path / "run")
    assert result.code == 2
    assert message in result.err


def test_a_missing_config_is_refused(find: Cli, tmp_path: Path) -> None:
    result = find("--config", tmp_path / "none.yaml", "--out", tmp_path / "run")
    assert (result.code, "cannot read the config" in result.err) == (2, True)


BAD = {
    "sparsity above 1": (("--graph-sparsity", "1.5"), "graph_sparsity must lie in [0, 1) (got 1.5)"),
    "sparsity of 1": (("--weight-sparsity", "1"), "weight_sparsity must lie in [0, 1) (got 1.0)"),
    "negative sparsity": (("--weight-sparsity", "-0.1"), "weight_sparsity must lie in [0, 1) (got -0.1)"),
    "NaN sparsity": (("--weight-sparsity", "nan"), "weight_sparsity must lie in [0, 1) (got nan)"),
    "no edge left": (("--graph-sparsity", "0.999"), "must leave at least one of 200 elements"),
    "no weight left": (("--weight-sparsity", "0.9999"), "must leave at least one"),
    "long interval": (("--interval", "13"), "must not exceed the 12 denoise_epochs (got 13)"),
    "unknown model": (("--model", "gcm"), "did you mean 'gcn'"),
    "unknown method": (("--method", "fastgtl"), "did you mean 'fastglt'"),
    "unknown dataset": (("--dataset", "corra"), "did you mean 'cora'"),
    "option of another method": (("--method", "random", "--ramp", "1"), "has no option 'ramp'"),
    "swap fraction": (("--swap-fraction", "2"), "swap_fraction must lie in [0, 1] (got 2.0)"),
    "ramp": (("--ramp", "0"), "ramp must lie in (0, 1] (got 0.0)"),
    "lr": (("--lr", "0"), "lr must be positive (got 0.0)"),
    "epochs": (("--oneshot-epochs", "0"), "oneshot_epochs must be at least 1 (got 0)"),
    "hidden": (("--hidden", "0"), "hidden must be at least 1 (got 0)"),
    "threads": (("--threads", "-1"), "threads must not be negative (got -1)"),
    "seed": (("--seed", "-1"), "seeds must not be negative (got -1)"),
    "huge seed": (("--seed", str(2**63)), "seeds must lie below 2^63 (got 9223372036854775808)"),
    "checkpoint": (("--checkpoint-every", "-1"), "checkpoint_every must not be negative"),
    "missing file": (("--dataset", "no/such.npz"), "no/such.npz"),
    "wrong type": (("--seed", "zero"), "'--seed'"),
    "unknown device": (("--device", "cdua"), "did you mean 'cuda'"),
    "unknown start": (("--start", "oneshoot"), "did you mean 'oneshot'"),
    "unknown edge score": (("--edge-score", "degre"), "did you mean 'degree'"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line(find: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = find(*arguments, "--out", tmp_path / "run")
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "run").exists()


def graph_file(path: Path, **changes: Array) -> Path:
    rng = np.random.default_rng(0)
    source, target = np.arange(30), (np.arange(30) + 1) % 30
    arrays: dict[str, Array] = {
        "edge_index": np.stack([source, target]),
        "x": rng.random((30, 5), dtype=np.float32),
        "y": np.arange(30) % 3,
        "train_mask": np.arange(30) < 10,
        "val_mask": (np.arange(30) >= 10) & (np.arange(30) < 20),
        "test_mask": np.arange(30) >= 20,
    }
    np.savez(path, allow_pickle=False, **{**arrays, **changes})
    return path


@pytest.mark.filterwarnings("default::fastglt.tickets.networks.UnusedWeightsWarning")
def test_edge_weights_that_are_not_used_are_told_in_one_line(cli: Cli, tmp_path: Path) -> None:
    arrays = {
        "edge_index": [[0, 1, 2], [1, 2, 3]],
        "x": np.eye(9),
        "y": np.arange(9) % 3,
        "edge_weight": [1.0, 2, 3],
    }
    np.savez(tmp_path / "mine.npz", **arrays)  # type: ignore[arg-type]
    told = cli("find", "--dataset", tmp_path / "mine.npz", "--hidden", 4, "--dry-run", "--json")
    assert told.document["edges"] == 3
    assert told.err.startswith("warning: gcn takes no edge weights: ")
    assert told.err.count("\n") == 1
    told = cli("find", "--dataset", tmp_path / "mine.npz", *SHORT, "--quiet", "--json", "--out", tmp_path / "run")
    assert told.document["edges_total"] == 3
    assert told.err.count("\n") == told.err.count("takes no edge weights") == 1


@pytest.mark.parametrize(("metric", "title"), [("macro-f1", "macro-F1"), ("roc-auc", "ROC-AUC")])
def test_every_command_calls_a_metric_by_its_name(
    find: Cli, cli: Cli, tmp_path: Path, metric: str, title: str
) -> None:
    """Three classes; in files it has an underscore, and the ticket brings it along."""
    out = tmp_path / "out"
    found = find("--method", "random", "--metric", metric, "--out", out)
    assert f"test {title}, end of search" in found.out, found.err
    name = metric.replace("-", "_")
    scores = json.loads((out / "metrics.json").read_text())
    assert scores["metric"] == Ticket.load(out / "ticket.safetensors").config["metric"] == name
    assert find("--method", "random", "--metric", name, "--out", out, "--json").document == scores
    judged = cli("evaluate", out, "--seeds", "0", "--threads", "1")
    assert f"test {title} in %" in judged.out, judged.err
    predicted = cli("predict", out)
    assert f"{title} on the " in predicted.out + predicted.err
    assert f"{100 * scores['search_test']:.2f}" in predicted.out + predicted.err
    compared = cli("compare", "--dataset", TINY, *SHORT, "--methods", "random", "--seeds", "0", "--metric", metric)
    assert f"{title} of the test nodes in %" in compared.out, compared.err


def test_a_users_graph_from_a_file(cli: Cli, tmp_path: Path) -> None:
    file = graph_file(tmp_path / "ring.npz")
    result = cli("find", "--dataset", file, *SHORT, "--json", "--quiet", "--out", tmp_path / "run")
    assert (result.document["dataset"], result.document["edges_kept"]) == ("ring.npz", 24)


nowhere = np.zeros(30, dtype=bool)
BAD_DATA: dict[str, tuple[dict[str, Array], str]] = {
    "NaN": (
        {"x": np.full((30, 5), np.nan, dtype=np.float32)},
        "finite in float32 (got nan at node 0",
    ),
    "infinity": ({"x": np.full((30, 5), np.inf, dtype=np.float32)}, "features must be finite in float32 (got inf"),
    "label range": ({"y": np.full(30, 10**6)}, "labels must be"),
    "empty train": ({"train_mask": nowhere}, "train_mask must select at least one node"),
    "empty validation": ({"val_mask": nowhere}, "val_mask must select at least one node"),
    "node ids": ({"edge_index": np.array([[0], [99]])}, "99"),
    "rows": ({"x": np.ones((29, 5), dtype=np.float32)}, "29"),
    "no edges": (
        {"edge_index": np.zeros((2, 0), dtype=np.int64)},
        "graph_sparsity must be 0 on a graph without edges",
    ),
}


@pytest.mark.parametrize(("changes", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_is_one_clear_line(cli: Cli, tmp_path: Path, changes: dict[str, Array], message: str) -> None:
    file = graph_file(tmp_path / "bad.npz", **changes)
    result = cli("find", "--dataset", file, *SHORT, "--out", tmp_path / "run")
    assert (result.code, message in result.err, "Traceback" in result.err) == (2, True, False), result.err
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_the_machines_fault(find: Cli, tmp_path: Path) -> None:
    result = find("--device", "cuda", "--out", tmp_path / "run")
    assert result.code == 1
    assert "try 'cpu'" in result.err


def test_help_teaches(cli: Cli) -> None:
    result = cli("find", "--help")
    assert result.code == 0
    for text in ("--graph-sparsity", "Examples", "goes on where it was", "The method's options"):
        assert text in result.out


class TestPreference:
    def test_what_it_chooses_is_not_given(self, find: Cli) -> None:
        done = find("--prefer", "small", "--graph-sparsity", "0.5")
        assert done.code == 2
        assert "--graph-sparsity must come without --prefer" in done.err

    @pytest.mark.parametrize("words", [("--option", "ramp=1"), ("--start", "random"), ("--robust",)])
    def test_nor_is_an_option_of_the_method(self, find: Cli, words: tuple[str, ...]) -> None:
        done = find("--prefer", "small", *words)
        assert done.code == 2
        assert f"{words[0]} must come without --prefer, which chooses the method" in done.err

    def test_the_command_it_prints_finds_that_ticket(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FASTGLT_DATA", "/data")
        setup = Setup(
            dataset=TINY, model="gin", model_option=["depth=2"], hidden=24, lr=0.003, oneshot_epochs=2,
            denoise_epochs=4, interval=2, data_root=Path("/data"),
        )  # fmt: skip
        targets = Targets(graph_sparsity=0.5, weight_sparsity=0.75)
        way = Way(structure="units", taught=True)
        found = Preferred(preference="small", way=way, targets=targets, chosen=None, tried=[], refused={})
        command = as_command(found, setup, seed=3, threads=1)
        assert "--model-option depth=2" in command
        assert "--data-root" not in command, "the environment has it"
        words = shlex.split(command)[1:]
        plan = cli(*words, "--dry-run", "--json").document
        chosen = replace(setup, structure="units", distill=True)
        experiment = chosen.experiment(method="forest", options={}, targets=targets, seed=3, threads=1)
        assert plan["folder"] == str(_default_folder(experiment.prepare()))
        assert plan["epochs"] == 5 * 6

    def test_a_graph_without_test_nodes_is_refused_before_anything_is_trained(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        graph = tmp_path / "graph.npz"
        index = np.array([(i, (i + 1) % 30) for i in range(30)]).T
        masks: dict[str, Any] = {
            "train_mask": np.arange(30) < 15,
            "val_mask": np.arange(30) >= 15,
            "test_mask": np.zeros(30, bool),
        }
        x, y = np.eye(30, 4, dtype=np.float32), np.arange(30) % 2
        np.savez(graph, edge_index=index, x=x, y=y, **masks)
        for more in ((), ("--dry-run",)):
            done = cli("find", "--dataset", graph, "--prefer", "small", *SHORT, "--json", *more)
            assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
            assert "--prefer needs test nodes to prove its choice on (got none)" in done.err

    def test_an_unknown_one_is_told(self, find: Cli) -> None:
        done = find("--prefer", "tiny")
        assert done.code == 2
        assert "unknown preference (got 'tiny')" in done.err


def test_units_are_in_settings_and_names(find: Cli, tmp_path: Path) -> None:
    out = tmp_path / "units"
    done = find("--structure", "units", "--weight-sparsity", "0.75", "--out", out, "--json")
    assert done.document["weights_kept"] == 76  # of 304: four of sixteen units, of 19 weights each
    assert json.loads((out / "run.json").read_text())["settings"]["structure"] == "units"
