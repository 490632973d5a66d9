"""A backbone's twin: the same network from PyG's own layers, to measure against and to hand out.

It knows nothing of our kernels, so that a process can run it as any PyG script would.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.system.plugins import load_class


class StockNetwork(nn.Module):
    """PyG layers. It serves one graph, since GCN's keep the normalised graph they have seen first.

    Its forward takes x and the graph as PyG does: `edge_index`, or a sparse matrix.
    """

    adds_loops: ClassVar[bool]  # whether the layers add self-loops of their own
    unused: ClassVar[tuple[str, ...]] = ("name", "seed")  # what a backbone's spec says that PyG has no use for
    names: dict[str, str]  # each parameter of our backbone, and its counterpart here

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "StockNetwork":
        """The twin of the backbone with that spec, with weights of its own."""
        return cls(**{name: value for name, value in spec.items() if name not in cls.unused})

    def translated(self, backbone: nn.Module) -> dict[str, Tensor]:
        """The state of the backbone that this is the twin of, under our names here and in our shapes."""
        theirs = self.state_dict()
        return {
            self.names[name]: shaped_like(value, theirs[self.names[name]])
            for name, value in backbone.state_dict().items()
        }

    def load_weights(self, backbone: nn.Module) -> None:
        """Take the weights of the backbone that this is the twin of."""
        self.load_state_dict(self.translated(backbone))


def build_twin(place: str, spec: Mapping[str, Any]) -> StockNetwork:
    """The twin that lives at ``module:Class`` of the backbone with that spec, with weights of its own.

    >>> spec = {"name": "gcn", "in_channels": 4, "hidden": 8, "out_channels": 2, "dropout": 0.5, "seed": 1}
    >>> build_twin("fastglt.models.gcn.twin:StockGCN", spec)
    StockGCN(
      (conv1): GCNConv(4, 8)
      (conv2): GCNConv(8, 2)
    )
    """
    check_twin(place, spec["name"])
    kind = load_class(place, "twin")
    found: StockNetwork = kind.of(spec)
    return found


def check_twin(place: str, name: str) -> None:
    """Refuse a model whose class names no twin."""
    if not place:
        rule = "only a model with a twin from PyG's own layers can be measured against stock PyG"
        raise InputError(f"{rule} (got {name}, which has none); its class names one in `twin`")


def shaped_like(ours: Tensor, theirs: Tensor) -> Tensor:
    """A parameter of ours as its counterpart keeps it: matrices transposed, attention vectors one level deeper."""
    return ours.T if ours.dim() == theirs.dim() == 2 else ours.view(theirs.shape)


def of_layers(names: Mapping[str, str]) -> dict[str, str]:
    """The names within a layer, for both layers."""
    return {f"layer{i}.{ours}": f"conv{i}.{theirs}" for i in (1, 2) for ours, theirs in names.items()}
