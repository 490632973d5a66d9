"""What a client may ask and what it gets: the service's OpenAPI description is made of these.

The limits and the graph's own numbers are part of the description, so that a client can know beforehand what will
be refused. Numbers must be numbers: "5", 5.0 or true are no node ids.
"""

from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag, create_model, model_validator
from torch import Tensor
from typing_extensions import TypeAliasType

from fastglt.serve.limits import Limits
from fastglt.tasks import Task

_LARGEST = 1e30  # of a feature; float32 ends at 3e38


class SparseFeatures(BaseModel):
    """The features of new nodes that are not zero: a list of indices and one of values for each node."""

    model_config = ConfigDict(extra="forbid")
    indices: list[list[int]]
    values: list[list[float]]

    @model_validator(mode="after")
    def _check(self) -> "SparseFeatures":
        lengths = [len(row) for row in self.indices], [len(row) for row in self.values]
        if lengths[0] != lengths[1]:
            raise ValueError("indices and values must have the same number of nodes, and of entries for each node")
        if any(len(set(row)) < len(row) for row in self.indices):
            raise ValueError("the indices of a node must be distinct")
        return self


class NewNodes(BaseModel):
    """Nodes that exist for this request only."""

    model_config = ConfigDict(extra="forbid")
    features: list[list[float]] | SparseFeatures
    edges: list[list[int]] = []

    def tensors(self, num_features: int) -> tuple[Tensor, Tensor]:
        """Their features, dense, and their edges as an edge_index."""
        edge_index = torch.tensor(self.edges, dtype=torch.int64).reshape(-1, 2).T.contiguous()
        if not isinstance(self.features, SparseFeatures):
            return torch.tensor(self.features, dtype=torch.float32).reshape(-1, num_features), edge_index
        x = torch.zeros(len(self.features.indices), num_features, dtype=torch.float32)
        for row, indices, values in zip(x, self.features.indices, self.features.values, strict=True):
            row[indices] = torch.tensor(values, dtype=torch.float32)
        return x, edge_index


class PredictRequest(BaseModel):
    """Nodes of the graph, new nodes, or both: then the new ones are there when the others are predicted."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"anyOf": [{"required": ["nodes"]}, {"required": ["new_nodes"]}]}
    )
    nodes: list[int] = []
    new_nodes: NewNodes | None = None
    probabilities: bool = False

    @model_validator(mode="after")
    def _check(self) -> "PredictRequest":
        if not self.nodes and self.new_nodes is None:
            raise ValueError("nodes, new_nodes or both must be given")
        return self


class NamedPredictRequest(PredictRequest):
    """A request where a file gives nodes ids: they may be asked for by these, after those asked for by number."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [name]} for name in ("nodes", "ids", "new_nodes")]}
    )
    ids: list[str] = []

    @model_validator(mode="after")
    def _check(self) -> "NamedPredictRequest":
        if not self.nodes and not self.ids and self.new_nodes is None:
            raise ValueError("nodes, ids, new_nodes or several of them must be given")
        return self


class PredictResponse(BaseModel):
    """The classes of the nodes that were asked for, in their order, then those of the new nodes."""

    nodes: list[int]
    classes: list[int]
    probabilities: list[list[float]] | None = Field(description="A row for each node, if they were asked for.")
    ticket: str | None = Field(description="SHA-256 of the ticket's file.")
    version: str = Field(description="Of fastglt.")


class NamedPredictResponse(PredictResponse):
    """A response with what a file calls nodes and classes."""

    ids: list[str | None] = Field(description="Of each node; a new one has none.")
    labels: list[str] | None = Field(description="Of the classes, if the file has those of the ticket's run.")


def response_model(task: type[Task], *, named: bool) -> type[BaseModel]:
    """What comes back: classes or, of a task that predicts something else, that under its own name."""
    base = NamedPredictResponse if named else PredictResponse
    if task.answers == "classes":
        return base
    kept = {name: (field.annotation, field) for name, field in base.model_fields.items() if name != "classes"}
    kept.pop(task.answers, None)  # what classes are called has no place beside it
    fields: dict[str, Any] = {task.answers: (list[task.answer_type], ...), **kept}  # type: ignore[name-defined]
    return create_model(base.__name__, __doc__=f"The {task.answers} of the nodes that were asked for.", **fields)


class Refusal(BaseModel):
    """Why there is no answer."""

    detail: str


def request_model(
    num_nodes: int, num_features: int, limits: Limits, *, named: bool = False
) -> type[PredictRequest]:
    """The requests that one graph's service takes."""
    base = NamedPredictRequest if named else PredictRequest
    node = whole(num_nodes - 1)
    fields: dict[str, Any] = {
        "nodes": (several(node, 1, limits.max_nodes), Field([], description="Ids of nodes of the graph.")),
        "probabilities": (
            Annotated[bool, Field(strict=True)],
            Field(False, description="Whether the answer has the probability of each class."),
        ),
    }
    fields["new_nodes"] = new_nodes_field(num_nodes, num_features, limits)
    if named:
        names = several(Annotated[str, Field(strict=True)], 1, limits.max_nodes)
        fields["ids"] = (names, Field([], description="Ids of nodes, as in the graph's file."))
    found: type[PredictRequest] = create_model("PredictRequest", __base__=base, __doc__=base.__doc__, **fields)
    return found


def new_nodes_field(num_nodes: int, num_features: int, limits: Limits) -> tuple[Any, Any]:
    """What a request may say of new nodes, if it may."""
    if not limits.max_new_nodes:
        return (None, Field(None, description="This service takes none."))
    new = _new_nodes_model(num_nodes, num_features, limits)
    return (new, Field(None, description=f"Numbered from {num_nodes} on."))


def _new_nodes_model(num_nodes: int, num_features: int, limits: Limits) -> type[NewNodes]:
    value = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)]
    index = whole(num_features - 1)
    most = limits.max_new_nodes
    dense: Any = TypeAliasType("DenseFeatures", several(several(value, num_features, num_features), 1, most))
    sparse = create_model(
        "SparseFeatures",
        __base__=SparseFeatures,
        __doc__=SparseFeatures.__doc__,
        indices=(several(several(index, 0, num_features), 1, most), ...),
        values=(several(several(value, 0, num_features), 1, most), ...),
    )
    features: Any = Annotated[
        Annotated[dense, Tag("dense")] | Annotated[sparse, Tag("sparse")],
        Discriminator(lambda given: "dense" if isinstance(given, list) else "sparse"),
    ]
    edge = several(whole(num_nodes + most - 1), 2, 2)
    return create_model(
        "NewNodes",
        __base__=NewNodes,
        __doc__=NewNodes.__doc__,
        features=(features, Field(description="A list of numbers for each new node; or its non-zeros.")),
        edges=(
            several(edge, 0, limits.max_new_edges),
            Field([], description="Pairs of node ids, at least one of them new: [source, target]."),
        ),
    )


def whole(most: int) -> Any:
    """A whole number from 0 on."""
    return Annotated[int, Field(strict=True, ge=0, le=most)]


def several(kind: Any, least: int, most: int) -> Any:
    """A list; the first error ends its reading, so that a million of them cost no more than one."""
    return Annotated[list[kind], FailFast(), Field(min_length=least, max_length=most)]
