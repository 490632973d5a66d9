"""The service of a ticket for links: what a client may ask of pairs, and what it gets."""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from fastglt.deploy import Predictor
from fastglt.errors import InputError
from fastglt.serve.limits import Limits
from fastglt.serve.requests import NewNodes, new_nodes_field, several, whole

_DIGITS = 6  # of a probability


class PairRequest(BaseModel):
    """Pairs of nodes; with new nodes these are there when links are predicted, and may be in pairs."""

    model_config = ConfigDict(extra="forbid")
    pairs: list[list[int]] = []
    ids: list[list[str]] = []
    new_nodes: NewNodes | None = None

    @model_validator(mode="after")
    def _check(self) -> "PairRequest":
        if not self.pairs and not self.ids:
            raise ValueError("pairs must be given, each a list of two nodes")
        return self


class PairResponse(BaseModel):
    """How likely each pair is a link, in the order asked for."""

    pairs: list[list[int]]
    probabilities: list[float] = Field(description="Of a link; as in training, where every other pair is one.")
    ticket: str | None = Field(description="SHA-256 of the ticket's file.")
    version: str = Field(description="Of fastglt.")


def pair_request_model(
    num_nodes: int, num_features: int, limits: Limits, *, named: bool = False
) -> type[PairRequest]:
    """The requests that one graph's service takes."""
    node = whole(num_nodes - 1 + limits.max_new_nodes)
    about = "Pairs of nodes: [[source, target], …]; their order does not matter."
    fields: dict[str, Any] = {
        "pairs": (several(several(node, 2, 2), 1, limits.max_nodes), Field([], description=about)),
        "new_nodes": new_nodes_field(num_nodes, num_features, limits),
    }
    text = several(several(Annotated[str, Field(strict=True)], 2, 2), 1 if named else 0, limits.max_nodes * named)
    fields["ids"] = (text, Field([], description="Pairs of ids, as in the graph's file, after `pairs`."))
    found: type[PairRequest] = create_model(
        "PairRequest", __base__=PairRequest, __doc__=PairRequest.__doc__, **fields
    )
    return found


@dataclass(frozen=True)
class PairPrediction:
    """How likely pairs are links."""

    pairs: list[list[int]]
    probabilities: list[float]

    def __len__(self) -> int:
        return len(self.pairs)


def answer_pairs(predictor: Predictor, rows: torch.Tensor, request: PairRequest) -> PairPrediction:
    """The probability of each pair; from the nodes' rows, or on the graph with new nodes."""
    pairs = torch.tensor(request.pairs)
    if request.new_nodes is None:
        predictor.check(pairs, pairs=True)
        outputs = predictor.decode(rows, pairs)
    else:
        grown = predictor.with_nodes(*request.new_nodes.tensors(predictor.x.num_features))
        outputs = grown.logits(pairs).cpu()
    if not bool(torch.isfinite(outputs).all()):
        raise InputError("the features of new nodes must give finite outputs (got infinity); use smaller ones")
    shares = predictor.task.probabilities(outputs.double())
    assert shares is not None
    return PairPrediction(request.pairs, shares[:, 1].round(decimals=_DIGITS).tolist())
