"""Every command of README.md, and the demo's, in terminals of 80 and 120 columns.

Commands run as they stand there, on a terminal of their own, with three changes. Epochs and width are few, and
methods with rounds are left to others. The graphs that README names are generated ones, as nothing may be
downloaded, and runs of a series stay in this process, which knows those graphs. What takes minutes whatever the
graph (`bench`) or never ends (`serve`) is measured or served by a stand-in: here it matters how its results are
printed.
"""

import os
import pty
import re
import shlex
import shutil
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pytest

from fastglt.cli import main
from fastglt.data.named import NAMED, Named
from fastglt.data.synthetic import SyntheticGraph
from fastglt.kernels import Table, tune
from fastglt.runs.engine import Outcome
from fastglt.runs.plan import Run
from fastglt.runs.series import ENGINES
from fastglt.runs.worker import work

ROOT = Path(__file__).parents[2]
TRAIN = "--oneshot-epochs 2 --denoise-epochs 4 --interval 2"
SHORTER = {  # options that a command gets besides its own, by its first word
    "find": f"{TRAIN} --hidden 8 --threads 1",
    "compare": f"{TRAIN} --hidden 8 --seeds 0-1 --jobs 1",
    "extreme": f"{TRAIN} --hidden 8 --seeds 0 --jobs 1 --rule plain",
    "transfer": "--oneshot-epochs 2 --denoise-epochs 4 --seeds 0-1 --threads 1",
    "evaluate": "--seeds 0-1 --threads 1",
    "serve": "--port 0 --threads 1",
    "tune": "--threads 1",
    "ui": "--port 0",
    "update": "--epochs 1 --threads 1",
    "suspects": "--threads 1",
}
TIMES = dict.fromkeys(("ours_ms", "soft_ms", "hard_ms", "dense_ms", "pyg_edge_index_ms", "pyg_csr_ms"), 1234.5)
PEAKS = {f"peak_mb_{name}": 1234.5 for name in ("ours", "pyg_edge_index", "pyg_csr", "ticket", "pyg")}
MEASURED = {
    **TIMES,
    **PEAKS,
    **dict.fromkeys(("ticket_ms", "ticket_p99_ms", "compiled_dense_ms", "ratio_to_dense", "ratio_to_pyg"), 22.5),
    **dict.fromkeys(("ratio_to_compiled_dense", "in_a_row_ratio_to_compiled_dense"), 22.5),
    **dict.fromkeys(("weight_sparsity", "graph_sparsity"), 0.95),
    **dict.fromkeys(("live_units", "used_features", "ticket_bytes", "dense_bytes", "epochs"), 123456),
    **dict.fromkeys(("search_seconds", "dense_seconds", "pyg_dense_seconds"), 99.5),
}


def readme_commands() -> list[str]:
    """In the order of README, once each, without comments."""
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.S | re.M)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    demo = re.findall(r"^\t\$\(BIN\)/(fastglt .*)$", (ROOT / "Makefile").read_text(), flags=re.M)
    found = [line.partition("  #")[0].strip() for line in lines if line.startswith("fastglt ")]
    return list(dict.fromkeys([*demo, *found]))


class HereEngine:
    """Executes runs in this process."""

    def __init__(self, jobs: int, *, logs: Path, **job_settings: Any) -> None:
        self.stop, self._job_settings = False, job_settings

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        for run in runs:
            work(run.job(**self._job_settings))
            yield Outcome(run=run, metrics=run.result())


class Terminal:
    """A terminal of so many columns that commands of this process print on."""

    def __init__(self, columns: int) -> None:
        self._ours, self._theirs = pty.openpty()
        ioctl(self._theirs, termios.TIOCSWINSZ, pack("HHHH", 50, columns, 0, 0))
        self._bytes = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.stream = os.fdopen(self._theirs, "w", encoding="utf-8", buffering=1)

    def _read(self) -> None:
        while True:
            try:
                found = os.read(self._ours, 65536)
            except OSError:  # closed at the other end
                return
            self._bytes += found

    def close(self) -> str:
        """All that was printed."""
        self.stream.close()
        self._reader.join()
        os.close(self._ours)
        return self._bytes.decode()


Runner = Callable[[str, int], tuple[int, str]]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which README's own files are."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "my").mkdir()
    rng, nodes = np.random.default_rng(0), np.arange(90)
    edges = np.stack([nodes.repeat(2), rng.integers(0, 90, 180)])
    np.savez(folder / "my" / "graph.npz", edge_index=edges, x=rng.normal(size=(90, 6)), y=nodes % 3)
    rows = [f"{node},{node % 3},{node % 2},{node % 5}" for node in nodes]
    (folder / "my" / "nodes.csv").write_text("\n".join(["id,label,a,b", *rows]))
    pairs = [f"{source},{target}" for source, target in edges.T]
    (folder / "my" / "edges.csv").write_text("\n".join(["source,target", *pairs]))
    (folder / "my" / "new.csv").write_text("source,target\n0,50\n1,51\n")
    return folder


def announced(listener: Any, _: Any, announce: Callable[[str], None], **__: Any) -> None:
    """Says where it would serve, and stops."""
    listener.close()
    announce("http://127.0.0.1:8000")


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Runs a command on a terminal of so many columns; gives its exit code and all that it printed."""
    tiny = Named(source=SyntheticGraph(nodes=120, edges=400, features=20, classes=3), about="papers", size=None)
    for name in ("cora", "citeseer", "pubmed"):
        monkeypatch.setitem(NAMED, name, tiny)
    monkeypatch.setitem(ENGINES, "local", HereEngine)
    for name, value in {"_ROWS": 40, "_REPEATS": 1, "_WIDTH": 16, "_FEATURES": 20}.items():
        monkeypatch.setattr(tune, name, value)
    for kind in ("train", "search", "infer"):
        monkeypatch.setattr(f"fastglt.bench.{kind}.measure", lambda *_, **__: dict(MEASURED))
    monkeypatch.setattr("fastglt.serve.server.run_on", announced)
    monkeypatch.setenv("FASTGLT_STORE", str(Path("runs") / "results.sqlite"))
    monkeypatch.chdir(place)

    def on_terminal(command: str, columns: int) -> tuple[int, str]:
        words = shlex.split(command)[1:]
        if words[:2] == ["data", "prepare"]:  # what is there is not written over
            shutil.rmtree(words[-1], ignore_errors=True)
        more = [] if "--help" in words else shlex.split(SHORTER.get(words[0], ""))
        if {"all", "fastglt,ugs,random"} & set(words):
            more += ["--methods", "fastglt,oneshot,random"]  # those with rounds take minutes
        terminal = Terminal(columns)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["fastglt", *words, *more])
        monkeypatch.setattr(sys, "stdout", terminal.stream)
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:  # else its thread would wait for more
            printed = terminal.close()
        return int(stopped.value.code or 0), printed

    monkeypatch.setenv("FASTGLT_CACHE", str(place / "cache"))  # where tune leaves its table
    Table.of_machine.cache_clear()
    yield on_terminal
    Table.of_machine.cache_clear()


def lines_of(printed: str) -> list[str]:
    """What stood in a line at any time, without colours; what a bar drew over counts as well."""
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\].*?\x1b\\", "", printed)
    return [line.rstrip() for line in re.split(r"[\r\n]+", shown)]


def words_of(text: str) -> set[str]:
    """Words of letters, as they stand between spaces, frames and punctuation."""
    return set(re.findall(r"(?<![\w/.-])[^\W\d_]{2,}(?![\w/.…-])", text))


@pytest.fixture(scope="module")
def known() -> set[str]:
    """All words that fastglt can say: those of its sources; a piece of a word is hardly ever one of them."""
    files = [
        *(ROOT / "src").rglob("*.py"),
        ROOT / "README.md",
        Path("/proc/cpuinfo"),
    ]  # also what typer and bench say
    return {"Usage", *re.findall(r"[^\W\d_]{2,}", " ".join(path.read_text() for path in files))}


def test_nothing_is_cut_or_wrapped_within_a_word(run: Runner, known: set[str]) -> None:
    asked = [(command, columns) for command in readme_commands() for columns in (80, 120)]
    assert len(asked) > 40
    assert {one: found for one in asked if (found := faults(*run(*one), one[1], known))} == {}


def faults(code: int, printed: str, columns: int, known: set[str]) -> list[str]:
    """What is wrong with a command's output."""
    lines = lines_of(printed)
    if code != 0 or not any(lines):
        return [printed]
    long = [line for line in lines if len(line) > columns]
    cut = [line for line in lines if re.search(r"[\d━]…|…[\d━]|\w…(?![\w,])", line.replace("nodes=…", ""))]
    return [*long, *cut, *sorted(words_of(" ".join(lines)) - known)]


@pytest.mark.parametrize("text", ["x" * 81, "0.12…", "━━━━━━━ 48… … 0:0…", "the verd\nict"])
def test_such_faults_are_found(known: set[str], text: str) -> None:
    assert faults(0, "Written to runs/a/: a ticket", 80, known) == []
    assert faults(0, text, 80, known)
