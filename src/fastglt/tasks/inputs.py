"""Checks of what a task is made from: a `Data`, features, and the three masks of a split."""

from typing import Any

import torch
from torch import Tensor

from fastglt.errors import InputError

SPLITS = ("train", "val", "test")


def check_kind(data: object) -> None:
    """Refuse what is no PyG `Data` of one graph, with dense features and real numbers."""
    from torch_geometric.data import Batch, Data

    if not isinstance(data, Data) or (isinstance(data, Batch) and data.num_graphs > 1):
        rule = "data must be one graph with a label for each node, a torch_geometric.data.Data"
        raise InputError(f"{rule} (got {type(data).__name__}){_instead_of(data)}")
    if isinstance(data.x, Tensor) and data.x.layout != torch.strided:
        raise InputError(f"data.x must be a dense tensor (got {data.x.layout}); it has to_dense()")
    for name, value in data.to_dict().items():
        if isinstance(value, Tensor) and value.is_meta:
            raise InputError(f"data must have numbers (got data.{name} on the meta device)")


def _instead_of(data: Any) -> str:
    """Why something is no such graph, and what to pass instead."""
    from torch.utils.data import DataLoader
    from torch.utils.data import Dataset as TorchDataset
    from torch_geometric.data import Batch, Data, Dataset, HeteroData, TemporalData

    out_of_scope: list[tuple[Any, str]] = [
        (HeteroData, "heterogeneous graphs are not supported; to_homogeneous() gives one kind of nodes and edges"),
        (TemporalData, "temporal graphs are not supported; pass the graph of one moment"),
        (Batch, "graph-level tasks and several graphs are not supported; pass one graph, such as batch[0]"),
        ((Dataset, TorchDataset), "a dataset is not a graph; pass one of its graphs, such as dataset[0]"),
        (str, f"fastglt.data.load({data!r}).data is that of a name or a file"),
        ((list, tuple), "graph-level tasks and several graphs are not supported; pass one graph of the list"),
    ]
    if isinstance(data, DataLoader) or type(data).__name__.endswith(("Loader", "Sampler")):
        return "; loaders and mini-batches are not supported; pass the whole graph that the loader was made from"
    if not isinstance(data, Dataset) and isinstance(getattr(data, "data", None), Data):
        return "; pass its data"  # what `fastglt.data.load` returns
    return next((f"; {reason}" for kinds, reason in out_of_scope if isinstance(data, kinds)), "")


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
        raise InputError(
            f"features must be finite in float32 (got {value} at node {row}, feature {column}); "
            "fill in such values, or leave that feature out"
        )
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
        missing = "; torch_geometric.transforms.RandomNodeSplit makes masks" if mask is None else ""
        raise InputError(f"data.{name}_mask must be a boolean tensor of {rows} nodes (got {got}{hint}){missing}")
    if name != "test" and not bool(mask.any()):
        raise InputError(f"data.{name}_mask must select at least one node (got an empty mask)")
    return mask.nonzero().squeeze(1)


def _check_disjoint(splits: dict[str, Tensor]) -> None:
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = splits[first][torch.isin(splits[first], splits[second])]
        if shared.numel():
            got = f"{shared.numel()} shared, among them node {int(shared[0])}"
            raise InputError(f"{first}_mask and {second}_mask must not share nodes (got {got})")
