from pathlib import Path

import pytest
import torch

from fastglt.errors import MachineError
from fastglt.runs.checkpoints import Checkpoints, DamagedError, damage
from fastglt.system.container import to_bytes

TENSORS = {"a": torch.arange(5.0)}


def test_what_is_kept_comes_back_until_it_is_forgotten(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "checkpoint")
    assert kept.read("search.part") is None
    kept.write("search.part", TENSORS, {"epoch": 3})
    found = kept.read("search.part")
    assert found is not None
    assert torch.equal(found[0]["a"], TENSORS["a"])
    assert found[1] == {"epoch": 3}
    kept.write("search.done", TENSORS, {})
    assert kept.has_finished_phases
    kept.forget("search.part")
    kept.forget("search.part")
    assert kept.read("search.part") is None
    kept.forget_all()
    assert not kept.folder.exists()


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    kept, path = Checkpoints(tmp_path), tmp_path / "search.part"
    kept.write("search.part", TENSORS, {"epoch": 3})
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with pytest.raises(DamagedError):
            kept.read("search.part")


def test_one_of_before_is_read_without_a_seal(tmp_path: Path) -> None:
    (tmp_path / "search.part").write_bytes(to_bytes(TENSORS, {"epoch": 3}))
    found = Checkpoints(tmp_path).read("search.part")
    assert found is not None
    assert found[1] == {"epoch": 3}


@pytest.mark.parametrize("count", [-1, 0, "2", None, 1.5, [1]])
def test_a_count_of_rounds_that_is_none_is_damage(tmp_path: Path, count: object) -> None:
    kept = Checkpoints(tmp_path)
    if isinstance(count, int):
        assert kept.read_rounds("search", count) == []
    else:
        with pytest.raises(DamagedError):
            kept.read_rounds("search", count)


def test_what_the_machine_does_wrong_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "search.part").mkdir()
    with pytest.raises(MachineError, match="it is a folder"):
        Checkpoints(tmp_path).read("search.part")
    with pytest.raises(MemoryError), damage():
        raise MemoryError
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"), damage():
        raise RuntimeError("DefaultCPUAllocator: not enough memory")
