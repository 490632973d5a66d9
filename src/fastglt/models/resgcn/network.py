"""ResGCN (DeeperGCN; Li et al., 2020): GENConv layers in res+ blocks, as deep as one likes."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, layer_norm

from fastglt.errors import InputError, require, unknown_name
from fastglt.graphs.edge_rows import EdgeRows
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import affine, dropped
from fastglt.kernels.drop import Drop
from fastglt.kernels.edge_softmax import edge_softmax_aggregate
from fastglt.kernels.softmax import softmax_aggregate
from fastglt.models.base import Backbone
from fastglt.models.operations import Aggregation, Linear, Operation
from fastglt.models.parts import product
from fastglt.models.recompute import recomputed
from fastglt.system.seeds import derive, uniform

if TYPE_CHECKING:
    from fastglt.models.strips import StripLayer

_NORMS = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


class GENLayer(nn.Module):
    """MLP(own row + softmax-weighted mean of the neighbours' ReLU(x) + ε), on top of the input from layer 1 on.

    Layer 0 has neither norm nor residual: it takes the encoded features as they are. With edge features, their
    product with a matrix of the layer is added to x before the ReLU.
    """

    def __init__(
        self, width: int, *, first: bool, norm: str, mlp_layers: int, edge_channels: int, seed: int, purpose: str
    ) -> None:
        super().__init__()
        widths = [width] if mlp_layers == 1 else [width, *[2 * width] * (mlp_layers - 1)]
        pairs = list(enumerate(pairwise([*widths, width])))
        self.norm = None if first else _NORMS[norm](width)
        self.weights = nn.ParameterList([_uniform((a, b), a, seed, purpose, i, "weight") for i, (a, b) in pairs])
        self.biases = nn.ParameterList([_uniform((b,), a, seed, purpose, i, "bias") for i, (a, b) in pairs])
        self.norms = nn.ModuleList(_NORMS[norm](b) for _, (_, b) in pairs[:-1])
        self.weight_edges = self.bias_edges = None
        if edge_channels:
            self.weight_edges = _uniform((edge_channels, width), edge_channels, seed, purpose, "edge", "weight")
            self.bias_edges = _uniform((width,), edge_channels, seed, purpose, "edge", "bias")

    def forward(self, h: Tensor, hop: Hop, values: Tensor, temperature: Tensor, p: float) -> Tensor:
        """The receivers' rows from the senders'; for gradients only `h` is kept."""
        drop = None if self.norm is None else Drop.draw(p, training=self.training)
        norms = [*([] if self.norm is None else [self.norm]), *self.norms]
        learnt = [parameter for norm in norms for parameter in (norm.weight, norm.bias)]
        edge = [] if self.weight_edges is None else [self.weight_edges, self.bias_edges]
        run = partial(self._run, hop, drop)
        return recomputed(run, h, values, temperature, *self.weights, *self.biases, *edge, *learnt)

    def _run(
        self, hop: Hop, drop: Drop | None, h: Tensor, values: Tensor, t: Tensor, *parameters: Tensor
    ) -> Tensor:
        count = len(self.weights)
        weights, biases, learnt = parameters[:count], parameters[count : 2 * count], parameters[2 * count :]
        edge: tuple[Tensor, ...] = ()
        z = h
        if self.weight_edges is not None:
            edge, learnt = learnt[:2], learnt[2:]
        if self.norm is not None:
            z, learnt = dropped(normalise(self.norm, h, *learnt[:2]).relu_(), drop), learnt[2:]
        out = aggregated(hop, values, z, edge, t) + hop.of_receivers(z)
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            out = affine(out, weight, bias)
            if i < count - 1:
                out = normalise(self.norms[i], out, *learnt[2 * i : 2 * i + 2]).relu_()
        return out if self.norm is None else out.add_(hop.of_receivers(h))


def aggregated(hop: Hop, values: Tensor, z: Tensor, edge: tuple[Tensor, ...], t: Tensor) -> Tensor:
    """What receivers hear; `edge` is the weight and the bias for edge features, if messages have such."""
    if not edge:
        return softmax_aggregate(hop.csr, values, z, t)
    assert hop.edge_rows is not None, "it was checked"
    weight, bias = edge
    return edge_softmax_aggregate(hop.csr, values, z, hop.edge_rows.table, hop.entry_row, weight, bias, t)


def normalise(norm: nn.Module, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A norm with these parameters. Where gradients are off, a batch norm counts what it sees."""
    if isinstance(norm, nn.LayerNorm):
        return layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)
    assert isinstance(norm, nn.BatchNorm1d)
    if not norm.training:
        return batch_norm(x, norm.running_mean, norm.running_var, weight, bias, training=False, eps=norm.eps)
    if torch.is_grad_enabled():
        return batch_norm(x, None, None, weight, bias, training=True, eps=norm.eps)
    norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
    counted = norm.running_mean, norm.running_var
    return batch_norm(x, *counted, weight, bias, training=True, eps=norm.eps)  # PyTorch's usual momentum


class ResGCN(Backbone):
    """A linear encoder, GENConv layers in res+ blocks (norm, ReLU, dropout, convolution, residual), a read-out.

    A soft edge mask multiplies the softmax's weights by its size, so that 0 is exactly a removed edge. Edge
    features, if it has channels for them, are added to what neighbours send, by a matrix of each layer.
    """

    name = "resgcn"
    paper = "Li et al., DeeperGCN: All You Need to Train Deeper GCNs, 2020"
    twin = "fastglt.models.resgcn.twin:StockResGCN"

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.5,  # before each convolution but the first, and before the read-out
        seed: int = 0,
        num_layers: int = 28,  # convolutions
        norm: str = "batch",  # batch or layer
        mlp_layers: int = 1,  # matrices of each convolution's MLP
        temperature: float = 0.1,  # of the softmax; more: closer to the maximum
        learn_temperature: bool = False,  # one for each layer, which starts there
        self_loops: bool = True,  # whether a node's own row is among those that it aggregates
        edge_channels: int = 0,  # features of each edge, which messages take in; 0: none are read
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=num_layers)
        if norm not in _NORMS:
            raise unknown_name("norm", norm, _NORMS)
        require("be at least 1", mlp_layers=mlp_layers)
        require("not be negative", edge_channels=edge_channels)
        self.edge_channels, self.tried_out = edge_channels, edge_channels > 0  # type: ignore[misc]
        self.norm, self.mlp_layers, self.self_loops = norm, mlp_layers, self_loops
        self.temperature, self.learn_temperature = temperature, learn_temperature
        self.weight_encoder = _uniform((in_channels, hidden), in_channels, seed, "encoder", "weight")
        self.bias_encoder = _uniform((hidden,), in_channels, seed, "encoder", "bias")
        common = {"norm": norm, "mlp_layers": mlp_layers, "edge_channels": edge_channels, "seed": seed}
        self.layers = nn.ModuleList(
            GENLayer(hidden, first=i == 0, purpose=f"layer{i}", **common)  # type: ignore[arg-type]
            for i in range(num_layers)
        )
        self.last_norm = _NORMS[norm](hidden)
        start = torch.full((num_layers,), float(temperature), dtype=torch.float32)
        self.temperatures = nn.Parameter(start) if learn_temperature else None
        self.weight_readout = _uniform((hidden, out_channels), hidden, seed, "readout", "weight")
        self.bias_readout = _uniform((out_channels,), hidden, seed, "readout", "bias")

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """See `Backbone.outputs`."""
        self._check_edges(hops[0].edge_rows)
        h = product(x, self.weight_encoder).add_(self.bias_encoder)
        size = None if soft_edge_mask is None else soft_edge_mask.abs()
        values: dict[int, Tensor] = {}  # hops of the whole graph are one and the same
        fixed = h.new_tensor(self.temperature)
        for i, (layer, hop) in enumerate(zip(self.layers, hops, strict=True)):
            if id(hop) not in values:
                heard = hop.degree.new_ones(hop.csr.num_entries, dtype=h.dtype) if self.self_loops else hop.sum_norm
                values[id(hop)] = hop.weigh(heard.to(h.dtype), size)
            t = fixed if self.temperatures is None else self.temperatures[i]
            h = layer(h, hop, values[id(hop)], t, self.dropout)
        drop = Drop.draw(self.dropout, training=self.training)
        h = recomputed(partial(self._last, drop), h, self.last_norm.weight, self.last_norm.bias)
        return product(h, self.weight_readout) + self.bias_readout

    def layers_in_strips(self) -> "tuple[StripLayer, ...]":
        """See `ResGCNStrips`."""
        from fastglt.models.resgcn.strips import layers_in_strips

        return layers_in_strips(self)

    @property
    def reads_edge_values(self) -> bool:
        """Edge features, if it has channels for them."""
        return self.edge_channels > 0

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool) -> None:
        """See `Backbone.check_fits`; edges must have as many features as there are channels for."""
        super().check_fits(x, graph, num_outputs, soft_edges=soft_edges)
        self._check_edges(graph.hops(None, depth=1)[0].edge_rows)

    def _check_edges(self, found: EdgeRows | None) -> None:
        count = 0 if found is None else found.values.shape[1]
        if self.edge_channels not in (0, count):
            raise InputError(
                f"edge_channels must be the number of features that the data's edges have, {count}, or 0 "
                f"(got {self.edge_channels}); choose another number"
            )

    def _last(self, drop: Drop | None, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return dropped(normalise(self.last_norm, h, weight, bias).relu_(), drop)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The encoder, each layer's aggregation (numerator and denominator) and MLP, the read-out."""
        found: list[Operation] = [
            Linear(
                layer="encoder",
                weight="weight_encoder",
                reads="features",
                writes="channels",
                bias="bias_encoder",
            )
        ]
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, GENLayer)
            name = f"layer{i}"
            others = [
                each
                for each, _ in layer.named_parameters()
                if each.startswith(("norm", "weight_edges", "bias_edges"))
            ]
            found.append(
                Aggregation(
                    layer=name,
                    width=(2 + self.edge_channels) * self.hidden,  # each message is encoded on its own
                    parameters=tuple(f"layers.{i}.{each}" for each in others),
                )
            )
            units = ["channels", *(f"{name}.{j}" for j in range(self.mlp_layers - 1)), "channels"]
            found += [
                Linear(
                    layer=name,
                    weight=f"layers.{i}.weights.{j}",
                    reads=a,
                    writes=b,
                    bias=f"layers.{i}.biases.{j}",
                )
                for j, (a, b) in enumerate(pairwise(units))
            ]
        readout = Linear(
            layer="readout", weight="weight_readout", reads="channels", writes="classes", bias="bias_readout"
        )
        return (*found, readout)


def _uniform(shape: tuple[int, ...], inputs: int, seed: int, *purpose: object) -> nn.Parameter:
    return nn.Parameter(uniform(shape, inputs**-0.5, derive(seed, "init", *purpose)))
