"""A task's options: those of its dataclass's fields that it names, with the comments that stand beside them."""

import typing
from collections.abc import Mapping
from typing import Any

from fastglt.system.options import Option, check_names, field_comments, read_values
from fastglt.tasks.base import Task


def options_of(task: type[Task]) -> dict[str, Option]:
    """The options of a task by name, in their order."""
    hints, comments = typing.get_type_hints(task), dict[str, str]()
    for kind in reversed(task.__mro__):
        if issubclass(kind, Task):
            comments |= field_comments(kind)
    fields = {name: task.__dataclass_fields__[name] for name in task.option_names}
    return {
        name: Option(name=name, type=hints[name], default=one.default, about=comments.get(name, ""))
        for name, one in fields.items()
    }


def read_options(task: type[Task], texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of the right types from what a person wrote."""
    return read_values(options_of(task), texts, f"task '{task.name}'")


def check_options(task: type[Task], options: Mapping[str, Any]) -> None:
    """Refuse an option that a task has not, with those that it has."""
    check_names(task.option_names, options, f"task '{task.name}'")
