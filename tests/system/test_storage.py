import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fastglt import InputError, MachineError
from fastglt.system.storage import cache_folder, disk_errors, open_lock, read_bytes, write_atomically


def only(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_writes_and_replaces_a_file_and_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert only(path.parent) == ["file"]


def test_a_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_long_name_fits(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(MachineError, match="File name too long"):
        write_atomically(tmp_path / ("x" * 256), b"new")


def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(MachineError, match=r"cannot write '.*name': .* is a file, not a folder"):
        write_atomically(tmp_path / "file" / "deeper" / "name", b"new")
    with pytest.raises(MachineError, match=r"cannot write '.*name': something of that name stands in the way"):
        write_atomically(tmp_path / "file" / "name", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="it is a folder; name a file"):
        write_atomically(tmp_path, b"new")


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MachineError, match="stands in the way"):
        write_atomically(tmp_path / "pipe", b"new")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    make = tempfile.mkstemp

    def on_a_full_disk(**options: Any) -> tuple[int, str]:
        handle, name = make(**options)
        os.close(handle)
        return os.open("/dev/full", os.O_WRONLY), name

    monkeypatch.setattr(tempfile, "mkstemp", on_a_full_disk)
    with pytest.raises(MachineError, match="the disk is full; free some space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path) == ["file"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")])
def test_an_interruption_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def interrupt(*_: object) -> None:
        raise interruption

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises((KeyboardInterrupt, MachineError)):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_flushed_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def files_only(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(handle)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EACCES, "permission is denied"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_one_clear_line(code: int, line: str) -> None:
    with (
        pytest.raises(MachineError, match=f"^cannot read 'some/file': {line}"),
        disk_errors(Path("some/file"), "read"),
    ):
        raise OSError(code, os.strerror(code))


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")]
)
def test_memory_that_runs_out_is_one_clear_line(error: Exception) -> None:
    with (
        pytest.raises(MachineError, match=r"^cannot read 'some/file': there is not enough memory; close other"),
        disk_errors(Path("some/file"), "read"),
    ):
        raise error


def test_our_own_errors_pass_as_they_are() -> None:
    with pytest.raises(MachineError, match=r"^mine$"), disk_errors(Path("some/file"), "read"):
        raise MachineError("mine")
    with pytest.raises(RuntimeError, match=r"^theirs$"), disk_errors(Path("some/file"), "read"):
        raise RuntimeError("theirs")


def test_no_more_is_read_than_a_file_may_have(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", most=5) == b"12345"
    with pytest.raises(InputError, match=r"file' must have at most 4 bytes \(got more\)"):
        read_bytes(tmp_path / "file", most=4)
    with pytest.raises(InputError, match="at most 1,000 bytes"):
        read_bytes(Path("/dev/zero"), most=1000)


def test_a_lock_is_a_file_that_is_made_and_never_emptied(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for content in ("", "a note"):
        os.close(open_lock(path))
        assert path.read_text() == content
        path.write_text("a note")


def test_a_link_or_a_pipe_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "made")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("link", "it is a symbolic link"), ("pipe", "stands in the way")):
        with pytest.raises(MachineError, match=reason):
            open_lock(tmp_path / name)
    assert not (tmp_path / "made").exists()


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), disk_errors(tmp_path, "read"):
        _ = 1 // 0


def test_the_cache_is_where_it_is_asked_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FASTGLT_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    assert not cache_folder().exists()  # made by whoever writes
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FASTGLT_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize("asked", [None, ""])
def test_the_cache_is_in_the_users_place_for_caches(
    asked: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FASTGLT_CACHE")
    if asked is not None:
        monkeypatch.setenv("FASTGLT_CACHE", asked)
    assert cache_folder() == tmp_path / "fastglt"
