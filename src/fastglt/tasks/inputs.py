"""Checks of what a task is made from: a `Data`, features, and the three masks of a split."""

from typing import Any

import torch
from torch import Tensor

from fastglt.errors import InputError

SPLITS = ("train", "val", "test")


def check_kind(data: object) -> None:
    """Refuse what is no PyG `Data` of dense features."""
    from torch_geometric.data import Data

    if not isinstance(data, Data):
        hint = "; heterogeneous graphs are not supported" if "Hetero" in type(data).__name__ else ""
        raise InputError(f"data must be a torch_geometric.data.Data (got {type(data).__name__}{hint})")
    if isinstance(data.x, Tensor) and data.x.layout != torch.strided:
        raise InputError(f"data.x must be a dense tensor (got {data.x.layout}); it has to_dense()")


def features_of(data: Any) -> Tensor:
    """The features as finite floats, one row for each node."""
    x = data.x
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.dtype.is_floating_point or x.shape[1] < 1:
        got = f"{x.dtype}, shape {tuple(x.shape)}" if isinstance(x, Tensor) else "none"
        raise InputError(f"data.x must be a float tensor [nodes, features] (got {got})")
    if data.num_nodes != x.shape[0]:
        raise InputError(f"data.x must have one row for each of {data.num_nodes} nodes (got {x.shape[0]})")
    x, given, sparse = x.detach().float(), x, x.layout == torch.sparse_csr
    if not bool(torch.isfinite(x.values() if sparse else x).all()):
        row, column = (~torch.isfinite(x.to_dense())).nonzero()[0].tolist()
        value = given.to_dense()[row, column].item()
        raise InputError(f"features must be finite in float32 (got {value} at node {row}, feature {column})")
    x = x.clone() if x.is_inference() else x  # of inference mode, which gradients could not use
    return x if sparse else x.contiguous()


def split_of(data: Any) -> dict[str, Tensor]:
    """The node ids of train, val and test, which share none; test may be empty."""
    found = {name: _nodes_of(data, name) for name in SPLITS}
    _check_disjoint(found)
    return found


def _nodes_of(data: Any, name: str) -> Tensor:
    mask, rows = getattr(data, f"{name}_mask", None), data.x.shape[0]
    if mask is None and name == "test":
        return torch.empty(0, dtype=torch.int64)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (rows,):
        got = f"{mask.dtype}, shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else "none"
        hint = "; choose one split first" if isinstance(mask, Tensor) and mask.dim() == 2 else ""
        raise InputError(f"data.{name}_mask must be a boolean tensor of {rows} nodes (got {got}{hint})")
    if name != "test" and not bool(mask.any()):
        raise InputError(f"data.{name}_mask must select at least one node (got an empty mask)")
    return mask.nonzero().squeeze(1)


def _check_disjoint(splits: dict[str, Tensor]) -> None:
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = splits[first][torch.isin(splits[first], splits[second])]
        if shared.numel():
            got = f"{shared.numel()} shared, among them node {int(shared[0])}"
            raise InputError(f"{first}_mask and {second}_mask must not share nodes (got {got})")
