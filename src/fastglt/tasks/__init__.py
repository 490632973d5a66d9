"""What networks are trained for: one file per task, one line each in `TASKS`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from torch import Tensor

from fastglt.errors import InputError
from fastglt.system.plugins import add_to, check_subclass, find_in
from fastglt.tasks.base import Scores, Step, Task, metric_of
from fastglt.tasks.link_prediction import LinkPrediction
from fastglt.tasks.metrics import TITLES, Metric
from fastglt.tasks.multi_label import MultiLabel
from fastglt.tasks.node_classification import NodeClassification
from fastglt.tasks.nodes import NodeTask
from fastglt.tasks.options import check_options

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = [
    "DEFAULT",
    "TASKS",
    "LinkPrediction",
    "Metric",
    "MultiLabel",
    "NodeClassification",
    "NodeTask",
    "Scores",
    "Step",
    "Task",
    "check_metric",
    "kind_of",
    "known_metric",
    "lookup",
    "make_task",
    "name_for",
    "place_of",
    "register",
    "registered",
    "task_settings",
]

TASKS: dict[str, type[Task]] = {task.name: task for task in (NodeClassification, MultiLabel, LinkPrediction)}
DEFAULT = NodeClassification.name

AnyTask = TypeVar("AnyTask", bound=type[Task])


def register(task: AnyTask) -> AnyTask:
    """Add a task of your own, by its name; also as a decorator, above that of its dataclass."""
    check_subclass(task, Task, "task")
    add_to(TASKS, task, "task")
    for metric in task.metrics:
        TITLES.setdefault(metric.name, metric.title)
    return task


def lookup(name: str) -> type[Task]:
    """A task's class by its name, or by where it lives: ``module:Class``."""
    known = {place_of(task): task for task in TASKS.values()}
    return known[name] if name in known else find_in(TASKS, name, "task", register)


def registered(place: str) -> type[Task]:
    """The task that a file names, if it is known already: what a file says never has a module imported."""
    for task in TASKS.values():
        if place in (task.name, place_of(task)):
            return task
    rule = f"the ticket's task must be one of {', '.join(TASKS)} or a registered one (got '{place}')"
    raise InputError(
        f"{rule}; fastglt.register(its class) in Python or `fastglt --use module:Class …` makes it known"
    )


def name_for(y: object) -> str:
    """The name of the task that labels are for, where nobody says: several columns are many labels a node."""
    several = isinstance(y, Tensor) and y.dim() == 2 and y.shape[1] > 1
    return MultiLabel.name if several else DEFAULT


def kind_of(task: str | type[Task] | None, y: object = None) -> type[Task]:
    """A task's class, which may be given as it is; None: the one that the labels are for."""
    task = name_for(y) if task is None else task
    return lookup(task) if isinstance(task, str) else register(task)


def known_metric(task: type[Task], metric: str) -> str | None:
    """The metric that a dataset names, if the task has it; else None, which stands for the task's default."""
    return metric if metric in {known.name for known in task.metrics} else None


def check_metric(task: str | None, metric: str) -> None:
    """Refuse a metric that a task does not have; None: that no task has."""
    tasks = TASKS.values() if task is None else [lookup(task)]
    if not any(metric.replace("-", "_") == known.name for one in tasks for known in one.metrics):
        metric_of(next(iter(tasks)), metric)


def make_task(
    task: str | type[Task] | None,
    data: "Data",
    *,
    metric: str | None = None,
    directed: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Task:
    """A task by its name or class, from a PyG `Data`, with options of its own; None: what its labels are for."""
    kind = kind_of(task, getattr(data, "y", None))
    check_options(kind, options or {})
    return kind.from_data(data, metric=metric, directed=directed, **(options or {}))


def task_settings(task: Task) -> dict[str, Any]:
    """What a run's settings and a ticket say of their task: nothing of the default one, which older files have."""
    kind = type(task)
    named = {} if kind.name == DEFAULT else {"task": place_of(kind)}
    return {**named, **({"task_options": task.options} if task.options else {})}


def place_of(task: type[Task]) -> str:
    """What files call a task: its name, or of one from outside where it lives."""
    ours = task.__module__.partition(".")[0] == __name__.partition(".")[0]
    return task.name if ours else f"{task.__module__}:{task.__qualname__}"
