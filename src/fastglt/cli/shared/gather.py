"""Options that belong together as one argument of several commands."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any, get_type_hints


def gather(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: each field becomes an option, and the command gets them back as one value.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 1
    >>> @gather
    ... def draw(size: Size, colour: str = "red") -> None:
    ...     print(size, colour)
    >>> print(inspect.signature(draw))
    (*, width: int = 1, colour: str = 'red') -> None
    >>> draw(width=2, colour="blue")
    Size(width=2) blue
    """
    signature = inspect.signature(command)
    groups: dict[str, type] = {
        name: hint
        for name, hint in get_type_hints(command).items()
        if isinstance(hint, type) and is_dataclass(hint)
    }

    @functools.wraps(command)
    def gathered(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        group = groups.get(parameter.name)
        parameters += [parameter.replace(kind=parameter.KEYWORD_ONLY)] if group is None else _parameters(group)
    gathered.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(gathered)["__signature__"] = signature.replace(parameters=parameters)
    return gathered


def _parameters(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default
