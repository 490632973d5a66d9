"""What the pages show, runs; what they list, is there."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

import fastglt
from fastglt.methods import METHODS
from fastglt.methods.options import options_of
from tests.conftest import OwnModule
from tests.processes import run
from tests.toy_data import quick_ticket, toy_data

DOCS = Path(__file__).parent.parent / "docs"
SHORT = ("--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4", "--interval", "2")
TINY = "synthetic:nodes=80,edges=200,features=16,classes=3"


@pytest.fixture
def feature_gap(own_module: OwnModule) -> Path:
    """The page's example, in the current folder."""
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "own-method.md").read_text(), re.DOTALL)
    return own_module("feature_gap", code)


@pytest.mark.usefixtures("feature_gap")
def test_the_pages_method_cuts_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path.cwd()))
    __import__("feature_gap")
    data = toy_data()
    ticket = quick_ticket("gcn", data, method="feature-gap", norm=1.0)
    source, target = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    order = (source * data.num_nodes + target).argsort()
    distance = (data.x[source] - data.x[target]).abs().sum(1)[order]
    kept = ticket.masks.edges.kept
    assert ticket.masks.edges.count == 42
    assert distance[kept].max() <= distance[~kept].min()
    start = {name: ticket.initial[name].abs() for name in ticket.masks.weights}
    smallest_kept = min(float(start[name][mask.kept].min()) for name, mask in ticket.masks.weights.items())
    largest_cut = max(float(start[name][~mask.kept].max()) for name, mask in ticket.masks.weights.items())
    assert smallest_kept >= largest_cut
    assert set(ticket.scores) >= {"search_test", "isolated_test"}


def test_the_pages_commands_run(feature_gap: Path) -> None:
    """Through the real command line, which looks for the module in the current folder."""
    commands = re.findall(r"^fastglt .*$", (DOCS / "own-method.md").read_text(), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["methods", "find", "compare"]
    script = Path(sys.executable).with_name("fastglt")
    for command in commands:
        words = command.replace("--seeds 0-4", "--seeds 0").replace("fastglt,random,", "").split()[1:]
        more = [] if words[0] == "methods" else ["--dataset", TINY, *SHORT, "--threads", "1"]
        done = run(script, *words, *more, folder=feature_gap.parent)
        assert done.returncode == 0, done.stderr
        assert "feature-gap" in done.stdout


def test_the_example_is_short_and_explained() -> None:
    page = (DOCS / "own-method.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) <= 40
    for name in ("begin", "after_epoch", "extra_loss", "soften", "before_step", "after_step", "recipe", "finished"):
        assert f"`{name}" in page


def test_the_table_of_methods_is_that_of_the_registry() -> None:
    """The row to write is in the message."""
    page = (DOCS / "methods.md").read_text()
    for name, method in METHODS.items():
        row = f"| `{name}` | {method.summary} | {method.prunes} | {method().epochs:,} | {method.paper or '–'} |"
        assert row in page


def test_options_named_on_the_page_exist() -> None:
    page = (DOCS / "methods.md").read_text()
    for method, option in re.findall(r"--option (\w+)\.(\w+)=", page):
        assert option in options_of(METHODS[method])


def test_the_pages_model_is_the_one_that_is_tested() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "own-model.md").read_text(), re.DOTALL)
    assert code == (Path(__file__).parent / "extending" / "sage.py").read_text()


def test_the_pages_task_is_the_one_that_is_tested() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "own-task.md").read_text(), re.DOTALL)
    assert code == (Path(__file__).parent / "extending" / "regression.py").read_text()


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    listed = {
        line for tree in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL) for line in tree.splitlines()
    }
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    documented = set(re.findall(r"auto\w+:: fastglt\.(\w+)$", page, re.MULTILINE))
    assert documented == set(fastglt.__all__) - {"__version__"}


def test_the_glossary_names_modules_that_are_there() -> None:
    """Each row's last cell; `.forests` is beside the module that is named before it."""
    for line in (DOCS / "glossary.md").read_text().splitlines():
        for module in re.findall(r"`([a-z_.]+)`", line.split(" | ")[-1]) if line.startswith("| ") else []:
            if not module.startswith("."):
                importlib.import_module(f"fastglt.{module}")


def test_the_version_is_cited_and_in_the_changelog() -> None:
    root = DOCS.parent
    cited = re.findall(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited == released[:1]


def test_lowest_versions_are_those_of_pyproject() -> None:
    """Torch's apart, as said there: each lower bound is what the lowest versions are tested with."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(one for extra in ("onnx", "report", "serve") for one in project["optional-dependencies"][extra]),
    ]
    bounds = {name.lower(): low for name, low in (re.findall(r"([\w-]+)>=([\d.]+)", one)[0] for one in wanted)}
    pins = re.findall(r"^([\w-]+)==([\d.]+)$", (DOCS.parent / "constraints-lowest.txt").read_text(), re.MULTILINE)
    pinned = {name.lower(): version for name, version in pins}
    for name, low in bounds.items():
        assert name == "torch" or (pinned[name] + ".").startswith(f"{low}."), name
