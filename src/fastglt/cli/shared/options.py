"""A method's options as they are written, and a YAML file as the source of a command's defaults."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from fastglt.errors import InputError, unknown_name
from fastglt.system.terminal import safe


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that a user has set."""
    return {name: value for name, value in values.items() if value is not None}


def method_options(
    method: str, texts: Sequence[str], *, beside: Mapping[str, Any], in_file: Collection[str] = ()
) -> dict[str, Any]:
    """What ``--option NAME=VALUE`` says, in the method's own types, beside options that have flags of their own.

    An option must be given once, but for what is `in_file`, a config: that gives way.
    """
    from fastglt.methods import lookup
    from fastglt.methods.options import read_options

    written, beside = split_options(texts), dict(beside)
    for name in sorted(set(written) & set(beside)):
        if (name in in_file) == ("option" in in_file):
            raise InputError(f"an option must be given once (got '{name}' twice)")
        (beside if name in in_file else written).pop(name)
    return {**beside, **read_options(lookup(method), written)}


def options_by_method(methods: str, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What ``--option METHOD.NAME=VALUE`` says of each of the methods, in their own types."""
    from fastglt.methods.variants import read_variants

    places = {variant.name: variant.place for variant in read_variants(methods).values()}
    written: dict[str, list[str]] = {}
    for text in texts:
        name, dot, rest = text.partition(".")
        if not dot or "=" in name:
            raise InputError(f"--option must be METHOD.NAME=VALUE (got '{text}')")
        if name.strip() not in places:
            raise unknown_name("method in --option", name.strip(), places)
        written.setdefault(name.strip(), []).append(rest)
    return {name: method_options(places[name], parts, beside={}) for name, parts in written.items()}


def model_options(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """What ``--model-option NAME=VALUE`` says, in the model's own types."""
    if not texts:
        return {}
    from fastglt.models import lookup
    from fastglt.models.options import read_options

    return read_options(lookup(model), split_options(texts, "--model-option"))


def task_options(task: str | None, dataset: str, texts: Sequence[str]) -> dict[str, Any]:
    """What ``--task-option NAME=VALUE`` says, in the types of the task that is named or that the data is for."""
    if not texts:
        return {}
    from fastglt.data.loading import intended_task
    from fastglt.tasks import DEFAULT, lookup
    from fastglt.tasks.options import read_options

    kind = lookup(task or intended_task(dataset) or DEFAULT)
    return read_options(kind, split_options(texts, "--task-option"))


def split_options(texts: Sequence[str], flag: str = "--option") -> dict[str, str]:
    """Names and values of ``NAME=VALUE``; a dash in a name is as good as an underscore.

    >>> split_options(["swap-fraction=0.2", "start = random"])
    {'swap_fraction': '0.2', 'start': 'random'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign):
            raise InputError(f"{flag} must be NAME=VALUE (got '{text}')")
        name = name.replace("-", "_")
        if name in found:
            raise InputError(f"an option must be given once (got '{name}' twice)")
        found[name] = value
    return found


def from_config(context: typer.Context) -> set[str]:
    """The options of a command that its config file has set, and not the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "DEFAULT_MAP"}


def asked_for(context: typer.Context) -> dict[str, str]:
    """What was given to a command, on its command line or in its config file, and how it is written there."""
    given = {}
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP"):
            is_option = parameter.opts[0].startswith("-")
            given[name] = parameter.opts[0] if is_option else getattr(parameter, "metavar", None) or name
    return given


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let a YAML file set a command's defaults; what is on the command line wins."""
    if path is None or context.resilient_parsing:
        return path
    from fastglt.cli.shared.config_file import is_nothing, load

    values = load(path)
    options = {
        option.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for option in parameter.opts
        if parameter.name not in ("config", "help")
    }
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in options:
            raise unknown_name(f"option in '{path}'", name, options)
        option = str(options[name].name)
        if option in defaults:
            raise InputError(f"an option must be given once (got '{name}' twice in '{path}')")
        _check_value(value, name, path)
        several = getattr(options[name], "multiple", False)
        defaults[option] = None if is_nothing(value) else _as_text(value, several=several)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _check_value(value: Any, name: str, path: Path) -> None:
    """An option is one text, or a list or a mapping of texts, that could be typed."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    for text in inner:
        if not isinstance(text, str):
            rule = f"'{name}' in the config '{path}' must be one value, or a list or a mapping of such"
            raise InputError(f"{rule} (got a {type(text).__name__} in it)")
        if safe(text) != text:
            raise InputError(f"'{name}' in the config '{path}' must be a text that can be typed (got {text!r})")


def _as_text(value: Any, *, several: bool) -> Any:
    """A list or a mapping of the file as it would stand on the command line.

    >>> _as_text([0, 2], several=False), _as_text({"ramp": 1, "start": "random"}, several=True)
    ('0,2', ['ramp=1', 'start=random'])
    """
    if isinstance(value, dict):
        value = [f"{name}={inner}" for name, inner in value.items()]
    if several:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value
