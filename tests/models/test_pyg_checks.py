from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

from fastglt import InputError
from tests.models.user_models import IN, OUT, Single, mlp
from tests.toy_data import (
    NODES,
    HandWritten,
    Layer,
    basic,
    quick_ticket,
    seeded,
    toy_data,
)


class DropsEdges(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, dropout_edge(edge_index, 0.5, training=self.training)[0])


class AddsEdges(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, torch.cat([edge_index, torch.tensor([[0], [5]])], dim=1))


class MakesSparse(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, to_torch_csr_tensor(edge_index, size=(len(x), len(x))))


class KeepsEdges(Single):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", toy_data().edge_index)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, self.kept)


class WeightPerColumn(Single):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(120))

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index, self.weight)


class Remembers(Single):
    adjacency: Tensor | None = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        if self.adjacency is None:
            self.adjacency = torch.zeros(len(x), len(x))
            self.adjacency[edge_index[1], edge_index[0]] = 1
        return self.conv(self.adjacency @ x, edge_index)


class WritesInput(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x.relu_(), edge_index)


class Silent(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv.lin(x)


class ReturnsTwo(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index), x


class NeedsBatch(Single):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> Any:  # type: ignore[override]
        return self.conv(x, edge_index)


class OnlyX(Single):
    def forward(self, x: Tensor) -> Any:  # type: ignore[override]
        return self.conv(x, toy_data().edge_index)


class TwoMessages(HandWritten):
    def message(self, x_j: Tensor) -> Any:
        return x_j, x_j

    def aggregate(self, inputs: Any, index: Tensor, ptr: Any = None, dim_size: Any = None) -> Any:
        return super().aggregate(inputs[0], index, ptr, dim_size)


class ExtraState(Single):
    def get_extra_state(self) -> dict[str, int]:
        return {"steps": 1}


class OneWay(Single):
    def state_dict(self, *args: Any, **keywords: Any) -> Any:
        return {**super().state_dict(*args, **keywords), "more": torch.ones(1)}


class Checkpointed(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return checkpoint(self.conv, x, edge_index, use_reentrant=False)


class CheckpointedFunction(Single):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(OUT, OUT))

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        def block(h: Tensor) -> Tensor:
            return (h @ self.weight).relu()

        return checkpoint(block, self.conv(x, edge_index), use_reentrant=False)


class InPlace(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        h = self.conv(x, edge_index).sigmoid()
        return h.mul_(2)


class Deep(nn.Module):
    """Reentrant checkpoints, as PyG has them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(IN, 8), nn.Linear(8, OUT)
        self.block = pyg.DeepGCNLayer(pyg.GCNConv(8, 8), nn.LayerNorm(8), nn.ReLU(), ckpt_grad=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.last(self.block(self.first(x), edge_index))


class PassingMean(Single):
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(OUT), persistent=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        out = self.conv(x, edge_index)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * out.detach().mean(0)
        return out - self.mean


class Closure(Single):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(OUT, OUT)
        self.mix: Callable[[Tensor], Tensor] = lambda h: self.readout(h).relu()

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.mix(self.conv(x, edge_index))


class PlainList(Single):
    def __init__(self) -> None:
        super().__init__()
        self.more = [nn.Linear(OUT, OUT)]

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.more[0](self.conv(x, edge_index))


class Embeds(Single):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(NODES, IN, sparse=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x + self.table(torch.arange(NODES)), edge_index)


def complex_numbers() -> nn.Module:
    model = Single()
    model.phase = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    return model


def hetero() -> nn.Module:
    model = pyg.GraphSAGE((IN, IN), 8, num_layers=2, out_channels=OUT)
    return pyg.to_hetero(model, (["paper"], [("paper", "cites", "paper")]))  # type: ignore[no-any-return]


def frozen() -> nn.Module:
    return Single().requires_grad_(False)


def spectral() -> nn.Module:
    model = Single()
    nn.utils.parametrizations.spectral_norm(model.conv.lin)
    return model


def edges_by_type() -> nn.Module:
    return pyg.HeteroConv({("paper", "cites", "paper"): pyg.SAGEConv(IN, OUT)})  # type: ignore[no-any-return]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "cached": (lambda: basic(pyg.GCN, cached=True), r"GCNConv\(cached=True\) keeps the unpruned graph"),
    "cached SGC": (lambda: Layer(pyg.SGConv(IN, OUT, cached=True)), r"SGConv\(cached=True\)"),
    "lazy": (lambda: pyg.GCN(-1, 8, 2, OUT), "has no shape yet; run the model once"),
    "half": (lambda: basic(pyg.GCN).half(), r"float32 or float64 \(got torch.float16"),
    "no messages": (lambda: pyg.MLP([IN, 8, OUT]), r"at least one MessagePassing layer \(got none in MLP\)"),
    "silent": (Silent, "got no message at all"),
    "to_hetero": (hetero, "heterogeneous and traced models are not supported"),
    "HeteroConv": (edges_by_type, "heterogeneous"),
    "compiled": (lambda: torch.compile(Single()), "before compilation"),
    "needs edge_attr": (
        lambda: Layer(pyg.GATConv(IN, OUT, edge_dim=4)),
        r"GATConv\(edge_dim=4\) needs data.edge_attr",
    ),
    "GINE without": (lambda: Layer(pyg.GINEConv(mlp(), edge_dim=4)), "it is given x and edge_index alone"),
    "relations": (lambda: pyg.RGCNConv(IN, OUT, 2), "must run on this data"),
    "needs batch": (NeedsBatch, r"got 'batch', which the data does not have"),
    "only x": (OnlyX, r"\(got x alone\)"),
    "drops edges": (DropsEdges, "GCNConv passes messages along other edges"),
    "adds edges": (AddsEdges, "GCNConv passes messages along other edges"),
    "makes sparse": (MakesSparse, "GCNConv passes messages along other edges"),
    "keeps edges": (KeepsEdges, "GCNConv passes messages along other edges"),
    "weight per column": (WeightPerColumn, "must run on this data without one of its edges"),
    "remembers": (Remembers, "one that remembers a graph"),
    "writes input": (WritesInput, "writes into x"),
    "tuple": (ReturnsTwo, r"\(got tuple\)"),
    "two messages": (TwoMessages, r"message must return one tensor, a row per edge \(got tuple\)"),
    "classes": (lambda: pyg.GCN(IN, 8, 2, 2), r"at least 3 outputs .* \(got shape \(30, 2\)\)"),
    "features": (lambda: pyg.GCN(IN + 1, 8, 2, OUT), "must run on this data"),
    "frozen": (frozen, "trainable parameters"),
    "extra state": (ExtraState, r"must consist of tensors \(got dict in '_extra_state'\)"),
    "spectral norm": (spectral, "must load the state that it gives"),
    "one way": (OneWay, "must load the state that it gives"),
    "checkpoints": (Checkpointed, "activation checkpointing has to be turned off"),
    "checkpoints a function": (CheckpointedFunction, "runs again in the backward pass"),
    "reentrant": (Deep, "activation checkpointing has to be turned off"),
    "in place": (InPlace, r"differentiable \(got .* modified by an inplace operation.*\)$"),
    "passing buffer": (PassingMean, r"must be persistent \(got 'mean', which is not\)"),
    "closure": (Closure, r"parameters of its own \(got one of shape \(3.*\) that is not\)"),
    "plain list": (PlainList, r"\(got one of shape \(3.*\) that is not\); layers belong in an nn.ModuleList"),
    "sparse gradients": (Embeds, r"must be dense \(got a sparse one of 'table.weight'"),
    "complex": (complex_numbers, r"float32 or float64 \(got torch.complex64 in 'phase'\)"),
}


@pytest.mark.filterwarnings("ignore:Sparse", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_supported_is_refused_with_a_reason(name: str) -> None:
    build, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        quick_ticket(seeded(build))


def test_a_model_that_cannot_be_copied_is_refused() -> None:
    model = Single()
    model.batches = (value for value in [1])  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"copyable with copy\.deepcopy"):
        quick_ticket(model)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("build", [DropsEdges, MakesSparse])
def test_without_pruned_edges_a_model_may_do_what_it_likes_with_them(build: Callable[[], nn.Module]) -> None:
    ticket = quick_ticket(seeded(build), graph_sparsity=0.0)
    assert (ticket.graph_sparsity, ticket.weight_sparsity) == (0.0, 0.5)


@pytest.mark.parametrize("build", [CheckpointedFunction, Deep])
def test_a_model_that_runs_again_is_refused_without_pruned_edges_too(build: Callable[[], nn.Module]) -> None:
    with pytest.raises(InputError, match="activation checkpointing has to be turned off"):
        quick_ticket(seeded(build), graph_sparsity=0.0)
