"""JSON that may come from anybody: whatever is wrong with it is one ValueError."""

import json
from typing import Any

DEPTH = 32  # of lists and objects in each other; ours have five at most


def loads(text: str | bytes) -> Any:
    """The values of a JSON text.

    >>> loads('{"seed": [0, 1]}')
    {'seed': [0, 1]}
    >>> loads("[" * 100 + "]" * 100)
    Traceback (most recent call last):
        ...
    ValueError: JSON nested at most 32 deep expected
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, AttributeError) as error:
        raise ValueError(f"a JSON text expected ({error})") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH):
        inner = [part for part in level if isinstance(part, list | dict)]
        level = [child for part in inner for child in (part.values() if isinstance(part, dict) else part)]
        if not level:
            return
    if any(isinstance(part, list | dict) for part in level):
        raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"JSON nested at most {DEPTH} deep expected")
