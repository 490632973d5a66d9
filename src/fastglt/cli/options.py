"""From options to an experiment, and a YAML file as the source of a command's defaults."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import yaml

from fastglt.errors import InputError, unknown_name

if TYPE_CHECKING:
    from fastglt.experiment import Experiment


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that a user has set."""
    return {name: value for name, value in values.items() if value is not None}


def build_experiment(
    *,
    training: dict[str, Any],
    graph_sparsity: float,
    weight_sparsity: float,
    **arguments: Any,
) -> "Experiment":
    """An experiment with the paper's budget for its dataset and model, except for what `training` says."""
    from dataclasses import asdict

    from fastglt.experiment import Experiment
    from fastglt.methods import Budget, Targets
    from fastglt.paper import budget_for

    defaults = asdict(budget_for(arguments["dataset"].lower(), arguments["model"]))
    defaults["interval"] = min(defaults["interval"], training.get("denoise_epochs", defaults["interval"]))
    return Experiment(
        targets=Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity),
        budget=Budget(**{**defaults, **training}),
        **arguments,
    )


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
