import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastglt import InputError, MachineError
from fastglt.kernels import Table
from fastglt.kernels.table import Steps

TUNED = Table(
    spmm=((64, "torch"), (math.inf, "numba")),
    sddmm=((8, "plain"), (512, "numba"), (math.inf, "torch")),
    matmul=((2.5, "torch"), (math.inf, "numba")),
    features=((0.5, "dense"), (math.inf, "sparse")),
)
AS_DICT = {
    "spmm": [[64, "torch"], [None, "numba"]],
    "sddmm": [[8, "plain"], [512, "numba"], [None, "torch"]],
    "matmul": [[2.5, "torch"], [None, "numba"]],
    "features": [[0.5, "dense"], [None, "sparse"]],
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this machine's table would be, in an empty cache folder."""
    monkeypatch.setenv("FASTGLT_CACHE", str(tmp_path))
    Table.of_machine.cache_clear()
    yield tmp_path / "kernels.json"
    Table.of_machine.cache_clear()


@pytest.mark.parametrize(
    ("size", "server"),
    [(1, "plain"), (8, "plain"), (8.5, "numba"), (512, "numba"), (513, "torch"), (math.inf, "torch")],
)
def test_a_size_is_served_by_the_first_step_that_reaches_it(size: float, server: str) -> None:
    assert TUNED.choose("sddmm", size) == server


def test_the_last_step_serves_the_rest() -> None:
    assert Table(spmm=((8, "torch"), (64, "plain"))).choose("spmm", 65) == "plain"


def test_each_kernel_has_its_own_steps() -> None:
    assert [TUNED.choose(kernel, 2) for kernel in AS_DICT] == ["torch", "plain", "torch", "sparse"]


@pytest.mark.parametrize(
    ("kernel", "steps", "servers"),
    [
        ("spmm", (), "numba, torch, plain"),
        ("spmm", ((64, "numba"), (8, "torch")), "numba, torch, plain"),
        ("spmm", ((64, "cuda"),), "numba, torch, plain"),
        ("sddmm", ((math.inf, "numba"), (8, "torch")), "numba, torch, plain"),
        ("matmul", ((8, "plain"),), "numba, torch"),
        ("features", ((8, "numba"),), "sparse, dense"),
    ],
)
def test_impossible_steps_are_refused(kernel: str, steps: Steps, servers: str) -> None:
    with pytest.raises(InputError) as refused:
        Table(**{kernel: steps})
    rule = f"the steps of '{kernel}' must have ascending limits and servers among {servers}"
    assert str(refused.value) == f"{rule} (got {steps})"


@pytest.mark.parametrize("table", [Table(), TUNED])
def test_a_table_comes_back_from_json(table: Table) -> None:
    assert Table.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == table


def test_json_values_by_hand() -> None:
    assert TUNED.to_dict() == AS_DICT


DAMAGED: list[tuple[Any, str]] = [
    (
        {name: AS_DICT[name] for name in ("spmm", "sddmm", "features")},
        r"steps for each kernel \(got: .*matmul",
    ),
    ({**AS_DICT, "spmm": [[64]]}, "steps for each kernel"),
    ({**AS_DICT, "spmm": [["wide", "numba"]]}, "steps for each kernel"),
    ({**AS_DICT, "spmm": 3}, "steps for each kernel"),
    ([], "steps for each kernel"),
    (None, "steps for each kernel"),
    ({**AS_DICT, "spmm": [[64, "cuda"]]}, "'spmm' must have ascending limits and servers"),
    ({**AS_DICT, "spmm": [[64, ["numba"]]]}, "'spmm' must have ascending limits and servers"),
    ({**AS_DICT, "spmm": [[None, "numba"], [8, "torch"]]}, "'spmm' must have ascending limits"),
    ({**AS_DICT, "spmm": []}, "'spmm' must have ascending limits"),
]


@pytest.mark.parametrize(("values", "message"), DAMAGED)
def test_other_values_are_no_table(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Table.from_dict(values)


def test_without_a_file_the_machine_has_the_table_that_comes_along(file: Path) -> None:
    assert Table.of_machine() == Table()
    assert not file.exists()


def test_a_saved_table_is_the_machines_from_now_on(file: Path) -> None:
    assert Table.of_machine() == Table()
    assert TUNED.save() == file
    assert json.loads(file.read_text()) == AS_DICT
    assert Table.of_machine() == TUNED
    Table().save()
    assert Table.of_machine() == Table()


def test_the_file_is_read_once(file: Path) -> None:
    TUNED.save()
    assert Table.of_machine() is Table.of_machine()


def test_a_forgotten_table_is_gone(file: Path) -> None:
    assert Table.forget() is None
    TUNED.save()
    assert Table.of_machine() == TUNED
    assert Table.forget() == file
    assert not file.exists()
    assert Table.of_machine() == Table()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", *(json.dumps(values).encode() for values, _ in DAMAGED)]
)
def test_a_damaged_file_is_told_with_its_remedy(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        Table.of_machine()
    assert str(refused.value).startswith(f"'{file}' is damaged (")
    assert str(refused.value).endswith("); run `fastglt tune` again or remove it")
    TUNED.save()  # as `fastglt tune` does
    assert Table.of_machine() == TUNED


def test_a_file_that_cannot_be_read_is_the_machines_fault(file: Path) -> None:
    file.mkdir()
    with pytest.raises(MachineError, match=r"cannot read .*kernels\.json.*it is a folder"):
        Table.of_machine()
