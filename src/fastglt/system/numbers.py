"""Numbers in what others have written, where anything may stand."""

import math
from typing import Any


def real(value: Any) -> float | None:
    """A value of JSON as a number; None for NaN, what is too large, and what is none.

    >>> real(3), real("3"), real(True), real(float("nan"))
    (3.0, None, None, None)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number of any size
        return None
    return None if math.isnan(found) else found
