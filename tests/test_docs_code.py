"""Every block of code in the pages runs, and every command in them is one that the command line takes."""

import itertools
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.main import get_command

import fastglt
from fastglt.cli import app
from tests.toy_data import quick_ticket, toy_data

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = ROOT / "notebooks"
TINY = "synthetic:nodes=80,edges=200,features=16,classes=3"
SHORT = "hidden=8, budget={'oneshot_epochs': 2, 'denoise_epochs': 4, 'interval': 2}"
ELSEWHERE = {"own-method", "own-model", "own-task", "quickstart"}  # test_docs.py, and the notebooks
SMALLER = {  # what a page's code says, and what it is replaced by so that it takes no time
    "methods": {
        '"cora"': f'"{TINY}"',
        "seeds=range(5)": f"seeds=range(2), threads=1, {SHORT}",
        '"ugs"': '"random"',
    },
    "links": {
        'load("cora")': f'load("{TINY}")',
        '"oneshot_epochs": 20, "denoise_epochs": 80': '"oneshot_epochs": 2, "denoise_epochs": 4',
        'task="link", graph_sparsity': f'task="link", {SHORT}, graph_sparsity',
        "hits@50": "hits@10",
        "range(3)": "range(2)",
    },
    "many-labels": {'load("debian_packages/").data': "toy_labels"},
    "federated": {'clients=10, parts="metis"': 'clients=2, parts="random", rounds=4, hidden=8'},
    "serve": {"run(make_app": "str(make_app", ", port=8000": ""},
    "deploy": {'"ticket.': '"exported/ticket.', "[3, 14, 15]": "[3, 14]"},
}


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)


PAGES = [
    path.stem for path in sorted(DOCS.glob("*.md")) if blocks(path.stem, "python") and path.stem not in ELSEWHERE
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What pages speak of without making it."""
    data = toy_data()
    ticket = quick_ticket("gcn", data)
    labelled = data.clone()
    labelled.y = torch.eye(3)[data.y]
    folder = tmp_path_factory.mktemp("docs")
    return {
        "fastglt": fastglt,
        "torch": torch,
        "data": data,
        "ticket": ticket,
        "model": None,
        "x": data.x,
        "x_new": data.x[:1],
        "edges_new": torch.tensor([[30], [0]]),
        "verdict": fastglt.evaluate(ticket, None, data, seeds=range(2)),
        "comparison": fastglt.compare(
            TINY,
            methods=["fastglt", "random"],
            seeds=range(2),
            threads=1,
            hidden=8,
            budget={"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2},
            out=folder / "runs",
            store=folder / "store.sqlite",
        ),
        "toy_labels": labelled,
        "new_data": _with_a_node(data),
    }


def _with_a_node(data: Any) -> Any:
    """One node more, linked to the first."""
    later = data.clone()
    later.x = torch.cat([data.x, data.x[:1]])
    later.y = torch.cat([data.y, data.y[:1]])
    later.edge_index = torch.cat([data.edge_index, torch.tensor([[30, 0], [0, 30]])], dim=1)
    for part in ("train_mask", "val_mask", "test_mask"):
        later[part] = torch.cat([data[part], torch.tensor([False])])
    return later


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES)
def test_the_pages_code_runs(
    page: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page == "deploy":
        for form, name in (("torch", "ticket.pt2"), ("onnx", "ticket.onnx"), ("npz", "ticket.npz")):
            _export(names, form, tmp_path / "exported" / name)
        names = {**names, "onnxruntime": pytest.importorskip("onnxruntime")}
    space = dict(names)
    for block in blocks(page, "python"):
        code = block
        for old, new in SMALLER.get(page, {}).items():
            code = code.replace(old, new)
        exec(compile(code, f"docs/{page}.md", "exec"), space)


def _export(names: dict[str, Any], form: str, place: Path) -> None:
    from fastglt.deploy.exports import export

    place.parent.mkdir(exist_ok=True)
    export(fastglt.compile_ticket(names["ticket"], names["data"]), place, to=form)


def commands() -> Iterator[tuple[str, str]]:
    """Every line of a page that begins with fastglt; a line that ends in a backslash goes on."""
    for path in [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]:
        for fence in re.findall(r"```(?:bash|sh|console)?\n(.*?)```", path.read_text(), re.DOTALL):
            for line in fence.replace("\\\n", " ").splitlines():
                if line.startswith("fastglt ") and "…" not in line:
                    yield path.name, line


def test_every_command_of_the_pages_is_one_that_there_is() -> None:
    """Names, options and numbers are read as the command line reads them; nothing is run."""
    found = list(commands())
    assert len(found) > 60
    for page, line in found:
        words = shlex.split(line, comments=True)[1:]
        words = list(itertools.takewhile(lambda word: word not in ("|", ">", "&&", "&"), words))
        command: Any = get_command(app)
        while words and hasattr(command, "commands"):
            assert words[0] in {*command.commands, "--help", "--use"}, f"{page}: {line}"
            command, words = command.commands.get(words[0], command), words[1:]
        if "--help" not in line:
            try:
                command.make_context("fastglt", words).close()
            except Exception as error:  # of Typer's own copy of Click, or of ours
                pytest.fail(f"{page}: {line}: {error!r}")


def code_cells(name: str) -> list[str]:
    cells = json.loads((NOTEBOOKS / name).read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_quickstart_is_the_notebook() -> None:
    assert [block.strip() for block in blocks("quickstart", "python")] == code_cells("quickstart.ipynb")


def test_notebooks_are_kept_without_what_they_printed() -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.filterwarnings("ignore")
def test_the_notebooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both in one kernel, which takes seconds to start; results show themselves as tables and drawings."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    whole = nbformat.v4.new_notebook()
    for name in ("quickstart.ipynb", "is-this-ticket-winning.ipynb"):
        whole.cells += [cell for cell in nbformat.read(NOTEBOOKS / name, 4).cells if cell.cell_type == "code"]
    for number, cell in enumerate(whole.cells):
        cell["id"] = f"cell-{number}"
    manager = nbclient.NotebookClient(whole, timeout=300, kernel_name="python3", resources={})
    manager.create_kernel_manager()
    manager.km.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.execute()
    shown = [
        output.data for cell in whole.cells for output in cell.outputs if output.output_type == "execute_result"
    ]
    assert sum("text/html" in data for data in shown) >= 7
    assert sum("<svg" in data.get("text/html", "") for data in shown) == 4
    assert [output.text.strip() for output in whole.cells[-1].outputs][-1].split()[-1] == "inferior"
