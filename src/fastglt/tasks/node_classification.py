"""A node classification task: graph, features, labels and split, checked and prepared once."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fastglt.errors import InputError, MachineError, unknown_name
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.system.seeds import own_randomness

if TYPE_CHECKING:
    from torch_geometric.data import Data


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of nodes whose largest score is their class."""
    return float((logits.argmax(-1) == labels).double().mean())


def roc_auc(logits: Tensor, labels: Tensor) -> float:
    """The area under the ROC curve of class 1; NaN where all nodes are of one class."""
    if labels.numel() == 0 or bool((labels == labels[0]).all()):
        return float("nan")
    with own_randomness(None):  # its import draws from Python's random numbers
        from sklearn.metrics import roc_auc_score

    margin = (logits[:, 1] - logits[:, 0]).cpu().numpy()
    return float(roc_auc_score(labels.cpu().numpy(), margin))


DEVICES = ("cpu", "cuda", "mps", "xpu")
METRICS = {"accuracy": accuracy, "roc_auc": roc_auc}


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What a network is trained for."""

    graph: Graph
    x: Features
    y: Tensor
    train: Tensor  # node ids
    val: Tensor
    test: Tensor  # may be empty: then test scores are NaN
    num_classes: int
    metric: str = "accuracy"

    @staticmethod
    def from_data(data: "Data", *, metric: str = "accuracy") -> "Task":
        """Check a PyG `Data` and prepare it; the data itself is not changed."""
        check_kind(data)
        return Task._prepare(data, lambda: Graph.from_data(data), metric)

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor], *, metric: str = "accuracy") -> "Task":
        """The same from x, y, edge_index and masks by name, without PyG; x may be sparse as in `Features`."""
        source = SimpleNamespace(**tensors, num_nodes=tensors["x"].shape[0])
        graph = lambda: Graph.from_edge_index(source.edge_index, source.num_nodes)  # noqa: E731
        return Task._prepare(source, graph, metric)

    @staticmethod
    def _prepare(data: Any, graph: Callable[[], Graph], metric: str) -> "Task":
        if metric not in METRICS:
            raise unknown_name("metric", metric, METRICS)
        x, y = features_of(data), _labels(data)
        splits = {name: _split(data, name) for name in ("train", "val", "test")}
        _check_disjoint(splits)
        num_classes = int(y[torch.cat(list(splits.values()))].max()) + 1
        if metric == "roc_auc":
            _check_two_classes(y, num_classes, splits)
        return Task(graph=graph(), x=Features(x), y=y, num_classes=num_classes, metric=metric, **splits)

    @cached_property
    def judged(self) -> Tensor:
        """The validation nodes, then the test nodes."""
        return torch.cat([self.val, self.test])

    @cached_property
    def digests(self) -> dict[str, str]:
        """What tells this graph, these features, and these labels and split from all others."""
        parts = (self.train, self.val, self.test, self.y)
        sizes = torch.tensor([part.numel() for part in parts])  # else any split in one order would be the same
        split = torch.cat([sizes, *(part.cpu() for part in parts)]).numpy()
        return {
            "graph": self.graph.fingerprint,
            "features": self.x.fingerprint,
            "labels_and_split": hashlib.sha256(split.tobytes()).hexdigest(),
        }

    @property
    def digest(self) -> str:
        """All of that in one."""
        return hashlib.sha256("".join(self.digests.values()).encode()).hexdigest()

    def loss(self, logits: Tensor, nodes: Tensor) -> Tensor:
        """The mean cross-entropy of some nodes' class scores."""
        return cross_entropy(logits, self.y[nodes])

    def score(self, logits: Tensor, nodes: Tensor) -> float:
        """The metric of some nodes' class scores; NaN for no nodes."""
        return METRICS[self.metric](logits, self.y[nodes]) if nodes.numel() else float("nan")

    def to(self, device: torch.device | str) -> "Task":
        """The task on another device."""
        device = usable(device)
        moved = {name: getattr(self, name).to(device) for name in ("graph", "x", "y", "train", "val", "test")}
        return replace(self, **moved)


def usable(device: torch.device | str) -> torch.device:
    """A device, if it can be computed on here."""
    kind = str(device).partition(":")[0]
    if kind not in DEVICES:
        raise unknown_name("device", kind, DEVICES)
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise MachineError(f"device '{device}' cannot be used here ({reason}); try 'cpu'") from None


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


def _labels(data: Any) -> Tensor:
    y, rows = data.y, data.x.shape[0]
    if not isinstance(y, Tensor) or y.dtype not in (torch.int64, torch.int32):
        got = str(y.dtype) if isinstance(y, Tensor) else "none"
        raise InputError(f"data.y must hold one integer label per node (got {got})")
    y = y.squeeze(-1) if y.dim() == 2 and y.shape[1] == 1 else y
    if y.shape != (rows,):
        raise InputError(f"data.y must have one label for each of {rows} feature rows (got shape {tuple(y.shape)})")
    if rows == 0:
        raise InputError("the graph must have at least one node (got none)")
    used = torch.cat([y[_split(data, name)] for name in ("train", "val", "test")])
    if int(used.min()) < 0:
        raise InputError(f"labels must be 0, 1, 2, … (got {int(used.min())})")
    if int(used.max()) >= rows:
        raise InputError(f"labels must be class numbers below the number of nodes, {rows} (got {int(used.max())})")
    return y.long().clamp(min=0)


def _split(data: Any, name: str) -> Tensor:
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


def _check_two_classes(y: Tensor, num_classes: int, splits: dict[str, Tensor]) -> None:
    if num_classes != 2:
        raise InputError(f"roc_auc needs two classes (got {num_classes})")
    for name in ("val", "test"):
        found = y[splits[name]].unique().tolist()  # type: ignore[no-untyped-call]
        if len(found) == 1:
            raise InputError(f"roc_auc needs both classes among the {name} nodes (got {found[0]} alone)")


def _check_disjoint(splits: dict[str, Tensor]) -> None:
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = splits[first][torch.isin(splits[first], splits[second])]
        if shared.numel():
            got = f"{shared.numel()} shared, among them node {int(shared[0])}"
            raise InputError(f"{first}_mask and {second}_mask must not share nodes (got {got})")
