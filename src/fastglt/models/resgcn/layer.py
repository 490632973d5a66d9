"""A layer of ResGCN: norm, ReLU, dropout, GENConv, residual."""

from functools import partial
from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from fastglt.graphs.messages import Hop
from fastglt.kernels import affine, dropped
from fastglt.kernels.drop import Drop
from fastglt.kernels.edge_softmax import edge_softmax_aggregate
from fastglt.kernels.genconv import serves
from fastglt.kernels.softmax import softmax_aggregate
from fastglt.models.recompute import recomputed
from fastglt.models.resgcn.fused import Room, Step, activated, convolved
from fastglt.models.resgcn.norms import NORMS, normalise
from fastglt.system.seeds import derive, uniform


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
        self.norm = None if first else NORMS[norm](width)
        draw = partial(uniform_parameter, seed, purpose)
        self.weights = nn.ParameterList([draw(i, "weight", shape=(a, b), inputs=a) for i, (a, b) in pairs])
        self.biases = nn.ParameterList([draw(i, "bias", shape=(b,), inputs=a) for i, (a, b) in pairs])
        self.norms = nn.ModuleList(NORMS[norm](b) for _, (_, b) in pairs[:-1])
        self.weight_edges = self.bias_edges = None
        if edge_channels:
            self.weight_edges = draw("edge", "weight", shape=(edge_channels, width), inputs=edge_channels)
            self.bias_edges = draw("edge", "bias", shape=(width,), inputs=edge_channels)

    def forward(self, h: Tensor, hop: Hop, values: Tensor, temperature: Tensor, p: float, room: Room) -> Tensor:
        """The receivers' rows from the senders'; for gradients only `h` is kept, and more while there is room."""
        drop = None if self.norm is None else Drop.draw(p, training=self.training)
        own = [] if self.norm is None else [self.norm.weight, self.norm.bias]
        mlp = [*self.weights, *self.biases, *(part for norm in self.norms for part in (norm.weight, norm.bias))]
        parts = partial(self._run, hop, drop)
        if self.weight_edges is None and serves(h):
            deeper = self.mlp if self.norms else None
            step = Step(hop=hop, norm=self.norm, drop=drop, mlp=deeper, room=room, parts=parts)
            return convolved(step, h, values, temperature, *(own or [None, None]), *mlp)
        edge = [] if self.weight_edges is None else [self.weight_edges, self.bias_edges]
        return recomputed(parts, h, values, temperature, *edge, *own, *mlp)

    def _run(self, hop: Hop, drop: Drop | None, h: Tensor, values: Tensor, t: Tensor, *learnt: Tensor) -> Tensor:
        """The layer put together of its parts, for all that no loop is made for."""
        edge, learnt = (learnt[:2], learnt[2:]) if self.weight_edges is not None else ((), learnt)
        z = h
        if self.norm is not None:
            z, learnt = dropped(normalise(self.norm, h, *learnt[:2]).relu_(), drop), learnt[2:]
        out = self.mlp(aggregated(hop, values, z, edge, t) + hop.of_receivers(z), *learnt)
        return out if self.norm is None else out.add_(hop.of_receivers(h))

    def mlp(self, out: Tensor, *learnt: Tensor) -> Tensor:
        """From what was heard."""
        count = len(self.weights)
        weights, biases, norms = learnt[:count], learnt[count : 2 * count], learnt[2 * count :]
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            out = affine(out, weight, bias)
            if i < count - 1:
                out = normalise(self.norms[i], out, *norms[2 * i : 2 * i + 2]).relu_()
        return out


def finished(norm: nn.Module, drop: Drop | None, h: Tensor) -> Tensor:
    """What the read-out reads: dropout(relu(norm(h))); for gradients only `h` is kept."""
    learnt = cast("tuple[Tensor, Tensor]", (norm.weight, norm.bias))  # parameters, or what stands for them
    if serves(h):
        return activated(norm, drop, h, *learnt)

    def run(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return dropped(normalise(norm, h, weight, bias).relu_(), drop)

    return recomputed(run, h, *learnt)


def aggregated(hop: Hop, values: Tensor, z: Tensor, edge: tuple[Tensor, ...], t: Tensor) -> Tensor:
    """What receivers hear; `edge` is the weight and the bias for edge features, if messages have such."""
    if not edge:
        return softmax_aggregate(hop.csr, values, z, t)
    assert hop.edge_rows is not None, "it was checked"
    weight, bias = edge
    return edge_softmax_aggregate(hop.csr, values, z, hop.edge_rows.table, hop.entry_row, weight, bias, t)


def uniform_parameter(seed: int, *purpose: object, shape: tuple[int, ...], inputs: int) -> nn.Parameter:
    """Uniformly distributed, the more inputs the closer to zero."""
    return nn.Parameter(uniform(shape, inputs**-0.5, derive(seed, "init", *purpose)))
