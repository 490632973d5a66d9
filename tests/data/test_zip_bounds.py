"""Archives that say little and hold much, or that are packed in ways of their own."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastglt.data import load
from fastglt.data.zip_bounds import Member, check_size
from fastglt.errors import InputError, MachineError

EDGES = np.array([[0, 1, 2, 2], [1, 2, 0, 2]])
SOUND: dict[str, npt.NDArray[Any]] = {"edge_index": EDGES, "x": np.eye(6), "y": np.arange(6) % 2}


def npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def head(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    """The head of an array, as it may stand there."""
    length = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(length, len(text)) + text.encode()


def save(path: Path, method: int = zipfile.ZIP_STORED, **members: bytes) -> str:
    """A sound archive with some members replaced by any bytes."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in ({name: npy(array) for name, array in SOUND.items()} | members).items():
            archive.writestr(f"{name}.npy", content)
    return str(path)


def refused(path: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_sound_is_read_stored_or_deflated(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert load(save(tmp_path / "mine.npz", method)).data.num_nodes == 6


HEADS = {
    "an absurd shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 10000000000), }",
    "a negative shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 6), }",
    "a large shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 7), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (6, 6), }",
    "no shape": "{'descr': '<f8'}",
    "a shape of texts": "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',), }",
    "no dtype": "{'descr': 'zz', 'fortran_order': False, 'shape': (6,), }",
    "an expression": "__import__('os').mkdir('exploded')",
    "a deep one": "(" * 3000 + ")" * 3000,
    "a long one": " " * 60_000,
}


@pytest.mark.parametrize("text", HEADS.values(), ids=HEADS)
def test_a_head_that_lies_is_refused(tmp_path: Path, text: str) -> None:
    refused(save(tmp_path / "mine.npz", x=head(text) + b"\0" * 288), "x must be a plain array of numbers (got ")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("content", [b"", b"\x93NUM", b"not an array", head("{}", (3, 0)), head("{}", (9, 9))])
def test_a_member_that_is_no_array_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(save(tmp_path / "mine.npz", x=content), "x must be a plain array of numbers (got ")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_compression_is_refused(tmp_path: Path, method: int) -> None:
    refused(save(tmp_path / "mine.npz", method), "compressed in another way than numpy's")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(Path(save(tmp_path / "mine.npz")).read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(mark)
        content[at + flags] |= 1
    (tmp_path / "mine.npz").write_bytes(content)
    refused(str(tmp_path / "mine.npz"), "an encrypted one")


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "mine.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x", npy(np.zeros((6, 6))))
    refused(path, "2 of that name")


def test_masks_that_a_damaged_directory_hides_are_missed(tmp_path: Path) -> None:
    """The length of a comment, of which there is none, is made to reach over all that follows."""
    train, val, test = (npy(np.arange(6) % 3 == part) for part in range(3))
    path = save(tmp_path / "mine.npz", train_mask=train, val_mask=val, test_mask=test)
    content = bytearray(Path(path).read_bytes())
    entry = [at for at in range(len(content)) if content[at : at + 4] == b"PK\x01\x02"][2]
    assert content[entry + 46 : entry + 51] == b"y.npy"
    content[entry + 32 : entry + 34] = b"\xff\xff"
    (tmp_path / "mine.npz").write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["edge_index.npy", "x.npy", "y.npy"]
    refused(path, "must be a whole .npz archive (got 3 arrays where 6 are announced)")


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    """Four hundred megabytes of zeros in less than half a megabyte."""
    path, rows = tmp_path / "bomb.npz", 100_000_000
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 4), }}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("edge_index", "y"):
            archive.writestr(f"{name}.npy", npy(SOUND[name]))
        with archive.open("x.npy", "w") as file:
            file.write(head(text))
            for _ in range(100):
                file.write(bytes(4 * rows // 100))
    assert path.stat().st_size < 500_000
    refused(str(path), "may be 400 times as large as the file")


def test_what_does_not_fit_into_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.data.zip_bounds.available_memory", lambda: 100)
    monkeypatch.setattr("fastglt.data.zip_bounds.ANYWAY", 100)
    with pytest.raises(MachineError, match=r"does not fit into this machine's memory .*it takes about 0.0 GiB"):
        load(save(tmp_path / "mine.npz"))


def test_bag_of_words_features_are_no_bomb() -> None:
    """Coauthor Physics, dense, by four bytes: 1.2 GB, four megabytes deflated."""
    words = {"x": Member(shape=(34493, 8415), dtype=np.dtype("float32"))}
    check_size(words, 4_000_000)
    with pytest.raises(ValueError, match="400 times"):
        check_size(words, 1_200_000)


def test_memory_that_pytorch_does_not_get_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr("torch.from_numpy", fail)
    with pytest.raises(MachineError, match="digits does not fit into this machine's memory"):
        load("digits")
