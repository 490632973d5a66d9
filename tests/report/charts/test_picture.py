import json
import re
import sys
from pathlib import Path

import pytest

from fastglt.errors import InputError, MachineError
from fastglt.report.charts import Picture
from fastglt.report.charts.scores import side_by_side
from fastglt.report.charts.theme import DARK, PALETTE

ROWS = [
    {"method": "a <b>", "score": score, "mean": 80.0, "low": 79.0, "high": 81.0, "about": f"{score} 80"}
    for score in ("dense", "alone")
]


@pytest.fixture(scope="module")
def picture() -> Picture:
    return side_by_side(ROWS, metric="accuracy", title="Two <scores>")


def test_a_picture_is_saved_by_its_ending(picture: Picture, tmp_path: Path) -> None:
    begins = {"a.svg": b"<svg", "a.png": b"\x89PNG", "a.pdf": b"%PDF", "a.json": b"{"}
    for name, start in begins.items():
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert json.loads((tmp_path / "a.json").read_text())["data"]["values"] == ROWS


def test_another_ending_is_refused(picture: Picture, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.svg, \.png, \.pdf, \.json \(got '.*a\.gif'\)"):
        picture.save(tmp_path / "a.gif")


def test_names_are_text_in_the_drawing(picture: Picture) -> None:
    drawn = picture.svg()
    assert "<b>" not in drawn
    assert "a &lt;b&gt;" in drawn
    assert "Two &lt;scores&gt;" in drawn


def test_the_dark_one_has_the_partners_of_all_colours(picture: Picture) -> None:
    drawn = picture.svg(dark=True)
    assert not set(re.findall("#[0-9a-f]{6}", drawn)) & set(DARK)
    assert DARK[PALETTE[0]] in drawn


def test_it_is_as_wide_as_asked_for(picture: Picture) -> None:
    for width in (340, 700):
        assert f'width="{width}"' in picture.svg(width=width)


def test_in_a_notebook_it_shows_itself(picture: Picture) -> None:
    assert "<svg" in picture._repr_html_()


def test_without_the_library_it_says_what_to_install(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MachineError, match=r"pip install 'fastglt\[report\]'"):
        picture.svg()
