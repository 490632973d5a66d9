"""A run's folder: claimed, resumed, swept, and never another run's."""

import math
from pathlib import Path

import pytest
import torch

from fastglt import InputError, MachineError
from fastglt.kernels import Table, table, use_table
from fastglt.models import GCN
from fastglt.runs.run_folder import RunFolder
from fastglt.tickets.find import Found, find
from fastglt.tickets.phases import Journal, run_phase
from fastglt.tickets.ticket_file import encode
from fastglt.training.loop import Training
from tests.helpers import method_of, toy_task, training_of

SETTINGS = {"seed": 0, "budget": [1, 2]}
METHOD = method_of("fastglt", 0.5, 0.9)
# Three rounds, of two epochs of mask training and two of the ticket each: they end with epochs 4, 8 and 12.
UGS = method_of("ugs", 0.4, 0.8, round_epochs=2, edge_share=0.2, weight_share=0.5)


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
        (tmp_path / ".ticket.safetensors.x1y2z_v0").write_text("torn")
        (tmp_path / ".history.csv.swp").write_text("an editor's")
        (tmp_path / ".old.aaaabbbb").mkdir()
        (tmp_path / "rounds").mkdir()
        (tmp_path / "rounds" / ".01.safetensors.x1y2z_v0").write_text("torn")
        folder.complete({"seed": 1}, {})
    assert list((tmp_path / "rounds").iterdir()) == []
    (tmp_path / "rounds").rmdir()
    theirs, ours = {".history.csv.swp", ".old.aaaabbbb"}, {".lock", "run.json", "metrics.json", "history.csv"}
    assert {path.name for path in tmp_path.iterdir()} == theirs | ours
    assert RunFolder(tmp_path, SETTINGS).result() == {"seed": 1}
    with RunFolder(tmp_path, SETTINGS).open() as finished:
        assert finished == {"seed": 1}


def search_with_ugs(folder: Path, *, stop_after: int | None = None) -> Found:
    """A search in a folder, to its end or to an epoch's."""
    journal = RunFolder(folder, SETTINGS)

    def stop(phase: str, training: Training, epochs: int) -> None:
        journal.stop = training.epoch + 1 == stop_after

    with journal.open():
        return find(
            GCN(12, 8, 3), toy_task(), UGS, seed=0, isolated=False, dense=False, journal=journal, progress=stop
        )


def files_of(found: Found) -> list[bytes]:
    return [encode(ticket) for ticket in (*found.rounds, found.ticket)]


class TestRounds:
    """What an iterative method finds on the way survives a kill."""

    @pytest.mark.parametrize("epoch", [3, 4, 5, 8, 11])
    def test_a_stopped_search_has_the_same_rounds_and_the_same_ticket(self, tmp_path: Path, epoch: int) -> None:
        undisturbed = find(GCN(12, 8, 3), toy_task(), UGS, seed=0, isolated=False, dense=False)
        with pytest.raises(KeyboardInterrupt, match=f"search, epoch {epoch}"):
            search_with_ugs(tmp_path, stop_after=epoch)
        rounds = {path.name for path in (tmp_path / "checkpoint").glob("search.round-*")}
        assert rounds == {f"search.round-{number}" for number in range(epoch // 4)}
        assert files_of(search_with_ugs(tmp_path)) == files_of(undisturbed)
        assert files_of(search_with_ugs(tmp_path)) == files_of(undisturbed)  # from the finished phase

    @pytest.mark.parametrize("earlier", [None, 2])
    def test_a_kill_after_a_round_and_before_a_checkpoint_costs_only_time(
        self, tmp_path: Path, earlier: int | None
    ) -> None:
        """The rounds are ahead of the checkpoint, or there is none."""
        part, content = tmp_path / "checkpoint" / "search.part", None
        for epoch in (earlier, 9):
            if epoch is not None:
                with pytest.raises(KeyboardInterrupt):
                    search_with_ugs(tmp_path, stop_after=epoch)
                content = part.read_bytes() if epoch == earlier else content
        part.unlink()
        if content is not None:
            part.write_bytes(content)
        undisturbed = find(GCN(12, 8, 3), toy_task(), UGS, seed=0, isolated=False, dense=False)
        assert files_of(search_with_ugs(tmp_path)) == files_of(undisturbed)

    def test_a_missing_round_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            search_with_ugs(tmp_path, stop_after=9)
        first = tmp_path / "checkpoint" / "search.round-0"
        content = first.read_bytes()
        first.unlink()
        with pytest.raises(InputError, match=r"lacks round 1 of its search; remove that folder"):
            search_with_ugs(tmp_path)
        first.write_bytes(content)
        search_with_ugs(tmp_path)
        (tmp_path / "checkpoint" / "search.round-2").unlink()
        with pytest.raises(InputError, match="lacks round 3 of its search"):
            search_with_ugs(tmp_path)


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


def test_whoever_waits_for_a_folder_can_be_stopped(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path / "run", {}), RunFolder(tmp_path / "run", {})
    with first.open():
        with (
            pytest.raises(MachineError, match=r"another process is working in .*run'; wait for it or choose"),
            second.open(),
        ):
            pass
        second.stop = True
        with pytest.raises(KeyboardInterrupt), second.open(wait=True):
            pass
    with second.open(wait=True) as finished:
        assert finished is None
