"""`fastglt compare`, end to end on a tiny graph."""

import csv
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fastglt.methods import METHODS
from fastglt.methods.settings.published import PUBLISHED
from fastglt.runs.engine import Outcome
from fastglt.runs.store import Row, Store
from tests.cli.conftest import SHORT, TINY, Cli, Result
from tests.conftest import OwnModule
from tests.processes import Process, run

QUICK = ("--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4", "--interval", "2", "--jobs", "2")
ROUNDS = ("--option", "ugs.round_epochs=2", "--option", "ugs.weight_share=0.5", "--option", "ugs.edge_share=0.15")
SCORES = ("dense_val", "dense_test", "search_test", "search_unweighted_test", "isolated_test", "search_epochs")
COMMAND = ("compare", "--dataset", TINY, *QUICK)
TWO_METHODS = (*COMMAND, "--methods", "random,ugs", *ROUNDS, "--seeds", "0-1", "--weight-sparsity", "0.5")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """A comparison of two methods over two seeds: its folder, its document and what it said on the way."""
    out = tmp_path_factory.mktemp("compare") / "out"
    done = run("-m", "fastglt", *TWO_METHODS, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout), done.stderr


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}


def test_compares_methods_over_seeds(finished: tuple[Path, dict[str, Any], str]) -> None:
    out, document, err = finished
    assert (document["seeds"], document["failures"], document["hidden"]) == ([0, 1], [], 8)
    assert [(cell["method"], cell["n"], cell["n_dense"]) for cell in document["cells"]] == [
        ("random", 2, 2),
        ("ugs", 2, 2),
    ]
    random, ugs = document["cells"]
    for cell in document["cells"]:
        assert (cell["edges_kept"], cell["weights_kept"]) == ([160], [76])
        assert cell["mean"]["isolated_test"] == sum(row["isolated_test"] for row in cell["runs"]) / 2
    assert random["mean"]["dense_test"] == ugs["mean"]["dense_test"]
    assert (random["mean"]["search_epochs"], random["rounds"]) == (6, [])
    assert ugs["options"]["round_epochs"] == 2
    assert ugs["mean"]["search_epochs"] == 8  # two rounds of edges, of four epochs each
    assert [point["n"] for point in ugs["rounds"]] == [2, 2]
    assert ugs["rounds"][-1]["mean"]["search_test"] == ugs["mean"]["search_test"]
    folders = [path.name.rsplit("-", 1)[0] for path in sorted(out.iterdir())]
    assert folders == [f"{run}-s{seed}" for run in ("dense", "random-g20-w50", "ugs-g20-w50") for seed in (0, 1)]
    lines = err.splitlines()
    assert len(lines) == 7  # one for each run, after a first one
    assert lines[0].startswith("6 runs, ")
    assert any(line.startswith("ugs g20 w50 seed 1: search ") and " s; " in line for line in lines)
    assert lines[-1].endswith("; 0 left")


def test_what_is_finished_is_printed_at_once(
    cli: Cli, finished: tuple[Path, dict[str, Any], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, document, _ = finished
    before = files(out)
    monkeypatch.setattr("fastglt.runs.local._Process", None)
    again = cli(*TWO_METHODS, "--out", out, "--json", "--csv", tmp_path / "runs.csv")
    assert again.code == 0, again.err
    assert again.document == document
    assert again.err == "6 of 6 runs are finished already\n"
    assert files(out) == before
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert [(row["method"], row["seed"]) for row in rows] == [
        (method, seed) for seed in "01" for method in ("random", "ugs")
    ]
    assert float(rows[1]["search_test"]) == document["cells"][1]["runs"][0]["search_test"]


def test_tables_for_people(
    cli: Cli, finished: tuple[Path, dict[str, Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    result = cli(*TWO_METHODS, "--out", finished[0], "--quiet", "--rounds")
    assert (result.code, result.err) == (0, "")
    assert "20 % of edges and 50 % of weights removed" in result.out
    assert "removed, of 200 and 152" in result.out
    assert "ugs · on the way to" in result.out
    assert "…" not in result.out
    assert "on the way" not in cli(*TWO_METHODS, "--out", finished[0], "--quiet").out


def test_a_part_of_it_and_the_order_of_methods(cli: Cli, finished: tuple[Path, dict[str, Any], str]) -> None:
    out, document, _ = finished
    part = cli(*COMMAND, "--methods", "random", "--seeds", "1", "--weight-sparsity", "0.5", "--out", out, "--json")
    (cell,) = part.document["cells"]
    assert cell["runs"] == document["cells"][0]["runs"][1:]
    assert part.err == "2 of 2 runs are finished already\n"


def no_key_is_missing(rows: list[Row]) -> dict[str, set[str]]:
    """What the metrics of each kind of run are called."""
    return {row["kind"]: set(row["metrics"]) for row in rows}


def test_runs_of_find_are_taken_from_the_store(
    cli: Cli, find: Cli, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process is started; and in another store, where they run, they come to the same."""
    ask = ("compare", "--dataset", TINY, *SHORT, "--methods", "random,ugs", *ROUNDS, "--seeds", "0", "--json")
    for method in ("random", "ugs"):
        options = [part.removeprefix("ugs.") for part in ROUNDS] if method == "ugs" else []
        assert find("--method", method, *options, "--out", tmp_path / method).code == 0
    with monkeypatch.context() as patch:
        patch.setattr("fastglt.runs.local._Process", None)
        reused = cli(*ask, "--out", tmp_path / "out")
    assert reused.code == 0, reused.err
    assert reused.err == f"3 of 3 runs are reused from the store '{store}'\n"
    assert not (tmp_path / "out").exists()
    found = {
        json.loads((tmp_path / method / "metrics.json").read_text())["isolated_test"] for method in ("random",)
    }
    assert {reused.document["cells"][0]["mean"]["isolated_test"]} == found
    places = [row["folder"] for cell in reused.document["cells"] for row in cell["runs"]]
    assert places == [str(tmp_path / "random"), str(tmp_path / "ugs")]  # where the tickets are
    rows = Store(store).rows()
    assert len(rows) == 4  # two tickets, each with its twin
    computed = cli(*ask, "--out", tmp_path / "out", "--store", tmp_path / "other.sqlite")
    assert computed.code == 0, computed.err
    for one, other in zip(reused.document["cells"], computed.document["cells"], strict=True):
        assert {key: one["mean"][key] for key in SCORES} == {key: other["mean"][key] for key in SCORES}
        assert one["rounds"] == other["rounds"]
    others = Store(tmp_path / "other.sqlite").rows()
    assert no_key_is_missing(rows) == no_key_is_missing(others)
    assert {row["key"] for row in rows} == {row["key"] for row in others}
    assert {(row["command"], Path(row["folder"]).parent) for row in others} == {("compare", tmp_path / "out")}
    again = find("--method", "random", "--out", tmp_path / "again", "--store", tmp_path / "other.sqlite")
    assert "from the store" not in again.err  # find always runs
    assert (tmp_path / "again" / "ticket.safetensors").exists()


def test_finished_folders_that_are_not_in_the_store_get_in(
    cli: Cli, finished: tuple[Path, dict[str, Any], str], store: Path
) -> None:
    for _ in range(2):
        assert cli(*TWO_METHODS, "--out", finished[0], "--quiet").code == 0
    assert sorted(row["folder"] for row in Store(store).rows()) == sorted(map(str, finished[0].iterdir()))


BREAKS = """
from fastglt.methods.random import RandomPruning

class Breaks(RandomPruning):
    name = "breaks"
    summary = "for tests"

    def after_epoch(self, training):
        if training.seed == 1:
            raise ValueError("boom")
"""


def test_a_method_that_breaks_down_leaves_the_rest(cli: Cli, own_module: OwnModule, tmp_path: Path) -> None:
    own_module("breaks", BREAKS)
    arguments = (*COMMAND, "--methods", "breaks:Breaks", "--seeds", "0,1", "--out", "out")
    result = cli(*arguments, "--json", "--csv", "runs.csv")
    assert result.code == 1
    (cell,) = result.document["cells"]
    (log,) = (tmp_path / "out" / "logs").glob("*.txt")
    reason = f"ValueError: boom (see 'out/logs/{log.name}')"
    assert (cell["method"], cell["n"], cell["failures"]) == ("breaks", 1, [{"seed": 1, "reason": reason}])
    assert result.document["failures"][0]["run"] == "breaks g20 w90 seed 1"
    assert f"failed: breaks g20 w90 seed 1: {reason}" in result.err
    assert "the same command tries again what failed, and nothing else" in result.err
    assert "in after_epoch" in log.read_text()
    good, bad = csv.DictReader((tmp_path / "runs.csv").read_text().splitlines())
    assert (good["reason"], bad["reason"], bad["search_test"]) == ("", reason, "")
    table = cli(*arguments)
    assert table.code == 1
    assert re.search(r"^breaks +1 ", table.out, re.MULTILINE)


DIES = """
import os, signal
from pathlib import Path
from fastglt.methods.random import RandomPruning

class Dies(RandomPruning):
    name = "dies"
    summary = "for tests"

    def after_epoch(self, training):
        with open("epochs.txt", "a") as file:
            file.write(f"{training.epoch} ")
        if training.epoch == 4 and not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_killed_with_signal_9_goes_on_within_itself(cli: Cli, own_module: OwnModule, tmp_path: Path) -> None:
    own_module("dies", DIES)
    arguments = (*COMMAND, "--methods", "dies:Dies", "--seeds", "0", "--out", "out", "--checkpoint-every", "0")
    first = cli(*arguments, "--json")
    assert first.code == 1
    assert "failed: dies g20 w90 seed 0: it was killed" in first.err
    assert first.document["cells"][0]["n"] == 0
    second = cli(*arguments, "--json")
    assert second.code == 0, second.err
    assert second.document["cells"][0]["n"] == 1
    assert "1 of 2 runs are finished already" in second.err
    assert (tmp_path / "epochs.txt").read_text() == "1 2 3 4 4 5 6 ", "three epochs were kept"


def start(out: Path, *arguments: str) -> Process:
    words = [*COMMAND, "--methods", "random", "--seeds", "0", "--jobs", "1"]
    words += ["--denoise-epochs", "200", "--checkpoint-every", "0", "--out", str(out), *arguments]
    return Process("-m", "fastglt", *words)


def wait_until(condition: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_its_processes_stop_with_a_checkpoint(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path)
    wait_until(lambda: list(tmp_path.glob("dense-*/checkpoint/dense.part")))
    helpers = children(process.pid)  # they look after the worker, which is their child
    (worker,) = [child for helper in helpers for child in children(helper)]
    process.send_signal(number)
    _, err = process.communicate()
    wait_until(lambda: not any(is_alive(pid) for pid in (*helpers, worker)))
    assert not list(tmp_path.glob("*/metrics.json"))
    assert list(tmp_path.glob("dense-*/checkpoint/dense.part"))
    assert not list(tmp_path.glob("random-*"))
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert err.endswith("\nstopped after 0 of 2 runs; the same command goes on from there\n")
        again = start(tmp_path, "--checkpoint-every", "600")
        _, err = again.communicate()
        assert again.returncode == 0, err
        assert len(list(tmp_path.glob("*/metrics.json"))) == 2


BAD = {
    "unknown method": (("--methods", "fastglt,usg"), "unknown method (got 'usg'); did you mean 'ugs'?"),
    "no method": (("--methods", ","), "methods must name at least one (got ',')"),
    "seeds": (("--seeds", "4-2"), "seeds must be as in 0-4 or 0,2,5 (got '4-2')"),
    "negative seed": (("--seeds", "-1"), "seeds must be as in 0-4 or 0,2,5 (got '-1')"),
    "huge seed": (("--seeds", str(2**63)), "seeds must lie below 2^63 (got 9223372036854775808)"),
    "endless seeds": (("--seeds", "0-99999999999"), "seeds must be at most 10,000 (got '0-99999999999')"),
    "pairs": (
        ("--graph-sparsity", "0.1,0.2", "--weight-sparsity", "0.5,0.6,0.7"),
        "graph_sparsity and weight_sparsity must be as many, or one alone (got 2 and 3)",
    ),
    "no number": (("--graph-sparsity", "much"), "graph_sparsity must be comma-separated numbers (got 'much')"),
    "sparsity": (("--graph-sparsity", "0.1,1.2"), "graph_sparsity must lie in [0, 1) (got 1.2)"),
    "nothing left": (("--graph-sparsity", "0.1,0.999"), "must leave at least one of 200 elements"),
    "option": (("--option", "ramp=1"), "--option must be METHOD.NAME=VALUE (got 'ramp=1')"),
    "option of nobody": (
        ("--methods", "random", "--option", "fastglt.ramp=1"),
        "unknown method in --option (got 'fastglt'). Known: random",
    ),
    "no such option": (("--option", "random.ramp=1"), "method 'random' has no option 'ramp'; it takes none"),
    "type": (("--option", "fastglt.ramp=x"), "option 'ramp' of method 'fastglt' must be a number (got 'x')"),
    "variant": (
        ("--methods", "fastglt[ramp"),
        "methods must be names, or NAME[OPTION=VALUE,…] (got 'fastglt[ramp')",
    ),
    "same variants": (
        ("--methods", "fastglt,fastglt[ramp=0.8]"),
        "methods must differ in name or options (got 'fastglt' and 'fastglt[ramp=0.8]', which are the same)",
    ),
    "engine": (("--engine", "cloud"), "unknown engine (got 'cloud'). Known: local"),
    "jobs": (("--jobs", "-1"), "jobs must not be negative (got -1)"),
    "checkpoints": (("--checkpoint-every", "-1"), "checkpoint_every must not be negative (got -1.0)"),
    "dataset": (("--dataset", "corra"), "did you mean 'cora'"),
    "module": (("--methods", "no_such:Thing"), "'no_such' of method 'no_such:Thing' must be importable"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli(*COMMAND, "--out", tmp_path / "out", *arguments)
    assert (result.code, message in result.err, "Traceback" in result.err) == (2, True, False), result.err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def planned(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Gives the runs, and how many at a time, that a call would start."""
    seen: list[Any] = []

    def nothing(self: Any, runs: Any) -> Any:
        seen.append((runs, self.jobs))
        return [Outcome(run=run, reason="not today") for run in runs]

    monkeypatch.setattr("fastglt.runs.local.LocalEngine.run", nothing)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[Any, int, Result]:
        result = cli("compare", *arguments)
        runs, jobs = seen.pop()
        return runs, jobs, result

    return run


def test_all_methods_and_paired_sparsities(planned: Any) -> None:
    sparsities = ("--graph-sparsity", "0.2,0.05", "--weight-sparsity", "0.9,0.95")
    runs, jobs, result = planned("--dataset", TINY, "--hidden", "8", "--methods", "all", *sparsities)
    assert (jobs, result.code) == (len(os.sched_getaffinity(0)), 1)
    tickets = [run for run in runs if not run.is_dense]
    assert len(runs) - len(tickets) == 5
    assert [run.method for run in tickets[: len(METHODS)]] == list(METHODS)
    pairs = {(run.experiment.targets.graph_sparsity, run.experiment.targets.weight_sparsity) for run in tickets}
    assert pairs == {(0.2, 0.9), (0.05, 0.95)}
    assert {run.experiment.threads for run in runs} == {1}
    assert str(runs[0].folder.parent) == "runs/compare-synthetic-gcn"


def test_published_options_apply_and_give_way(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PUBLISHED, "ugs", {("digits", "gcn"): {"edge_l1": 0.125, "weight_l1": 0.25}})
    runs, _, _ = planned("--methods", "ugs", "--option", "ugs.edge_l1=0.5", "--seeds", "0")
    assert runs[1].experiment.options == {"edge_l1": 0.5, "weight_l1": 0.25}


def test_an_option_goes_to_all_variants_whose_own_win(planned: Any) -> None:
    asked = ("--methods", "fastglt,fastglt[ramp=0.5,start=random]", "--option", "fastglt.ramp=1")
    runs, _, result = planned("--dataset", TINY, "--hidden", "8", *asked, "--engine", "local", "--seeds", "0")
    tickets = [run for run in runs if not run.is_dense]
    assert [run.experiment.options for run in tickets] == [{"ramp": 1.0}, {"ramp": 0.5, "start": "random"}]
    assert "failed: fastglt[ramp=0.5,start=random] g20 w90 seed 0: not today\n" in result.err
    assert re.search(r"^fastglt\[ramp=0.5,start=random\] +0 ", result.out, re.MULTILINE)


def test_a_config_file_may_hold_lists(planned: Any, tmp_path: Path) -> None:
    (tmp_path / "compare.yaml").write_text(
        "methods: [fastglt, random, 'fastglt[start=random,decay=2]']\n"
        "seeds: [0, 2]\ngraph_sparsity: [0.1, 0.2]\noption: {fastglt.ramp: 1}\n"
    )
    runs, _, _ = planned("--dataset", TINY, "--hidden", "8", "--config", "compare.yaml", "--jobs", "3")
    tickets = [run for run in runs if not run.is_dense]
    assert len(tickets) == 12
    assert {run.method for run in tickets} == {"fastglt", "random", "fastglt[start=random,decay=2]"}
    assert {run.experiment.seed for run in tickets} == {0, 2}
    assert {run.experiment.targets.graph_sparsity for run in tickets} == {0.1, 0.2}
    assert {run.settings["options"].get("ramp") for run in tickets} == {1.0, None}
