"""What is known of layers by their kind: which have weights to prune, which look at all nodes at once."""

from collections.abc import Iterator

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.utils.parametrize import ParametrizationList

_NOT_WEIGHTS = (  # whose parameters are no weights between units, whatever their shape
    nn.Embedding,
    nn.EmbeddingBag,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
    _NormBase,
    ParametrizationList,
)
_PYG_NORMS = "torch_geometric.nn.norm."
_OF_EACH_NODE = ("BatchNorm", "HeteroBatchNorm", "MessageNorm")  # of PyG's norms; a batch norm has PyTorch's inside


def weight_matrices(module: nn.Module) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
    """The parameters that may be weight matrices: each one's name, the layer that owns it, and itself.

    Biases and attention vectors are none, nor is anything of a norm or an embedding, nor what a parametrization
    computes a weight from: zeros there need be none in the weight. One that layers share comes with each of them.
    """
    for prefix, owner in module.named_modules():
        if isinstance(owner, _NOT_WEIGHTS):
            continue
        for name, parameter in owner.named_parameters(recurse=False):
            if parameter.dim() >= 2 and not name.startswith(("att", "bias")):
                yield f"{prefix}.{name}" if prefix else name, owner, parameter


def looks_at_all_nodes(module: nn.Module) -> bool:
    """Whether a layer, as it is now, gives a node something else if other nodes are left out.

    Batch norm does while it is trained; in evaluation it knows its mean and variance. PyG's norms over a whole
    graph always do.
    """
    if isinstance(module, _NormBase):
        return module.training or not module.track_running_stats
    kind = type(module)
    if not kind.__module__.startswith(_PYG_NORMS) or kind.__name__ in _OF_EACH_NODE:
        return False
    return getattr(module, "mode", "graph") != "node"  # of PyG's LayerNorm


def looks_at_all_units(module: nn.Module) -> bool:
    """Whether a layer lets what one unit of a node holds decide on the others: norms over units do."""
    if isinstance(module, nn.LayerNorm | nn.GroupNorm | nn.RMSNorm):
        return True
    kind = type(module)
    return kind.__module__.startswith(_PYG_NORMS) and kind.__name__ not in ("BatchNorm", "HeteroBatchNorm")
