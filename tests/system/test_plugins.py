import sys
from fractions import Fraction
from pathlib import Path

import pytest

from fastglt import InputError
from fastglt.methods import FastGLT
from fastglt.system.plugins import is_ours, load_class, place_of
from tests.conftest import OwnModule


def test_what_comes_with_fastglt() -> None:
    assert (is_ours(FastGLT), is_ours(Fraction)) == (True, False)


def test_where_another_process_finds_a_class() -> None:
    class Local:
        pass

    assert place_of(FastGLT) == "fastglt.methods.fastglt:FastGLT"
    assert place_of(Local) is None
    assert place_of(type("Scripts", (), {"__module__": "__main__"})) is None
    assert place_of(type("Fraction", (), {"__module__": "fractions"})) is None, "another one has that place"


def test_the_current_folder_comes_last(own_module: OwnModule) -> None:
    own_module("mine_alone", "class Mine: pass")
    before = [*sys.path]
    assert load_class("mine_alone:Mine", "method").__module__ == "mine_alone"
    assert sys.path == [*before, str(Path.cwd())]
    assert load_class("fractions:Fraction", "method") is Fraction, "what is installed needs no file here"


def test_a_module_in_a_folder_of_the_current_one_is_found(own_module: OwnModule, tmp_path: Path) -> None:
    for folder in ("mine_with", "mine_without"):
        (tmp_path / folder).mkdir()
        own_module(f"{folder}/deep", "class Mine: pass")
    own_module("mine_with/__init__", "")
    for folder in ("mine_with", "mine_without"):
        assert load_class(f"{folder}.deep:Mine", "method").__module__ == f"{folder}.deep"


@pytest.mark.parametrize("place", ["fractions:Fraction", "fractions:Mine", "sys:Mine", "json.mine:Mine"])
def test_a_file_that_another_module_hides_is_told(own_module: OwnModule, tmp_path: Path, place: str) -> None:
    """Also where the other module has a class of that name: which one is meant, nobody can tell."""
    (tmp_path / "json").mkdir()
    name = place.partition(":")[0].replace(".", "/")
    own = own_module(name, "class Mine: pass\nclass Fraction: pass")
    with pytest.raises(InputError, match="must not have the name of one that Python finds elsewhere") as refused:
        load_class(place, "method")
    assert f"'{own}'" in str(refused.value)


def test_a_module_of_ones_own_that_fails_is_not_taken_for_hidden(own_module: OwnModule) -> None:
    own_module("mine_fails", "1 / 0")
    with pytest.raises(InputError, match=r"must be importable \(got ZeroDivisionError"):
        load_class("mine_fails:Mine", "method")
