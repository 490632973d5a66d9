"""What a ticket's metadata must look like, checked before anything is done with it.

Metadata may come from anybody: with a checksum that fits, any JSON can stand there.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from fastglt.methods.base import Budget
from fastglt.models import BACKBONES
from fastglt.models.decoders import NAMES
from fastglt.models.links import KEY

_MOST_DIMENSIONS = 8
_WEIGHTS = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
}
_SOFT_MASKS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}


def check_header(header: Mapping[str, Any]) -> None:
    """Refuse metadata of other types than fastglt writes, with a ValueError."""
    for name, (kind, fits) in _RULES.items():
        if not fits(header[name]):
            raise ValueError(f"'{name}' must be {kind}")
    for name, (kind, fits) in _CONFIG.items():
        if not fits(header["config"].get(name)):
            raise ValueError(f"'config' must have a '{name}' that is {kind}")
    try:
        Budget(**header["config"]["budget"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"'config' must have a 'budget' that fastglt knows ({error})") from None
    _check_model(header["model"])


def _check_decoder(spec: Any) -> None:
    fits = isinstance(spec, dict) and spec.get("name") in NAMES
    if not fits or not all(_is_count(value) and value for name, value in spec.items() if name != "name"):
        raise ValueError(f"'model' must have a decoder that is one of {', '.join(NAMES)}, with counts")


def _check_model(spec: Mapping[str, Any]) -> None:
    if KEY in spec:
        _check_decoder(spec[KEY])
    if spec["name"] == "pyg":
        if not _is_text(spec["class"]) or not _is_list(spec["prunable"], _is_text):
            raise ValueError("'model' must name a class and what of it is prunable")
        return
    known = BACKBONES.get(spec["name"])
    if known is None or known.tried_out:  # whose options are whatever its owner takes
        return
    parameters = inspect.signature(known).parameters
    for name, value in spec.items():
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        if default is not inspect.Parameter.empty and not _is_like(value, default):
            raise ValueError(f"{name} of the kind of {default!r} expected (got {value!r})")


def check_tensors(tensors: Mapping[str, Tensor]) -> None:
    """Refuse numbers of other kinds than weights and soft masks have, with a ValueError."""
    for name, value in tensors.items():
        known = _SOFT_MASKS if name == "edge_scores" else _WEIGHTS
        if value.dtype not in known:
            raise ValueError(f"'{name}' must hold real numbers (got {value.dtype})")


def _is_like(value: Any, default: Any) -> bool:
    """Of the default's type; a whole number may stand for a real one."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return _is_number(value) and math.isfinite(value)
    return isinstance(value, type(default)) and (not isinstance(value, int) or _is_whole(value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**64


def _is_count(value: Any) -> bool:
    return _is_whole(value) and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _is_choice(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value) or _is_text(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_mapping(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


def _is_shape(value: Any) -> bool:
    return _is_list(value, _is_count) and len(value) <= _MOST_DIMENSIONS


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, str | bool) or _is_number(value)


_Rule = tuple[str, Callable[[Any], bool]]
_RULES: dict[str, _Rule] = {
    "edges": ("a count", _is_count),
    "shapes": ("shapes by the names of weights", lambda value: _is_mapping(value, _is_shape)),
    "model": ("a network's spec", lambda value: _is_mapping(value, _is_plain) and _is_text(value.get("name"))),
    "config": ("a mapping", lambda value: _is_mapping(value, _is_plain)),
    "seed": ("a whole number", _is_whole),
    "scores": ("numbers by name", lambda value: _is_mapping(value, lambda one: one is None or _is_number(one))),
    "graph_fingerprint": ("a text", _is_text),
    "feature_fingerprint": ("a text", _is_text),
    "initial_hash": ("a text", _is_text),
    "initial_from": ("recipe or file", lambda value: value in ("recipe", "file")),
    "versions": ("texts by name", lambda value: _is_mapping(value, _is_text)),
}
_CONFIG: dict[str, _Rule] = {
    "method": ("a text", _is_text),
    "options": ("a mapping", lambda value: isinstance(value, dict)),
    "budget": ("numbers, words and true or false by name", lambda value: _is_mapping(value, _is_choice)),
    "metric": ("a text", _is_text),
    "task": ("a text", lambda value: value is None or _is_text(value)),
    "findings": ("a mapping", lambda value: value is None or isinstance(value, dict)),
    "task_options": ("a mapping", lambda value: value is None or isinstance(value, dict)),
    "inductive": ("a mapping", lambda value: value is None or isinstance(value, dict)),
    "edge_values": ("a text", lambda value: value is None or _is_text(value)),
}
