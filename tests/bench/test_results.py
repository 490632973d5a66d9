"""Rows on disk."""

import json
from pathlib import Path

import pytest

from fastglt import InputError, MachineError
from fastglt.bench.results import Measurements, machine

ABOUT = {"machine": {"cpu": "abacus"}, "command": "train", "settings": {"hidden": 8, "repeats": 5}}
ROW = {"dataset": "cora", "model": "gcn", "ours_ms": 1.5}


def test_rows_are_kept_as_soon_as_they_are_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.json"
    results = Measurements(path, ABOUT)
    assert json.loads(path.read_text()) == {**ABOUT, "rows": []}
    results.add(ROW)
    assert json.loads(path.read_text()) == {**ABOUT, "rows": [ROW]}
    again = Measurements(path, ABOUT)
    assert again.find(dataset="cora", model="gcn") == ROW
    assert again.find(dataset="cora", model="gat") is None
    assert again.document([ROW]) == {**ABOUT, "rows": [ROW]}


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = Measurements(None, ABOUT)
    results.add(ROW)
    assert results.find(dataset="cora", model="gcn") == ROW
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"settings": {"hidden": 8, "repeats": 1}}, "repeats was 5, now 1"),
        ({"settings": {"hidden": 8}}, "repeats was 5, now None"),
        ({"command": "search"}, "command was 'train', now 'search'"),
        ({"machine": {"cpu": "brain"}}, "cpu was 'abacus', now 'brain'"),
    ],
)
def test_rows_that_were_measured_differently_are_left_alone(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    Measurements(tmp_path / "rows.json", ABOUT).add(ROW)
    before = (tmp_path / "rows.json").read_bytes()
    with pytest.raises(InputError, match=f"measured differently: {message}; choose another --out"):
        Measurements(tmp_path / "rows.json", {**ABOUT, **changed})
    assert (tmp_path / "rows.json").read_bytes() == before


@pytest.mark.parametrize(
    "text", ["", "hello", "[1]", "{}", '{"rows": [1]}', '{"rows": [{"dataset": "cora"}]}', "1"]
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine").write_text(text)
    with pytest.raises(InputError, match="must be a new file or one of `fastglt bench`"):
        Measurements(tmp_path / "mine", ABOUT)
    assert (tmp_path / "mine").read_text() == text


def test_a_place_where_nothing_can_be_written_is_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot write"):
        Measurements(tmp_path / "file" / "rows.json", ABOUT)
    with pytest.raises(MachineError, match="it is a folder"):
        Measurements(tmp_path, ABOUT)


def test_the_machine_is_described() -> None:
    described = machine(threads=3, device="cpu")
    assert described["threads"] == 3
    assert described["cores"] >= 1
    assert described["cpu"]
    assert set(described) >= {"cpu", "device", "fastglt", "torch", "torch_geometric", "numba"}
    assert json.loads(json.dumps(described)) == described


def test_a_processor_without_a_name_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.system.provenance._CPU_INFO", tmp_path / "cpuinfo")
    assert machine(threads=1, device="cpu")["cpu"] == "unknown"
    (tmp_path / "cpuinfo").write_text("processor : 0\n")
    assert machine(threads=1, device="cpu")["cpu"] == "unknown"
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Abacus 3: fast\n")
    assert machine(threads=1, device="cpu")["cpu"] == "Abacus 3: fast"
