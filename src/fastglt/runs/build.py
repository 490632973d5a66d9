"""From what a user says to an experiment: whatever was left open takes its published value."""

from collections.abc import Mapping
from typing import Any

from fastglt.data.loading import intended_task
from fastglt.methods import Targets
from fastglt.methods.base import WEIGHTS
from fastglt.methods.settings import network_for, with_defaults
from fastglt.methods.settings.defaults import SomeBudget
from fastglt.methods.teaching import Distill, with_teacher
from fastglt.runs.experiment import Experiment


def build_experiment(
    *,
    training: SomeBudget,
    task: str | None = None,
    distill: Distill = None,
    options: Mapping[str, Any],
    graph_sparsity: float,
    weight_sparsity: float,
    structure: str = WEIGHTS,
    hidden: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Experiment:
    """An experiment with what was published for its dataset and model: budget, the method's options, the network.

    What `training`, `distill`, `options`, `hidden` and `model_options` say wins; without a task it is the one that
    the data is for. `arguments` are the experiment's own.
    """
    names = (arguments.get("method", ""), arguments["dataset"], arguments["model"])
    budget, chosen = with_defaults(*names, budget=training, options=options)
    width, of_model = network_for(*names[1:], hidden=hidden, options=model_options)
    return Experiment(
        task=task or intended_task(arguments["dataset"]),
        targets=Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity, structure=structure),
        budget=with_teacher(budget, distill),
        options=chosen,
        hidden=width,
        model_options=of_model,
        **arguments,
    )
