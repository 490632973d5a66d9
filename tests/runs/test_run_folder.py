"""A run's folder: claimed, resumed, swept, and never another run's."""

import json
import math
from pathlib import Path

import pytest
import torch

from fastglt import InputError, MachineError, Ticket
from fastglt.kernels import Table, table, use_table
from fastglt.models import GCN
from fastglt.runs.folder_files import TICKET
from fastglt.runs.run_folder import RunFolder
from fastglt.system.container import read_meta, read_tensors, seal, to_bytes, unseal
from fastglt.tickets.find import Found, find
from fastglt.tickets.phases import Journal, PhaseResult, run_phase
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
    theirs, ours = (
        {".history.csv.swp", ".old.aaaabbbb"},
        {".lock", ".digests.json", "run.json", "metrics.json", "history.csv"},
    )
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

    @pytest.mark.parametrize("damage", ["gone", "changed"])
    def test_a_damaged_round_costs_the_phase_and_is_told(
        self, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        undisturbed = find(GCN(12, 8, 3), toy_task(), UGS, seed=0, isolated=False, dense=False)
        with pytest.raises(KeyboardInterrupt):
            search_with_ugs(tmp_path, stop_after=9)
        for number, name in ((0, "search.part"), (2, "search.done")):
            file = tmp_path / "checkpoint" / f"search.round-{number}"
            content = file.read_bytes()
            file.unlink() if damage == "gone" else file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            assert files_of(search_with_ugs(tmp_path)) == files_of(undisturbed)
            told = f"its round {number + 1} is gone" if damage == "gone" else "its checksum does not match"
            place = tmp_path / "checkpoint" / name
            remedy = "the search phase is done again from its beginning"
            assert capsys.readouterr().err == f"warning: '{place}' is damaged ({told}); {remedy}\n"


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


def stopped_and_finished(path: Path) -> tuple[PhaseResult, bytes, bytes]:
    """The result of a search, its checkpoint in the middle and the one at its end."""
    first = RunFolder(path, SETTINGS)

    def stop_in_the_middle(phase: str, training: Training, epochs: int) -> None:
        first.stop = training.epoch == 9

    with first.open(), pytest.raises(KeyboardInterrupt):
        run_phase("search", training_of, METHOD, first, stop_in_the_middle)
    part = (path / "checkpoint" / "search.part").read_bytes()
    second = RunFolder(path, SETTINGS)
    with second.open():
        result = run_phase("search", training_of, METHOD, second)
    return result, part, (path / "checkpoint" / "search.done").read_bytes()


def searched(path: Path) -> tuple[PhaseResult, list[int]]:
    """The result of a search that goes on in a folder, and the epochs that were left."""
    folder, epochs = RunFolder(path, SETTINGS), list[int]()
    with folder.open():
        result = run_phase("search", training_of, METHOD, folder, lambda _p, t, _e: epochs.append(t.epoch))
    return result, epochs


def same_result(one: PhaseResult, other: PhaseResult) -> bool:
    states = zip(one.best.state.values(), other.best.state.values(), strict=True)
    return one.history == other.history and all(torch.equal(a, b) for a, b in states)


class TestDamagedCheckpoints:
    """Whatever is changed in a checkpoint, the run ends with the same ticket; one line says what was lost."""

    @pytest.mark.parametrize("kind", ["part", "done"])
    @pytest.mark.parametrize("place", [0, 3, 9, 41, 48, 60, 400, 0.5, 0.9, -1])
    def test_a_flipped_bit_costs_the_phase_and_is_told(
        self, tmp_path: Path, kind: str, place: float, capsys: pytest.CaptureFixture[str]
    ) -> None:
        result, part, done = stopped_and_finished(tmp_path)
        content = bytearray({"part": part, "done": done}[kind])
        content[int(place * len(content)) if 0 < place < 1 else int(place)] ^= 4
        (tmp_path / "checkpoint" / "search.done").unlink()
        (tmp_path / "checkpoint" / f"search.{kind}").write_bytes(content)
        again, epochs = searched(tmp_path)
        assert same_result(again, result)
        assert epochs == list(range(1, METHOD.epochs + 1))
        told = capsys.readouterr().err
        assert told.startswith(f"warning: '{tmp_path / 'checkpoint'}/search.{kind}' is damaged (")
        assert told.count("\n") == 1

    def test_checkpoints_of_before_have_no_seal_and_are_read(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        result, part, done = stopped_and_finished(tmp_path)
        for kind, content, first in (("done", done, None), ("part", part, 11)):
            (tmp_path / "checkpoint" / "search.done").unlink(missing_ok=True)
            (tmp_path / "checkpoint" / f"search.{kind}").write_bytes(unseal(content))
            again, epochs = searched(tmp_path)
            assert same_result(again, result)
            assert epochs == ([] if first is None else list(range(first, METHOD.epochs + 1)))
        assert capsys.readouterr().err == ""

    def test_one_whose_content_was_never_ours_is_refused_in_a_line(self, tmp_path: Path) -> None:
        _, part, _ = stopped_and_finished(tmp_path)
        content = unseal(part)
        meta = read_meta(content)
        meta["training"]["names"].append("state/more")
        (tmp_path / "checkpoint" / "search.done").unlink()
        (tmp_path / "checkpoint" / "search.part").write_bytes(seal(to_bytes(read_tensors(content), meta)))
        folder = RunFolder(tmp_path, SETTINGS)
        with folder.open(), pytest.raises(InputError, match=r"search.part' is damaged .* remove it to start that"):
            run_phase("search", training_of, METHOD, folder)


class TestDigests:
    """run.json, metrics.json and the ticket of a finished run are as they were written, or it is told."""

    @pytest.mark.parametrize(
        ("name", "remedy"), [("run.json", "remove that folder"), ("metrics.json", "remove it to run again")]
    )
    def test_a_changed_file_is_noticed(self, tmp_path: Path, name: str, remedy: str) -> None:
        folder = RunFolder(tmp_path, {**SETTINGS, "note": "as it was"})
        with folder.open():
            folder.complete({"seed": 1, "note": "as it was"}, {})
        assert folder.result() == {"seed": 1, "note": "as it was"}
        file = tmp_path / name
        file.write_text(file.read_text().replace("as it was", "as it is"))
        with pytest.raises(InputError, match=rf"{name}' is damaged \(it is not what '.digests.json'.*; {remedy}"):
            folder.result()

    def test_folders_of_before_have_no_digests_and_are_read(self, tmp_path: Path) -> None:
        folder = RunFolder(tmp_path, SETTINGS)
        with folder.open():
            folder.complete({"seed": 1}, {})
        (tmp_path / ".digests.json").unlink()
        assert folder.result() == {"seed": 1}
        with folder.open() as finished:
            assert finished == {"seed": 1}

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"run.json": 1}', "[" * 5000])
    def test_damaged_digests_are_told(self, tmp_path: Path, content: str) -> None:
        with RunFolder(tmp_path, SETTINGS).open():
            pass
        (tmp_path / ".digests.json").write_text(content)
        with pytest.raises(InputError, match=r"\.digests\.json' is damaged; remove it to do without"):
            RunFolder(tmp_path, SETTINGS).result()

    def test_a_kill_between_the_digest_and_its_file_costs_nothing(self, tmp_path: Path) -> None:
        with RunFolder(tmp_path, SETTINGS).open():
            pass
        (tmp_path / "run.json").unlink()
        with RunFolder(tmp_path, SETTINGS).open() as finished:
            assert finished is None

    @pytest.mark.parametrize("damage", ["gone", "changed"])
    @pytest.mark.parametrize("before", [False, True])
    def test_a_finished_run_whose_ticket_is_lost_says_what_to_remove(
        self, tmp_path: Path, damage: str, before: bool, ticket: Ticket
    ) -> None:
        folder = RunFolder(tmp_path, {**SETTINGS, "method": "fastglt"})
        with folder.open():
            ticket.save(tmp_path / TICKET)
            folder.complete({"seed": 1}, {})
        if before:
            (tmp_path / ".digests.json").unlink()
        assert folder.result() == {"seed": 1}
        content = (tmp_path / TICKET).read_bytes()
        (tmp_path / TICKET).unlink()
        if damage == "changed":
            (tmp_path / TICKET).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(InputError, match=r"its ticket.safetensors .*; put it back, or remove '.*metrics.json'"):
            folder.result()
        (tmp_path / "metrics.json").unlink()
        with folder.open() as finished:
            assert finished is None

    def test_what_is_lost_is_made_again_where_checkpoints_allow(
        self, tmp_path: Path, ticket: Ticket, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = RunFolder(tmp_path, {**SETTINGS, "method": "fastglt"})
        with folder.open():
            run_phase("search", training_of, METHOD, folder)
            done = (tmp_path / "checkpoint" / "search.done").read_bytes()
            ticket.save(tmp_path / TICKET)
            folder.complete({"seed": 1}, {})
        (tmp_path / TICKET).unlink()
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / "checkpoint" / "search.done").write_bytes(done)
        assert folder.result() is None
        with folder.open() as finished:
            assert finished is None
            assert folder.finished("search") is not None
        assert "ticket.safetensors is gone; it is made again from the checkpoints" in capsys.readouterr().err


def test_a_locks_link_is_not_followed_and_nothing_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    folder = RunFolder(tmp_path / "run", SETTINGS)
    with pytest.raises(MachineError, match=r"cannot open '.*\.lock': it is a symbolic link"), folder.open():
        pass
    assert (tmp_path / "precious").read_text() == "mine"
    (tmp_path / "run" / ".lock").unlink()
    (tmp_path / "run" / ".lock").write_text("a note")
    with RunFolder(tmp_path / "run", SETTINGS).open():
        assert (tmp_path / "run" / ".lock").read_text() == "a note"


@pytest.mark.parametrize("kernels", [1, [], {"spmm": [[10**400, "numba"]]}, "[" * 40 + "]" * 40])
def test_a_run_json_of_other_types_is_told(tmp_path: Path, kernels: object) -> None:
    with RunFolder(tmp_path, SETTINGS).open():
        pass
    (tmp_path / ".digests.json").unlink()
    text = kernels if isinstance(kernels, str) else json.dumps(kernels)
    (tmp_path / "run.json").write_text(f'{{"settings": {json.dumps(SETTINGS)}, "kernels": {text}}}')
    with pytest.raises(InputError, match=r"run.json' is damaged"), RunFolder(tmp_path, SETTINGS).open():
        pass
    (tmp_path / "run.json").write_text('{"settings": [], "kernels": {}}')
    with pytest.raises(InputError, match=r"run.json' is damaged"):
        RunFolder(tmp_path, SETTINGS).result()


def test_another_runs_settings_are_named(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS).open():
        pass
    with (
        pytest.raises(InputError, match=r"holds another run \(--seed 0 there, 1 here\); choose another --out"),
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


class TestAnotherVersion:
    """What an older fastglt has begun goes on, and says so; nothing else may differ."""

    def test_a_run_goes_on_and_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        undisturbed = run_phase("search", training_of, METHOD, Journal())
        first = RunFolder(tmp_path / "run", {**SETTINGS, "fastglt": "0.1.0"})

        def stop_in_the_middle(phase: str, training: Training, epochs: int) -> None:
            first.stop = training.epoch == 9

        with first.open(), pytest.raises(KeyboardInterrupt):
            run_phase("search", training_of, METHOD, first, stop_in_the_middle)
        second = RunFolder(tmp_path / "run", {**SETTINGS, "fastglt": "0.2.0"})
        epochs: list[int] = []
        with second.open():
            result = run_phase("search", training_of, METHOD, second, lambda _p, t, _e: epochs.append(t.epoch))
        assert epochs[0] == 11
        assert result.best.masks == undisturbed.best.masks
        assert "was begun by fastglt 0.1.0, and goes on with 0.2.0" in capsys.readouterr().err

    def test_a_finished_one_is_taken_without_a_word(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = RunFolder(tmp_path, {**SETTINGS, "fastglt": "0.1.0"})
        with first.open():
            first.complete({"seed": 1}, {})
        assert RunFolder(tmp_path, {**SETTINGS, "fastglt": "0.2.0"}).result() == {"seed": 1}
        assert capsys.readouterr().err == ""

    def test_another_setting_beside_it_is_another_run(self, tmp_path: Path) -> None:
        with RunFolder(tmp_path, {**SETTINGS, "fastglt": "0.1.0"}).open():
            pass
        with pytest.raises(
            InputError,
            match=r"holds another run \(--seed 0 there, 1 here; fastglt's version 0.1.0 there, 0.2.0 here\)",
        ):
            RunFolder(tmp_path, {**SETTINGS, "seed": 1, "fastglt": "0.2.0"}).result()
