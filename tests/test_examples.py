"""The scripts in examples/ run as they are, offline and with few epochs."""

from pathlib import Path

import pytest

from tests.processes import run

EXAMPLES = Path(__file__).parent.parent / "examples"
SAYS = {
    "own_model.py": ("20% of the edges and 80% of the weights are gone", "plain PyG with"),
    "own_method.py": ("smallest-weights: keeps", "random: keeps"),
    "predict.py": ("classes of nodes 3, 14 and 15:", "classes of the new nodes:"),
    "read_runs.py": ("run 1: ticket by find", "edges kept; the ticket is"),
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_and_says_what_it_did(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTGLT_DATA", raising=False)
    variables = {"EPOCHS": "4", "FASTGLT_STORE": str(tmp_path / "results.sqlite")}
    done = run(EXAMPLES / name, folder=tmp_path, variables=variables)
    assert done.returncode == 0, done.stderr
    for part in SAYS[name]:
        assert part in done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 50
