"""What a forward pass computes, step by step: for counting its cost and for telling which weight reads what."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Linear:
    """A product with a weight matrix, from some units to others."""

    layer: str
    weight: str
    reads: str  # the units its rows stand for: "features", or what another product writes
    writes: str  # the units its columns stand for
    bias: str | None = None
    per_pair: bool = False  # its rows are pairs of nodes, and not nodes

    @property
    def on_features(self) -> bool:
        """The input is the data's features, which may be sparse."""
        return self.reads == "features"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Everything it reads that is learnt."""
        return (self.weight,) if self.bias is None else (self.weight, self.bias)


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Messages of some width along edges, and from each node to itself."""

    layer: str
    width: int
    parameters: tuple[str, ...]
    heads: int = 1  # coefficients of each message


@dataclass(frozen=True, kw_only=True)
class Attention:
    """The attention logits of each edge's two ends for each head, and their softmax."""

    layer: str
    product: Linear  # what it looks at
    parameters: tuple[str, str]  # a vector for each head: of the sender, of the receiver


Operation = Linear | Aggregation | Attention
