from fractions import Fraction

from fastglt.methods import FastGLT
from fastglt.system.plugins import is_ours, place_of


def test_what_comes_with_fastglt() -> None:
    assert (is_ours(FastGLT), is_ours(Fraction)) == (True, False)


def test_where_another_process_finds_a_class() -> None:
    class Local:
        pass

    assert place_of(FastGLT) == "fastglt.methods.fastglt:FastGLT"
    assert place_of(Local) is None
    assert place_of(type("Scripts", (), {"__module__": "__main__"})) is None
    assert place_of(type("Fraction", (), {"__module__": "fractions"})) is None, "another one has that place"
