"""From what a user says to an experiment: whatever was left open takes its published value."""

from collections.abc import Mapping
from typing import Any

from fastglt.data.loading import intended_task
from fastglt.methods import Targets
from fastglt.methods.base import WEIGHTS
from fastglt.methods.settings import with_defaults
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
    **arguments: Any,
) -> Experiment:
    """An experiment with the paper's budget and the method's published options for its dataset and model.

    What `training`, `distill` and `options` say wins; without a task it is the one that the data is for. `arguments`
    are the experiment's own.
    """
    names = (arguments.get("method", ""), arguments["dataset"], arguments["model"])
    budget, chosen = with_defaults(*names, budget=training, options=options)
    return Experiment(
        task=task or intended_task(arguments["dataset"]),
        targets=Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity, structure=structure),
        budget=with_teacher(budget, distill),
        options=chosen,
        **arguments,
    )
