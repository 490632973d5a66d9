"""A YAML file as the source of a command's defaults."""

from pathlib import Path

import typer
import yaml

from fastglt.errors import InputError, unknown_name


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let a YAML file set a command's defaults; what is on the command line wins."""
    if path is None or context.resilient_parsing:
        return path
    try:
        values = yaml.safe_load(path.read_text()) or {}
    except OSError as error:
        raise InputError(f"cannot read the config '{path}' ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"the config '{path}' must be YAML (got: {' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise InputError(f"the config '{path}' must map option names to values (got {type(values).__name__})")
    options = {
        option.lstrip("-").replace("-", "_"): str(parameter.name)
        for parameter in context.command.params
        for option in parameter.opts
        if parameter.name not in ("config", "help")
    }
    defaults = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in options:
            raise unknown_name(f"option in '{path}'", name, options)
        defaults[options[name]] = value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path
