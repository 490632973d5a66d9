"""What a process imports of which others are copies."""

from pathlib import Path

from fastglt import kernels


def test_all_loops_are_there() -> None:
    from fastglt.kernels import _ahead

    names = {path.stem for path in Path(kernels.__file__).parent.glob("_*loops.py")}
    assert len(names) > 5
    assert names <= set(vars(_ahead))
