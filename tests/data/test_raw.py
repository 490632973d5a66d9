import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from fastglt.data import load
from fastglt.errors import InputError, MachineError
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.datasets import HeterophilousGraphDataset, Planetoid

CLOSED_PORT = "http://127.0.0.1:9/data"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class BreaksOff(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"PK only the beginning")


@contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def tolokers(tmp_path: Path) -> Path:
    """A data root that holds a small network in Tolokers' layout."""
    masks = np.eye(3, 6, dtype=bool)
    raw = tmp_path / "root" / "tolokers" / "raw"
    raw.mkdir(parents=True)
    np.savez(
        raw / "tolokers.npz",
        node_features=np.eye(6),
        node_labels=np.arange(6) % 2,
        edges=np.array([[0, 1], [1, 2]]),
        train_masks=masks[:1],
        val_masks=masks[1:2],
        test_masks=masks[2:],
    )
    return tmp_path / "root"


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_the_users_folder_may_be_read_only_and_stays_as_it_is(tolokers: Path, cache: Path) -> None:
    folders = [tolokers, tolokers / "tolokers", tolokers / "tolokers" / "raw"]
    for folder in folders:
        folder.chmod(0o555)
    before = listing(tolokers)
    assert load("tolokers", root=tolokers).data.num_nodes == 6
    assert listing(tolokers) == before
    assert not cache.exists()
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.parametrize("name", ["cora", "tolokers"])
def test_the_real_folder_stays_as_it_is(name: str, real: Callable[[str], Path], cache: Path) -> None:
    root = real({"cora": "planetoid/Cora", "tolokers": "tolokers"}[name])
    before = listing(root)
    load(name, root=root)
    assert listing(root) == before
    assert not cache.exists()


def test_the_environment_names_the_root_and_an_argument_goes_first(
    tolokers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTGLT_DATA", str(tolokers))
    assert load("tolokers").data.num_nodes == 6
    monkeypatch.setenv("FASTGLT_DATA", str(tmp_path / "nowhere"))
    assert load("tolokers", root=str(tolokers)).data.num_nodes == 6


def test_pygs_own_root_is_found_too(tolokers: Path) -> None:
    target = tolokers / "Photo" / "raw" / "amazon_electronics_photo.npz"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"")
    with pytest.raises(InputError, match=r"Photo/raw: the raw files must be as their authors published them"):
        load("amazon-photo", root=tolokers)


def test_a_download_goes_to_the_cache_in_silence(
    tolokers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(tolokers / "tolokers" / "raw") as url:
        monkeypatch.setattr(HeterophilousGraphDataset, "url", url)
        assert load("tolokers").data.num_nodes == 6
    assert load("tolokers").data.num_nodes == 6  # without the server
    assert os.listdir(cache / "data" / "tolokers") == ["raw"]
    assert os.listdir(cache / "data" / "tolokers" / "raw") == ["tolokers.npz"]
    assert capfd.readouterr() == ("", "")


def test_many_may_download_at_once(tolokers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tolokers / "tolokers" / "raw") as url, ThreadPoolExecutor(4) as pool:
        monkeypatch.setattr(HeterophilousGraphDataset, "url", url)
        loaded = list(pool.map(load, ["tolokers"] * 8))
    assert [dataset.data.num_nodes for dataset in loaded] == [6] * 8
    assert os.listdir(cache / "data" / "tolokers") == ["raw"]


def test_a_download_that_breaks_off_leaves_nothing(
    tolokers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tolokers, BreaksOff) as url:
        monkeypatch.setattr(HeterophilousGraphDataset, "url", url)
        with pytest.raises(MachineError, match="broke off"):
            load("tolokers")
    assert os.listdir(cache / "data" / "tolokers" / "raw") == []


def test_a_file_the_server_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as url:
        monkeypatch.setattr(HeterophilousGraphDataset, "url", url)
        with pytest.raises(MachineError, match=r"got HTTP Error 404"):
            load("tolokers")


def test_without_a_network_the_message_says_what_goes_where(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Planetoid, "url", CLOSED_PORT)
    with pytest.raises(MachineError) as caught:
        load("cora", root=tmp_path / "mine")
    message = str(caught.value)
    assert f"looked in data root {tmp_path / 'mine'}, and in {cache}" in message
    for piece in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        assert f"planetoid/Cora/raw/ind.cora.{piece}" in message
    assert message.endswith("name that folder with --data-root or FASTGLT_DATA")
    assert "\n" not in message
    with pytest.raises(MachineError, match="no data root was given"):
        load("cora")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASTGLT_CACHE", str(tmp_path / "file"))
    with pytest.raises(MachineError, match="Not a directory"):
        load("cora")


def test_damaged_raw_files_are_named(tolokers: Path) -> None:
    path = tolokers / "tolokers" / "raw" / "tolokers.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError) as caught:
        load("tolokers", root=tolokers)
    assert str(caught.value).startswith(f"{path.parent}: the raw files must be as their authors published them")
    assert str(caught.value).endswith("replace them with fresh copies")
