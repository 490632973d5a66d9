import time
from pathlib import Path

import pytest

from fastglt.data import catalogue
from fastglt.data.named import NAMED


def test_every_named_set_is_listed_with_its_size() -> None:
    entries = {entry.name: entry for entry in catalogue()}
    assert list(entries) == list(NAMED)
    cora = entries["cora"]
    assert (cora.nodes, cora.edges, cora.features, cora.classes) == (2708, 5278, 1433, 7)
    assert entries["tolokers"].metric == "roc_auc"
    assert entries["synthetic"].nodes is None
    assert all(entry.about and "\n" not in entry.about for entry in entries.values())


def test_the_catalogue_says_where_a_set_is(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path / "root" / "tolokers" / "raw", cache / "data" / "amazon" / "Photo" / "raw"):
        place.mkdir(parents=True)
    (tmp_path / "root" / "tolokers" / "raw" / "tolokers.npz").touch()
    (cache / "data" / "amazon" / "Photo" / "raw" / "amazon_electronics_photo.npz").touch()
    monkeypatch.setenv("FASTGLT_DATA", str(tmp_path / "root"))
    start = time.perf_counter()
    where = {entry.name: entry.where for entry in catalogue()}
    assert time.perf_counter() - start < 1
    assert where["digits"] == where["synthetic"] == "built in"
    assert where["tolokers"] == f"in {tmp_path / 'root'}"
    assert where["amazon-photo"] == "in cache"
    assert where["cora"] == "would be downloaded"
    assert {entry.name: entry.where for entry in catalogue(tmp_path)}["tolokers"] == "would be downloaded"
