"""A network that answers for pairs: any network of ours or of a user's as the encoder, and a decoder after it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models.base import Backbone, Network
from fastglt.models.decoders import Decoder, make_decoder
from fastglt.models.operations import Attention, Linear, Operation
from fastglt.models.units import Units, units_of

if TYPE_CHECKING:
    from fastglt.models.portable import Portable, PyGForm
    from fastglt.models.programs import Program

ENCODER, DECODER = "encoder.", "decoder."
KEY = "link-decoder"  # where a spec has the decoder's: no option of a model can have that name


class LinkNetwork(Network):
    """Rows for all nodes by the encoder, a number for each pair of them by the decoder.

    Both are trained, masked, pruned, saved and counted as one network.
    """

    def __init__(self, encoder: Network, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """The number of each pair; None: the encoder's rows for all nodes, which pairs are decoded from."""
        h: Tensor = self.encoder(x, graph, soft_edge_mask)
        return h if nodes is None else self.decoder(h, nodes)

    @property
    def prunable(self) -> tuple[str, ...]:
        """The encoder's matrices, then the decoder's."""
        own = [name for name, value in self.decoder.named_parameters() if value.dim() == 2]
        return (*(ENCODER + name for name in self.encoder.prunable), *(DECODER + name for name in own))

    @property
    def spec(self) -> dict[str, Any]:
        """The encoder's, and beside it the decoder's."""
        width = {} if isinstance(self.encoder, Backbone) else {"width": self.width}
        return {**self.encoder.spec, KEY: {**self.decoder.spec, **width}}

    @property
    def width(self) -> int:
        """Of the rows that are decoded; 1 where the decoder takes any."""
        return int(self.decoder.learnt[0].shape[0]) if self.decoder.learnt else 1

    @property
    def identity(self) -> dict[str, Any]:
        """The encoder's, with the decoder in its spec."""
        return {**self.encoder.identity, "model": self.spec}

    @property
    def described(self) -> str:
        """The encoder, and what decodes."""
        return f"{self.encoder.described} and a decoder, {self.decoder.spec['name']}"

    @property
    def spared(self) -> int:
        """Of the encoder."""
        return self.encoder.spared

    @property
    def public(self) -> nn.Module:
        """Encoder and decoder, the former as its owner knows it."""
        return nn.ModuleDict({"encoder": self.encoder.public, "decoder": self.decoder})

    def public_name(self, name: str) -> str:
        """The encoder's names are its own."""
        inner = name.removeprefix(ENCODER)
        return name if inner == name else ENCODER + self.encoder.public_name(inner)

    def private_name(self, name: str) -> str:
        """The inverse."""
        inner = name.removeprefix(ENCODER)
        return name if inner == name else ENCODER + self.encoder.private_name(inner)

    def read_fields(self, graph: Graph) -> tuple[str, ...]:
        """As the encoder."""
        return self.encoder.read_fields(graph)

    @property
    def reads_edge_values(self) -> bool:
        """As the encoder."""
        return self.encoder.reads_edge_values

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The encoder's, if it tells, then the decoder's."""
        theirs, mine = self.encoder.operations, self.decoder.operations
        last = mine[0].reads if mine else "classes"  # what the encoder's last units are: the decoder's first
        found = [_renamed(one, ENCODER, last) for one in theirs]
        return (*found, *(_renamed(one, DECODER, last) for one in mine)) if theirs else ()

    @property
    def feature_weights(self) -> frozenset[str] | None:
        """Of the encoder."""
        found = self.encoder.feature_weights
        return None if found is None else frozenset(ENCODER + name for name in found)

    def units(self, x: Features, graph: Graph) -> Units:
        """Those that encoder and decoder name; what the encoder hands over is hidden, if a matrix reads it."""
        if not self.encoder.operations:
            rule = "structure must be weights for a model of your own with a decoder"
            raise InputError(f"{rule} (got units, and {self.described}); fastglt's own models have units")
        return units_of(self.operations, self.weight_shapes, self.modules(), self.described)

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool) -> None:
        """As the encoder, whose rows may be as wide as they like."""
        self.encoder.check_fits(x, graph, 1, soft_edges=soft_edges)

    def rebuilt(self) -> "LinkNetwork | None":
        """From its spec, if the encoder can be."""
        return build_links(self.spec) if isinstance(self.encoder, Backbone) else None

    def redrawn(self, seed: int) -> "LinkNetwork":
        """Another encoder, another decoder."""
        encoder = self.encoder.redrawn(seed)
        return with_decoder(encoder, self.decoder.spec, width=self.width, seed=seed)

    def program(self) -> "Program | None":
        """The encoder's."""
        return self.encoder.program()

    def portable(self, graph: Graph, soft_edge_mask: Tensor | None) -> nn.Module:
        """See `PortableLinks`."""
        return PortableLinks(self.encoder.portable(graph, soft_edge_mask), self.decoder.cpu())

    def array_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "Portable | None":
        """The encoder's; the decoder's arrays are its parameters."""
        return self.encoder.array_form(graph, soft_edge_mask)

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm | None":
        """The encoder's with a class for the decoder, whose layers are PyTorch's."""
        form = self.encoder.pyg_form(graph, soft_edge_mask)
        if form is None:
            return None
        state = {ENCODER + name: value for name, value in form.state.items()}
        matrices, sizes = [part for part in self.decoder.learnt if part.dim() == 2], list[int]()
        for i, (weight, bias) in enumerate(zip(matrices, self.decoder.learnt[len(matrices) :], strict=True)):
            state |= {f"lins.{i}.weight": weight.T, f"lins.{i}.bias": bias}
            sizes = [*(sizes or [weight.shape[0]]), weight.shape[1]]
        return replace(form, state=state, decoder=Path(__file__).with_name("pyg_decoders.py"), sizes=tuple(sizes))


class PortableLinks(nn.Module):
    """From x [nodes, features] and pairs [pairs, 2] to a number for each pair, in plain torch operations."""

    def __init__(self, encoder: nn.Module, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, x: Tensor, pairs: Tensor) -> Tensor:
        """The numbers, [pairs, 1]."""
        h = self.encoder(x)
        both = h.index_select(0, pairs[:, 0]) * h.index_select(0, pairs[:, 1])
        return self.decoder.score(both, *self.decoder.learnt)


def with_decoder(encoder: Network, decoder: Mapping[str, Any], *, width: int, seed: int) -> LinkNetwork:
    """An encoder that gives rows of a width, and a decoder for them as `make_decoder` takes it."""
    return LinkNetwork(encoder, make_decoder(**decoder, width=width, seed=seed))


def build_links(spec: Mapping[str, Any]) -> LinkNetwork:
    """A network for pairs from its spec, with its initial weights."""
    from fastglt.models.registry import build

    encoder = build({name: value for name, value in spec.items() if name != KEY})
    return with_decoder(encoder, spec[KEY], width=encoder.out_channels, seed=encoder.seed)


def measured_width(encoder: Network, x: Features, graph: Graph) -> int:
    """How wide an encoder's rows are, of a backbone or of a user's model, which is run once to see."""
    if isinstance(encoder, Backbone):
        return encoder.out_channels
    mode = encoder.training
    with torch.no_grad():
        rows = encoder.eval()(x, graph)
    encoder.train(mode)
    if not isinstance(rows, Tensor) or rows.dim() != 2:
        raise InputError(f"a model for links must give a row for each node (got {type(rows).__name__})")
    return rows.shape[1]


def _renamed(operation: Operation, prefix: str, last: str) -> Operation:
    """With the names that its parameters have in the whole network, and that of the encoder's last units."""
    if isinstance(operation, Linear):
        bias = None if operation.bias is None else prefix + operation.bias
        writes = last if operation.writes == "classes" else operation.writes
        return replace(operation, weight=prefix + operation.weight, bias=bias, writes=writes)
    if isinstance(operation, Attention):
        product = _renamed(operation.product, prefix, last)
        assert isinstance(product, Linear)
        one, two = operation.parameters
        return replace(operation, product=product, parameters=(prefix + one, prefix + two))
    return replace(operation, parameters=tuple(prefix + name for name in operation.parameters))
