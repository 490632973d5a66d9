"""ResGCN from PyG's own layers."""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from fastglt.errors import InputError
from fastglt.models.twins import StockNetwork, shaped_like
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.nn import DeepGCNLayer, GENConv
    from torch_geometric.utils import add_remaining_self_loops, to_edge_index

_NORMS = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


class StockResGCN(StockNetwork):
    """DeepGCNLayer (res+) around GENConv; the first layer's norm is the last one's, as PyG's example has it."""

    adds_loops = True

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float,
        num_layers: int = 28,
        norm: str = "batch",
        mlp_layers: int = 1,
        temperature: float = 0.1,
        learn_temperature: bool = False,
        self_loops: bool = True,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(dropout)
        norm = norm.replace("renorm", "batch")  # PyG has none; they differ in training alone
        self.self_loops, self.edge_channels = self_loops, edge_channels
        self.encoder, self.readout = nn.Linear(in_channels, hidden), nn.Linear(hidden, out_channels)
        convolution = {"aggr": "softmax", "t": temperature, "learn_t": learn_temperature, "bias": True}
        convolution |= {"num_layers": mlp_layers, "norm": norm, "edge_dim": edge_channels or None}
        self.layers = nn.ModuleList(
            DeepGCNLayer(
                GENConv(hidden, hidden, **convolution), _NORMS[norm](hidden), nn.ReLU(inplace=True), dropout=dropout
            )
            for _ in range(num_layers)
        )
        if edge_channels == hidden:  # PyG would take edge features as they are
            for layer in self.layers:
                layer.conv.lin_edge = nn.Linear(edge_channels, hidden)  # type: ignore[union-attr]
        self.names = self._names(mlp_layers)
        self._prepared: tuple[Tensor, Tensor, Tensor | None] | None = None

    def _names(self, mlp_layers: int) -> dict[str, str]:
        found = {
            f"{kind}_{part}": f"{part}.{kind}" for part in ("encoder", "readout") for kind in ("weight", "bias")
        }
        of_norm = [name for name, _ in self.layers[0].norm.state_dict().items()]  # type: ignore[union-attr]
        found |= {f"last_norm.{name}": f"layers.0.norm.{name}" for name in of_norm}
        for i in range(len(self.layers)):
            ours, theirs = f"layers.{i}", f"layers.{i}.conv.mlp"
            found |= {f"{ours}.norm.{name}": f"{ours}.norm.{name}" for name in of_norm}
            found |= {f"temperatures.{i}": f"{ours}.conv.aggr_module.t"}
            found |= {f"{ours}.{kind}_edges": f"{ours}.conv.lin_edge.{kind}" for kind in ("weight", "bias")}
            for j in range(mlp_layers):
                at = 4 * j  # linear, norm, ReLU, dropout
                found |= {
                    f"{ours}.weights.{j}": f"{theirs}.{at}.weight",
                    f"{ours}.biases.{j}": f"{theirs}.{at}.bias",
                }
                found |= {f"{ours}.norms.{j}.{name}": f"{theirs}.{at + 1}.{name}" for name in of_norm}
        return found

    def translated(self, backbone: nn.Module) -> dict[str, Tensor]:
        """The state of the backbone; each layer has a temperature of its own there."""
        state = dict(backbone.state_dict())
        for i, temperature in enumerate(state.pop("temperatures", ())):
            state[f"temperatures.{i}"] = temperature
        theirs = self.state_dict()
        return {self.names[n]: shaped_like(value, theirs[self.names[n]]) for n, value in state.items()}

    def forward(self, x: Tensor, graph: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The outputs of all nodes; edge features go with a graph that is given as edge_index."""
        if (edge_attr is not None) != (self.edge_channels > 0):
            got = "none" if edge_attr is None else "some"
            raise InputError(
                f"a network with {self.edge_channels} edge_channels must have edge features (got {got})"
            )
        (graph, edge_attr), (first, *others) = self._with_loops(graph, edge_attr, x.shape[0]), self.layers
        h = first.conv(self.encoder(x), graph, edge_attr)  # type: ignore[operator]
        for layer in others:
            h = layer(h, graph, edge_attr)
        h = first.act(first.norm(h))  # type: ignore[operator]
        return self.readout(dropout(h, self.dropout, self.training))  # type: ignore[no-any-return]

    def _with_loops(self, graph: Tensor, edge_attr: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """The graph as edge_index, with self-loops if there should be, whose features are 0; found once."""
        if self._prepared is None or self._prepared[0] is not graph:
            edge_index = graph
            if graph.layout != torch.strided:  # GENConv has no product with a matrix
                edge_index = to_edge_index(graph)[0].flip(0)
            if self.self_loops:
                edge_index, edge_attr = add_remaining_self_loops(
                    edge_index, edge_attr, fill_value=0.0, num_nodes=num_nodes
                )
            self._prepared = graph, edge_index, edge_attr
        return self._prepared[1:]
