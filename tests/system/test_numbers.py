import math
from typing import Any

import pytest

from fastglt.system.numbers import real


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0),
        (0.25, 0.25),
        (math.inf, math.inf),
        (math.nan, None),
        (10**400, None),
        (True, None),
        ("3", None),
        ([3], None),
        (None, None),
    ],
)
def test_a_number_is_one_and_all_else_is_none(value: Any, expected: float | None) -> None:
    assert real(value) == expected
