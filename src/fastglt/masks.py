"""Binary masks: which edges and which weights a ticket keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError


class Mask:
    """One yes or no per element; anything but 0 and 1 is refused.

    >>> mask = Mask([1, 0, 1])
    >>> mask.count, mask.size, round(mask.sparsity, 2)
    (2, 3, 0.33)
    """

    __slots__ = ("count", "kept")

    kept: Tensor  # bool, any shape
    count: int  # how many are kept

    def __init__(self, values: Tensor | Sequence[float]) -> None:
        values = torch.as_tensor(values)
        if values.dtype != torch.bool:
            odd = values[(values != 0) & (values != 1)]
            if odd.numel():
                raise InputError(f"a mask holds only 0 and 1 (got {odd.flatten()[0].item()})")
        self.kept = values.to(torch.bool, copy=True)
        self.count = _count(self.kept)

    @staticmethod
    def full(shape: Sequence[int]) -> "Mask":
        """Keep everything."""
        return Mask(torch.ones(tuple(shape), dtype=torch.bool))

    @staticmethod
    def difference(before: "Mask", after: "Mask") -> tuple[int, int]:
        """How many elements went and how many came from one mask to the next."""
        both = _count(before.kept & after.kept)
        return before.count - both, after.count - both

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is masked."""
        return tuple(self.kept.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.kept.numel()

    @property
    def sparsity(self) -> float:
        """The share that is removed; 0 for a mask of nothing."""
        return (self.size - self.count) / self.size if self.size else 0.0

    def of_size(self, size: int) -> "Mask":
        """This mask, if it is a vector of that size."""
        if self.shape != (size,):
            raise InputError(f"the mask must have one entry for each of {size} elements (got shape {self.shape})")
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and torch.equal(self.kept, other.kept)

    def __hash__(self) -> int:
        return hash((self.shape, self.count))

    def __repr__(self) -> str:
        return f"Mask({self.count} of {self.size} kept)"


def _count(kept: Tensor) -> int:
    """NumPy counts five times as fast as PyTorch."""
    return int(np.count_nonzero(kept.numpy())) if kept.device.type == "cpu" else int(torch.count_nonzero(kept))


@dataclass(frozen=True, kw_only=True)
class Masks:
    """What a ticket keeps of a graph's edges and of a network's weight matrices."""

    edges: Mask
    weights: Mapping[str, Mask]

    @staticmethod
    def full(num_edges: int, weight_shapes: Mapping[str, Sequence[int]]) -> "Masks":
        """The dense graph and network."""
        weights = {name: Mask.full(shape) for name, shape in weight_shapes.items()}
        return Masks(edges=Mask.full([num_edges]), weights=weights)

    @property
    def weights_kept(self) -> int:
        """Kept weights over all matrices."""
        return sum(mask.count for mask in self.weights.values())

    @property
    def weights_total(self) -> int:
        """Prunable weights over all matrices."""
        return sum(mask.size for mask in self.weights.values())

    @property
    def graph_sparsity(self) -> float:
        """The share of edges removed."""
        return self.edges.sparsity

    @property
    def weight_sparsity(self) -> float:
        """The share of weights removed, over all matrices."""
        total = self.weights_total
        return (total - self.weights_kept) / total if total else 0.0


def weight_masks(kept: Tensor, like: Mapping[str, Tensor]) -> dict[str, Mask]:
    """A mask for each matrix from one boolean vector over all weights in order."""
    return {name: Mask(part) for name, part in unflatten(kept, like).items()}


def flatten(tensors: Mapping[str, Tensor]) -> Tensor:
    """All tensors as one vector, in the mapping's order, so that they can be ranked globally."""
    return (
        torch.cat([tensor.flatten() for tensor in tensors.values()])
        if tensors
        else torch.empty(0, dtype=torch.float32)
    )


def lay_side_by_side(tensors: Mapping[str, Tensor]) -> None:
    """Move the numbers of tensors of one kind into one vector, so that `as_vector` need not copy them."""
    if _of_one_kind(tensors):
        for name, part in unflatten(flatten(tensors).detach(), tensors).items():
            tensors[name].data = part


def zeros_side_by_side(like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Zeros of the same shapes, side by side if they are of one kind."""
    if not _of_one_kind(like):
        return {name: torch.zeros_like(tensor) for name, tensor in like.items()}
    some = next(iter(like.values())).detach()
    return unflatten(some.new_zeros(sum(tensor.numel() for tensor in like.values())), like)


def _of_one_kind(tensors: Mapping[str, Tensor]) -> bool:
    return len({(tensor.dtype, tensor.device) for tensor in tensors.values()}) == 1


def as_vector(tensors: Mapping[str, Tensor]) -> Tensor:
    """`flatten` to look at: where the tensors lie side by side, their own numbers and no copy."""
    parts = [tensor.detach() for tensor in tensors.values()]
    places = [part.data_ptr() for part in parts]
    ends = [place + part.nbytes for place, part in zip(places, parts, strict=True)]
    owners = {part.untyped_storage().data_ptr() for part in parts}
    if len(owners) == 1 and places[1:] == ends[:-1] and all(part.is_contiguous() for part in parts):
        return parts[0].as_strided((sum(part.numel() for part in parts),), (1,))
    return flatten(tensors).detach()


def unflatten(vector: Tensor, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `flatten`."""
    parts = torch.split(vector, [tensor.numel() for tensor in like.values()])
    return {name: part.view_as(tensor) for (name, tensor), part in zip(like.items(), parts, strict=True)}
