"""What a task is: what a network predicts, for what, how it is trained for it and how it is scored.

Training, methods, judge, deployment and the command line ask a `Task` and nobody else what outputs mean. A new
task is one class: `NodeTask` has all that tasks with a label for each node share.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from fastglt.errors import InputError, unknown_name
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.tasks.metrics import Metric

if TYPE_CHECKING:
    from torch_geometric.data import Data

OutputsOf = Callable[[Tensor | None], Tensor]  # a network's outputs for some nodes (None: for all)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How a network does after an epoch."""

    val: float
    val_loss: float
    test: float

    def better_than(self, other: "Scores") -> bool:
        """Higher validation score; among equals, lower validation loss. Test scores have no say."""
        return (self.val, -self.val_loss) > (other.val, -other.val_loss)


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One step of the optimiser: what the network computes for it. The task knows its loss."""

    nodes: Tensor | None  # whose outputs are needed; None: everybody's

    def pick(self, outputs: Tensor) -> Tensor:
        """The step's rows among the outputs of all nodes."""
        return outputs if self.nodes is None else outputs[self.nodes]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """What a network is trained for: the contract that every task keeps.

    A task is a value: graph, features, labels and split, checked and prepared once.
    """

    name: ClassVar[str]  # in files and options
    metrics: ClassVar[tuple[Metric, ...]]  # by which it can be scored, its default first
    answer: ClassVar[str]  # what is predicted, in one word: class, value, …
    answers: ClassVar[str]  # the same for several

    graph: Graph
    x: Features
    metric: str

    @classmethod
    @abstractmethod
    def from_data(cls, data: "Data", *, metric: str | None = None, directed: bool | None = None) -> Self:
        """Check a PyG `Data` and prepare it; the data itself is not changed.

        None: the default metric; directed if the data is.
        """

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], *, metric: str | None = None) -> Self:
        """The task from named tensors, without PyG; x may be sparse as in `Features`."""

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.x.device

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """The task on another device."""

    @property
    @abstractmethod
    def digests(self) -> dict[str, str]:
        """What tells this graph, these features, and these labels and split from all others."""

    @property
    def digest(self) -> str:
        """All of that in one."""
        return hashlib.sha256("".join(self.digests.values()).encode()).hexdigest()

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """How many numbers a network gives for each node, at least."""

    @property
    @abstractmethod
    def has_test(self) -> bool:
        """Whether there is anything to be tested on."""

    @abstractmethod
    def steps(self, seed: int) -> Sequence[Step]:
        """The steps of an epoch, drawn from a seed of the epoch's own. Full batch is one step."""

    @abstractmethod
    def loss(self, outputs: Tensor, step: Step) -> Tensor:
        """The loss of a step's outputs."""

    @abstractmethod
    def evaluate(self, outputs_of: OutputsOf) -> Scores:
        """Validation and test scores, from one pass of the network."""

    @abstractmethod
    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """How far a student's outputs for all nodes are from its teacher's; the mean over what is predicted."""

    @classmethod
    @abstractmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """What outputs predict: a class, a value, …; one entry for each row."""

    @classmethod
    def probabilities(cls, outputs: Tensor) -> Tensor | None:
        """The probability of each alternative; None where a task has no alternatives."""
        return None

    def facts(self) -> dict[str, Any]:
        """What a dry run tells about the data: plain values."""
        return {
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "features": self.x.num_features,
            self.answers: self.num_outputs,
        }

    @property
    def unlabelled(self) -> Tensor:
        """The nodes whose labels train nothing, for a teacher of these alone."""
        raise InputError(f"a task must say which nodes are trained on (got '{self.name}'); teach about all nodes")

    # What some methods ask besides. A task that has no answer leaves these out, and such methods refuse it.

    def groups(self, outputs: Tensor) -> Tensor:
        """The group, from 0, that each row is predicted to be in: its class."""
        raise _lacks(type(self), "groups")

    def distribution(self, outputs: Tensor) -> Tensor:
        """Each row as shares of the groups; the product of two rows is how far their predictions agree."""
        raise _lacks(type(self), "distribution")

    def certainty(self, outputs: Tensor) -> Tensor:
        """How sure the outputs are of what they predict, as one number that has a gradient."""
        raise _lacks(type(self), "certainty")

    @classmethod
    def require(cls, *views: str) -> None:
        """Refuse a task that has no answer to some of these questions, named as the methods above."""
        for view in views:
            if getattr(cls, view) is getattr(Task, view):
                raise _lacks(cls, view)


_VIEWS = {
    "groups": "into which groups predictions fall",
    "distribution": "how predictions are distributed over groups",
    "certainty": "how sure a prediction is",
}


def _lacks(task: type[Task], view: str) -> InputError:
    return InputError(
        f"the method needs a task that says {_VIEWS[view]} (got '{task.name}'); choose another method or task"
    )


def metric_of(kind: type[Task], name: str | None) -> Metric:
    """A task's metric of that name, in which a dash is as good as an underscore; None: its default."""
    known = {metric.name: metric for metric in kind.metrics}
    if name is None:
        return kind.metrics[0]
    name = name if name in known else name.replace("-", "_")
    if name not in known:
        raise unknown_name("metric", name, known)
    return known[name]
