"""ResGCN (DeeperGCN; Li et al., 2020): GENConv layers in res+ blocks, as deep as one likes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fastglt.errors import InputError, require, unknown_name
from fastglt.graphs.edge_rows import EdgeRows
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels.drop import Drop
from fastglt.models.base import Backbone
from fastglt.models.operations import Aggregation, Linear, Operation
from fastglt.models.parts import product
from fastglt.models.resgcn.fused import Room
from fastglt.models.resgcn.layer import GENLayer, finished, uniform_parameter
from fastglt.models.resgcn.norms import NORMS

if TYPE_CHECKING:
    from fastglt.models.portable import PyGForm
    from fastglt.models.programs import Program
    from fastglt.models.strips import StripLayer


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
        norm: str = "batch",  # batch or layer; renorm: batch renormalisation, for steps on parts of a graph
        mlp_layers: int = 1,  # matrices of each convolution's MLP
        temperature: float = 0.1,  # of the softmax; more: closer to the maximum
        learn_temperature: bool = False,  # one for each layer, which starts there
        self_loops: bool = True,  # whether a node's own row is among those that it aggregates
        edge_channels: int = 0,  # features of each edge, which messages take in; 0: none are read
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=num_layers)
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        require("be at least 1", mlp_layers=mlp_layers)
        require("not be negative", edge_channels=edge_channels)
        self.edge_channels, self.tried_out = edge_channels, edge_channels > 0  # type: ignore[misc]
        self.norm, self.mlp_layers, self.self_loops = norm, mlp_layers, self_loops
        self.temperature, self.learn_temperature = temperature, learn_temperature
        self.weight_encoder = uniform_parameter(
            seed, "encoder", "weight", shape=(in_channels, hidden), inputs=in_channels
        )
        self.bias_encoder = uniform_parameter(seed, "encoder", "bias", shape=(hidden,), inputs=in_channels)
        common = {"norm": norm, "mlp_layers": mlp_layers, "edge_channels": edge_channels, "seed": seed}
        self.layers = nn.ModuleList(
            GENLayer(hidden, first=i == 0, purpose=f"layer{i}", **common)  # type: ignore[arg-type]
            for i in range(num_layers)
        )
        self.last_norm = NORMS[norm](hidden)
        start = torch.full((num_layers,), float(temperature), dtype=torch.float32)
        self.temperatures = nn.Parameter(start) if learn_temperature else None
        self.weight_readout = uniform_parameter(
            seed, "readout", "weight", shape=(hidden, out_channels), inputs=hidden
        )
        self.bias_readout = uniform_parameter(seed, "readout", "bias", shape=(out_channels,), inputs=hidden)

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """See `Backbone.outputs`."""
        self._check_edges(hops[0].edge_rows)
        h = product(x, self.weight_encoder).add_(self.bias_encoder)
        size = None if soft_edge_mask is None else soft_edge_mask.abs()
        values: dict[int, Tensor] = {}  # hops of the whole graph are one and the same
        fixed, room = h.new_tensor(self.temperature), Room()
        for i, (layer, hop) in enumerate(zip(self.layers, hops, strict=True)):
            if id(hop) not in values:
                heard = hop.degree.new_ones(hop.csr.num_entries, dtype=h.dtype) if self.self_loops else hop.sum_norm
                values[id(hop)] = hop.weigh(heard.to(h.dtype), size)
            t = fixed if self.temperatures is None else self.temperatures[i]
            h = layer(h, hop, values[id(hop)], t, self.dropout, room)
        return self.read_out(h)

    def read_out(self, rows: Tensor) -> Tensor:
        """See `Backbone.read_out`."""
        drop = Drop.draw(self.dropout, training=self.training)
        return product(finished(self.last_norm, drop, rows), self.weight_readout) + self.bias_readout

    @property
    def not_exact_by_parts(self) -> str | None:
        """A batch norm within an MLP sees what a part has heard, and not all nodes."""
        if self.mlp_layers > 1 and self.norm != "layer":
            return f"norm {self.norm} within an MLP sees one part alone; norm=layer or mlp_layers=1 does not"
        return super().not_exact_by_parts

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

    def program(self) -> "Program | None":
        """See `ResGCNProgram`; None with layer norms, deeper MLPs or edge features."""
        from fastglt.models.resgcn.program import ResGCNProgram

        if self.norm == "layer" or self.mlp_layers > 1 or self.edge_channels:
            return None
        state, eps, temperatures = self.state_dict(), self.last_norm.eps, self.all_temperatures
        return ResGCNProgram(state, eps=eps, temperatures=temperatures, self_loops=self.self_loops)

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm | None":
        """See `pyg_model`; None with edge features."""
        from fastglt.models.resgcn.portable import pyg_form

        return pyg_form(self, graph, soft_edge_mask)

    @property
    def all_temperatures(self) -> list[float]:
        """That of each layer."""
        learnt = self.temperatures
        return [self.temperature] * self.num_layers if learnt is None else list[float](learnt.tolist())

    def _check_edges(self, found: EdgeRows | None) -> None:
        count = 0 if found is None else found.values.shape[1]
        if self.edge_channels not in (0, count):
            raise InputError(
                f"edge_channels must be the number of features that the data's edges have, {count}, or 0 "
                f"(got {self.edge_channels}); choose another number"
            )

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
