"""From options to an experiment, and a YAML file as the source of a command's defaults."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import yaml

from fastglt.errors import InputError, unknown_name
from fastglt.system.terminal import safe

if TYPE_CHECKING:
    from fastglt.runs.experiment import Experiment


_MOST = 1 << 18  # bytes of a config


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


def split_options(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``NAME=VALUE``; a dash in a name is as good as an underscore.

    >>> split_options(["swap-fraction=0.2", "start = random"])
    {'swap_fraction': '0.2', 'start': 'random'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign):
            raise InputError(f"--option must be NAME=VALUE (got '{text}')")
        name = name.replace("-", "_")
        if name in found:
            raise InputError(f"an option must be given once (got '{name}' twice)")
        found[name] = value
    return found


def as_file_name(dataset: str) -> str:
    """A dataset's name as a part of a folder's.

    >>> as_file_name("my/graph.npz"), as_file_name("synthetic:nodes=60")
    ('my_graph.npz', 'synthetic')
    """
    return re.sub(r"[^\w.-]", "_", dataset.partition(":")[0])


def build_experiment(
    *,
    training: dict[str, Any],
    options: dict[str, Any],
    graph_sparsity: float,
    weight_sparsity: float,
    **arguments: Any,
) -> "Experiment":
    """An experiment with the paper's budget and the method's published options for its dataset and model.

    What `training` and `options` say wins.
    """
    from dataclasses import asdict

    from fastglt.methods import Budget, Targets
    from fastglt.methods.settings import budget_for
    from fastglt.methods.settings.published import options_for
    from fastglt.runs.experiment import Experiment

    dataset, model = arguments["dataset"].lower(), arguments["model"]
    published = options_for(arguments.get("method", ""), dataset, model)
    defaults = asdict(budget_for(dataset, model))
    defaults["interval"] = min(defaults["interval"], training.get("denoise_epochs", defaults["interval"]))
    return Experiment(
        targets=Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity),
        budget=Budget(**{**defaults, **training}),
        options={**published, **options},
        **arguments,
    )


class _Texts(yaml.BaseLoader):
    """Reads values as they stand there, as they would stand on the command line: 1:30 is no number of minutes."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are there once."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str) or name in seen:
                got = f"'{name}' twice" if isinstance(name, str) else "a name that is no text"
                raise yaml.constructor.ConstructorError(None, None, got, node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.lower() in ("", "~", "null"))


def from_config(context: typer.Context) -> set[str]:
    """The options of a command that its config file has set, and not the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "DEFAULT_MAP"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let a YAML file set a command's defaults; what is on the command line wins."""
    if path is None or context.resilient_parsing:
        return path
    values = _load(path)
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
        defaults[option] = None if _is_nothing(value) else _as_text(value, several=several)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _load(path: Path) -> dict[str, Any]:
    """What a YAML file maps names to; whatever is wrong with it is one line."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise InputError(f"the config '{path}' must have at most {_MOST:,} bytes (got more)")
        values = yaml.load(content.decode(), _Texts)  # it makes nothing but texts
    except OSError as error:
        raise InputError(f"cannot read the config '{path}' ({error.strerror})") from None
    except RecursionError:
        raise InputError(
            f"the config '{path}' must be YAML (got lists or mappings too deep in each other)"
        ) from None
    except InputError:
        raise
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
        LookupError,
        AttributeError,
    ) as error:  # some slip out of PyYAML
        raise InputError(f"the config '{path}' must be YAML (got: {' '.join(str(error).split())})") from None
    values = {} if _is_nothing(values) else values
    if not isinstance(values, dict):
        raise InputError(f"the config '{path}' must map option names to values (got {type(values).__name__})")
    return values


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
