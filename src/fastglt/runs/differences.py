"""How the settings of two runs differ, in the words of the command line."""

from collections.abc import Iterator, Mapping
from typing import Any

Values = Mapping[str, Any]
_MOST = 4  # that are told
_DATA = {
    "graph": "edges",
    "features": "features",
    "labels_and_split": "labels or split",
}  # digests, which say nothing
_CODE = {"code": "the method's code", "task_code": "the task's code", "model_code": "the model's code"}
_OPTIONS = {
    "model.name": "--model",
    "fastglt": "fastglt's version",
    "backend": "FASTGLT_BACKEND",
    "dense": "its own dense twin",
}
_INNER = {"model": "--model-option", "options": "--option", "from": "the ticket's"}
_UNTOLD = ("model.in_channels", "model.out_channels", "model.seed")  # follow from others


def flat(settings: Values) -> dict[str, Any]:
    """Settings one below the other: a model's and a method's options with a dot before them.

    >>> flat({"seed": 0, "model": {"hidden": 4}})
    {'seed': 0, 'model.hidden': 4}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= (
            {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, Mapping) else {name: value}
        )
    return found


def differing(*all_settings: Values) -> list[str]:
    """The names under which flat settings have not all the same value, in their order."""
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    first = all_settings[0]
    return [name for name in names if any(one.get(name) != first.get(name) for one in all_settings[1:])]


def told(there: Values, here: Values) -> str:
    """What differs, each as an option with its value there and here.

    >>> told({"seed": 0, "model": {"hidden": 512}}, {"seed": 1, "model": {"hidden": 16}})
    '--seed 0 there, 1 here; --hidden 512 there, 16 here'
    """
    old, new = flat(there), flat(here)
    names = differing(new, old)
    lines = list(dict.fromkeys(_lines([name for name in names if name not in _UNTOLD] or names, old, new)))
    rest = len(lines) - _MOST
    return "; ".join([*lines[:_MOST], *([f"and {rest} more"] if rest > 0 else [])])


def _lines(names: list[str], old: Values, new: Values) -> Iterator[str]:
    """The graph first: whoever takes another one is not helped by all that follows from it."""
    for name in sorted(names, key=lambda name: name != "dataset" and name not in _DATA):
        if name in _DATA:
            if not {"dataset", "split_seed"} & set(names):
                yield f"the {_DATA[name]} of {new.get('dataset', 'the graph')} are others there"
        elif name in _CODE:
            yield f"{_CODE[name]} is another there"
        else:
            yield f"{option_of(name)} {_value(old, name)} there, {_value(new, name)} here"


def option_of(name: str) -> str:
    """The option of the command line that decides a setting.

    >>> option_of("graph_sparsity"), option_of("model.heads"), option_of("options.ramp")
    ('--graph-sparsity', '--model-option heads', '--option ramp')
    """
    part, dot, inner = name.partition(".")
    if name in _OPTIONS:
        return _OPTIONS[name]
    if dot and (part, inner) != ("model", "hidden"):
        return f"{_INNER.get(part, part)} {inner}"
    return f"--{(inner or part).replace('_', '-')}"


def _value(settings: Values, name: str) -> str:
    return str(settings[name]) if name in settings else "not given"
