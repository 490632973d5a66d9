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
from fastglt.graphs.parts import Part
from fastglt.tasks.metrics import Metric

if TYPE_CHECKING:
    from torch_geometric.data import Data

OutputsOf = Callable[[Tensor | None], Tensor]  # a network's outputs for some targets (None: for all nodes)


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

    nodes: Tensor | None  # whose outputs are needed, node ids or pairs of them [targets, 2]; None: everybody's

    def pick(self, outputs: Tensor) -> Tensor:
        """The step's rows among the outputs of all nodes."""
        return outputs if self.nodes is None else outputs[self.nodes]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """What a network is trained for: the contract that every task keeps.

    A task is a value: graph, features, labels and split, checked and prepared once. Its *targets* are what is
    predicted for: nodes, or pairs of nodes. Fields that `option_names` lists are options, which a user may set.
    """

    name: ClassVar[str]  # in files and options
    metrics: ClassVar[tuple[Metric, ...]]  # by which it can be scored, its default first
    answer: ClassVar[str]  # what is predicted, in one word: class, value, …
    answers: ClassVar[str]  # the same for several
    of_pairs: ClassVar[bool] = False  # whether targets are pairs of nodes
    option_names: ClassVar[tuple[str, ...]] = ()  # the fields that a user may set
    answer_type: ClassVar[Any] = float  # the plain type of what is predicted for one node, as `listed` gives it

    graph: Graph  # along which messages go
    x: Features
    metric: str

    @classmethod
    @abstractmethod
    def from_data(
        cls, data: "Data", *, metric: str | None = None, directed: bool | None = None, **options: Any
    ) -> Self:
        """Check a PyG `Data` and prepare it; the data itself is not changed.

        None: the default metric; directed if the data is. `options` are the task's own.
        """

    @classmethod
    @abstractmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, Tensor],
        *,
        metric: str | None = None,
        directed: bool | None = None,
        **options: Any,
    ) -> Self:
        """The task from named tensors, without PyG; x may be sparse as in `Features`.

        `directed` is said of graphs whose directions count each on its own; None: if an edge has no reverse.
        """

    @classmethod
    def message_data(cls, data: "Data", **options: Any) -> "Data":
        """The data as networks see it: without edges that are held back to be predicted."""
        return data

    @property
    def options(self) -> dict[str, Any]:
        """The task's own options, where they are not as usual; plain values."""
        fields = {name: self.__dataclass_fields__[name] for name in self.option_names}
        return {name: getattr(self, name) for name, one in fields.items() if getattr(self, name) != one.default}

    @property
    def decoder(self) -> dict[str, Any] | None:
        """What a network needs after its last layer to answer for pairs, as `models.decoders.make_decoder` takes
        it; None: a row of a node is the answer.
        """
        return None

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
        """How many numbers a network gives for each target, at least."""

    @property
    @abstractmethod
    def has_test(self) -> bool:
        """Whether there is anything to be tested on."""

    @abstractmethod
    def steps(self, seed: int) -> Sequence[Step]:
        """The steps of an epoch, drawn from a seed of the epoch's own. Full batch is one step."""

    def step_in(self, part: Part, seed: int) -> Step | None:
        """The step on a part of the graph: the training targets in it, by their ids in the whole graph.

        None: it has none. A task that leaves this out cannot be trained by parts.
        """
        raise InputError(f"the task '{self.name}' cannot be trained by parts of the graph; use parts 1")

    @abstractmethod
    def loss(self, outputs: Tensor, step: Step) -> Tensor:
        """The loss of a step's outputs."""

    @abstractmethod
    def evaluate(self, outputs_of: OutputsOf) -> Scores:
        """Validation and test scores, from one pass of the network."""

    @property
    def overview(self) -> Tensor | None:
        """The targets that stand for everything: what a teacher is asked about, and methods that look beyond the
        training targets. None: every node.
        """
        return None

    @abstractmethod
    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """How far a student's outputs for the overview are from its teacher's; the mean over what is predicted."""

    @classmethod
    @abstractmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """What outputs predict: a class, a value, …; one entry for each row."""

    @classmethod
    def listed(cls, decided: Tensor) -> list[Any]:
        """What was decided as plain values, one for each row."""
        found: list[Any] = decided.tolist()
        return found

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

    def sizes(self) -> dict[str, str]:
        """What a person is told of the split, in words: training, validation, test; nothing where nobody says."""
        return {}

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

    @property
    def edge_targets(self) -> Tensor | None:
        """Whose outputs `agreement` needs; None: every node's."""
        return None

    def agreement(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """How far the predictions along each edge agree, in [0, 1]; and whether both its ends are in one group."""
        shares, groups = self.distribution(outputs), self.groups(outputs)
        source, target = groups[self.graph.edges]
        return edge_agreement(self.graph, shares), source == target

    @classmethod
    def require(cls, *views: str) -> None:
        """Refuse a task that has no answer to some of these questions, named as the methods above."""
        for view in views:
            if getattr(cls, view) is getattr(Task, view):
                raise _lacks(cls, view)


_AT_A_TIME = 1 << 18  # edges


def edge_agreement(graph: Graph, shares: Tensor) -> Tensor:
    """How far the predictions for an edge's two ends agree, in [0, 1]: the product of their shares of each class.

    >>> graph = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> edge_agreement(graph, torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.25, 0.75]])).tolist()
    [1.0, 0.25]
    """
    parts = torch.split(graph.edges, _AT_A_TIME, dim=1)  # no tensor of edges × classes for a large graph
    return torch.cat([(shares[source] * shares[target]).sum(-1) for source, target in parts])


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
