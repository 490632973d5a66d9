"""A run's folder: claimed, resumed, swept, and never another run's."""

import math
from pathlib import Path

import pytest
import torch

from fastglt import InputError
from fastglt.kernels import Table, table, use_table
from fastglt.phases import Journal, run_phase
from fastglt.run_folder import RunFolder
from fastglt.training import Training
from tests.helpers import method_of, training_of

SETTINGS = {"seed": 0, "budget": [1, 2]}
METHOD = method_of("fastglt", 0.5, 0.9)


def test_a_stopped_phase_goes_on_bit_for_bit_and_is_not_run_again(tmp_path: Path) -> None:
    undisturbed = run_phase("search", training_of, METHOD, Journal())
    first = RunFolder(tmp_path / "run", SETTINGS)

    def stop_in_the_middle(phase: str, training: Training, epochs: int) -> None:
        first.stop = training.epoch == 9

    with first.open(), pytest.raises(KeyboardInterrupt, match="search, epoch 10"):
        run_phase("search", training_of, METHOD, first, stop_in_the_middle)
    second = RunFolder(tmp_path / "run", SETTINGS)
    epochs: list[int] = []
    with second.open():
        for _ in range(2):  # the second time nothing is left to do
            result = run_phase("search", training_of, METHOD, second, lambda _p, t, _e: epochs.append(t.epoch))
            assert result.history == undisturbed.history
            assert result.best.masks == undisturbed.best.masks
            for name, value in undisturbed.best.state.items():
                assert torch.equal(result.best.state[name], value)
    assert epochs == list(range(11, METHOD.epochs + 1))


def test_completing_sweeps_checkpoints_and_torn_files(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, SETTINGS, checkpoint_every=0)
    with folder.open():
        run_phase("search", training_of, METHOD, folder)
        (tmp_path / ".ticket.safetensors.x1y2").write_text("torn")
        folder.complete({"seed": 1}, {})
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "run.json", "metrics.json", "history.csv"}
    assert RunFolder(tmp_path, SETTINGS).result() == {"seed": 1}
    with RunFolder(tmp_path, SETTINGS).open() as finished:
        assert finished == {"seed": 1}


def test_a_run_keeps_the_table_of_kernels_that_it_began_with(tmp_path: Path) -> None:
    first = Table(spmm=((math.inf, "plain"),))
    with use_table(first), RunFolder(tmp_path, SETTINGS).open():
        assert table() == first
    with RunFolder(tmp_path, SETTINGS).open():
        assert table() == first
    assert table() != first


@pytest.mark.parametrize(
    ("name", "content"), [("metrics.json", ""), ("metrics.json", "{}"), ("run.json", "[1"), ("run.json", "[]")]
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: str) -> None:
    with RunFolder(tmp_path, SETTINGS).open():
        pass
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=f"{name}' is damaged"), RunFolder(tmp_path, SETTINGS).open():
        pass


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, SETTINGS)
    with folder.open():
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / "checkpoint" / "search.part").write_text("torn")
        with pytest.raises(InputError, match=r"search.part' is damaged .* remove it to start that phase again"):
            run_phase("search", training_of, METHOD, folder)


def test_another_runs_settings_are_named(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS).open():
        pass
    with (
        pytest.raises(InputError, match=r"holds another run: seed differ \(seed was 0, got 1\)"),
        RunFolder(tmp_path, {**SETTINGS, "seed": 1}).open(),
    ):
        pass


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder"), RunFolder(tmp_path / "file", SETTINGS).open():
        pass
