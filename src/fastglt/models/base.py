"""The contract: what every network offers, and what a backbone adds so that the rest follows from its layers.

A backbone is one class, `docs/own-model.md` shows one. It says how many rounds of message passing it has and what
they compute; which weights are pruned, which part of the graph it needs, how it is described, built again, counted,
compiled and exported follows from that, and may be said better.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from fastglt.errors import InputError, require
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.models.layers import looks_at_all_nodes, weight_matrices
from fastglt.models.operations import Linear, Operation
from fastglt.models.units import Units, units_of
from fastglt.system.plugins import code_digest
from fastglt.system.seeds import own_random_state, own_randomness

if TYPE_CHECKING:
    from fastglt.models.exact import Division
    from fastglt.models.portable import Portable, PyGForm
    from fastglt.models.programs import Program
    from fastglt.models.strips import StripLayer


class Network(nn.Module, ABC):
    """A network that can be pruned: it runs on a prepared graph, with or without a soft edge mask."""

    twin: ClassVar[str] = ""  # module:Class of the same network from PyG's own layers, to measure against; "": none

    @property
    @abstractmethod
    def prunable(self) -> tuple[str, ...]:
        """The names of the parameters that are weight matrices to prune."""

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What describes the network in a ticket; plain JSON values."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What it is, in a few words for a message."""

    @abstractmethod
    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """The outputs of some nodes (None: of all); a soft edge mask multiplies messages along its edges.

        Of a network with a decoder (`models.links.LinkNetwork`) `nodes` are pairs, a row each.
        """

    @property
    def weight_shapes(self) -> dict[str, torch.Size]:
        """The shape of each prunable matrix, in order."""
        return {name: self.get_parameter(name).shape for name in self.prunable}

    @property
    def spared(self) -> int:
        """How many weights of other matrices are never pruned because the caller left them out."""
        return 0

    @property
    def identity(self) -> dict[str, Any]:
        """What tells runs with this network from others: its spec and, of a class from outside, its code."""
        code = code_digest(type(self), Network)
        return {"model": self.spec, **({} if code is None else {"model_code": code})}

    @property
    def public(self) -> nn.Module:
        """The module whose parameter names stand in tickets and messages."""
        return self

    def public_name(self, name: str) -> str:
        """The name of a parameter in tickets and messages."""
        return name

    def private_name(self, name: str) -> str:
        """The inverse of `public_name`."""
        return name

    def read_fields(self, graph: Graph) -> tuple[str, ...]:
        """The fields of a graph, edge_weight and edge_attr apart, that its outputs depend on."""
        return ()

    @property
    def reads_edge_values(self) -> bool:
        """Whether its outputs depend on the edge_weight or edge_attr of the data."""
        return False

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What a forward pass computes, each parameter named once; nothing where only a look at a pass can tell."""
        return ()

    @property
    def feature_weights(self) -> frozenset[str] | None:
        """The weight matrices that read the data's features; None if nobody knows."""
        linear = [part for part in self.operations if isinstance(part, Linear)]
        return frozenset(part.weight for part in linear if part.on_features) if linear else None

    @abstractmethod
    def units(self, x: Features, graph: Graph) -> Units:
        """The hidden units that can be pruned as one; refused, with the reason, where they are not known."""

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool) -> None:
        """Refuse data that the network cannot be trained on, before anything is trained."""

    def rebuilt(self) -> "Network | None":
        """The network built again from its spec, initial weights included; None if that does not tell enough."""
        return None

    def redrawn(self, seed: int) -> "Network":
        """A network like this one with other initial weights, which the seed decides; this one is kept."""
        fresh = copy.deepcopy(self)
        reset = getattr(fresh.public, "reset_parameters", None)
        if not callable(reset):
            got = type(fresh.public).__name__
            raise InputError(f"fresh_init needs a model with reset_parameters() (got {got}, without)")
        with own_random_state(torch.device("cpu")), own_randomness(seed):
            torch.manual_seed(seed)
            reset()
        for name in self.prunable:
            if torch.equal(fresh.get_parameter(name), self.get_parameter(name)):
                got = self.public_name(name)
                raise InputError(f"reset_parameters() must draw every weight matrix anew (got '{got}' unchanged)")
        return fresh

    def read_units(self, kept: Mapping[str, Tensor]) -> Tensor | None:
        """The hidden units that somebody reads under masks of the weights; None: all, or too many to save much.

        A pass that is given them as `only_units` may leave the others out: they reach no output and no gradient.
        """
        return None

    @property
    def not_exact_by_parts(self) -> str | None:
        """Why its layers cannot be trained part by part and stay exact (see `models.exact`); None: they can."""
        return "its layers are computed for all nodes at once"

    only_units: Tensor | None = None  # that a pass has to compute; None: all of them

    @contextmanager
    def computing(self, units: Tensor | None) -> Iterator[None]:
        """While passes run that need no other units."""
        self.only_units = units
        try:
            yield
        finally:
            self.only_units = None

    def program(self) -> "Program | None":
        """What is left to compute once nothing changes any more; None: the network itself is run."""
        return None

    def portable(self, graph: Graph, soft_edge_mask: Tensor | None) -> nn.Module:
        """A module of plain torch operations from x [nodes, features] to the outputs of all nodes of a graph."""
        raise InputError(f"only fastglt's backbones and PyG models can be exported (got {self.described})")

    def array_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "Portable | None":
        """What `portable` computes as few plain arrays; None if there is no such form."""
        return None

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm | None":
        """What `portable` computes as an ordinary PyG model and its data; None if there is no such form."""
        return None


class Backbone(Network):
    """A network on fastglt's sparse kernels, built from a spec; initial weights are decided by a seed.

    Its options are what its `__init__` takes beside in_channels, hidden, out_channels and seed: by keyword, with a
    type and a default, and kept as attributes of the same names.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    tried_out: ClassVar[bool] = False  # whether it has to run once before anybody knows that it fits

    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, *, dropout: float, seed: int, num_layers: int
    ) -> None:
        """`num_layers` is how many rounds of message passing there are: what a node hears of is so far away."""
        super().__init__()
        require(
            "be at least 1",
            in_channels=in_channels,
            hidden=hidden,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        require("lie in [0, 1)", dropout=dropout)
        self.in_channels, self.hidden, self.out_channels = in_channels, hidden, out_channels
        self.dropout, self.seed, self.num_layers = dropout, seed, num_layers

    @abstractmethod
    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """The outputs of the last hop's receivers from the features of the first hop's senders.

        There is one hop for each round of message passing; the receivers of one are the senders of the next.
        """

    def layers_in_strips(self) -> "Sequence[StripLayer] | None":
        """Its layers, each of which can be computed for a strip of nodes at a time; None: only all at once.

        `read_out` makes the outputs of what the last of them gives.
        """
        return None

    def read_out(self, rows: Tensor) -> Tensor:
        """What is made of the last layer's rows, when layers are computed in strips."""
        return rows

    division: "Division | None" = None  # by whose parts passes go, see `models.exact`; None: all nodes at once

    @property
    def not_exact_by_parts(self) -> str | None:
        """See `Network`; its layers have to say that they train."""
        layers = self.layers_in_strips()
        if not layers or not all(layer.trains for layer in layers):
            return "it does not say how a layer is trained for a part of the nodes"
        return None

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """The outputs of some nodes, from the part of the graph that they depend on."""
        if self.division is not None:
            from fastglt.models.exact import outputs

            every = outputs(self, self.division, x, graph, soft_edge_mask)
            return every if nodes is None else every[nodes]
        whole = nodes is not None and any(map(looks_at_all_nodes, self.modules()))
        hops = graph.hops(None if whole else nodes, depth=self.num_layers, near=True)
        out = self.outputs(x.of(hops[0].senders), hops, soft_edge_mask)
        return out if nodes is not None and not whole else hops[-1].picked(out, nodes)

    @property
    def prunable(self) -> tuple[str, ...]:
        """Every weight matrix, in the network's order: see `weight_matrices`."""
        names: dict[int, str] = {}  # one name for each parameter, although layers may share it
        for name, _, parameter in weight_matrices(self):
            names.setdefault(id(parameter), name)
        return tuple(names.values())

    @property
    def spec(self) -> dict[str, Any]:
        """The recipe: built again from it, a backbone has bit for bit the same initial weights."""
        from fastglt.models.options import arguments_of

        names = arguments_of(type(self))
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            rule = "a model must keep each of its options as an attribute"
            raise InputError(f"{rule} (got {type(self).__name__} without {missing[0]})")
        return {"name": self.name, **{name: getattr(self, name) for name in names}}

    @property
    def described(self) -> str:
        """Its name, and the options that are not as usual."""
        from fastglt.models.options import options_of

        unusual = [
            f"{option.name} {getattr(self, option.name)}"
            for option in options_of(type(self)).values()
            if getattr(self, option.name) != option.default
        ]
        return f"{self.name} with {', '.join(unusual)}" if unusual else self.name

    def units(self, x: Features, graph: Graph) -> Units:
        """Those that its operations name."""
        return units_of(self.operations, self.weight_shapes, self.modules(), self.described)

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool) -> None:
        """Refuse other features, too few outputs, and a network that cannot be built again or trained whole."""
        from fastglt.models.registry import check_registered

        check_registered(type(self))
        if self.in_channels != x.num_features:
            raise InputError(f"the model must take {x.num_features} features (got {self.in_channels})")
        if self.out_channels < num_outputs:
            raise InputError(f"the model must give {num_outputs} outputs for each node (got {self.out_channels})")
        for name, parameter in self.named_parameters():
            if parameter.dtype != torch.float32:
                raise InputError(f"fastglt's own models are single precision (got '{name}' as {parameter.dtype})")
            if not parameter.requires_grad:
                raise InputError(f"fastglt's own models are trained whole (got '{name}' with requires_grad=False)")

    def rebuilt(self) -> "Backbone":
        """From its spec."""
        from fastglt.models.registry import build

        return build(self.spec)

    def redrawn(self, seed: int) -> "Backbone":
        """From its spec with another seed."""
        from fastglt.models.registry import build

        return build({**self.spec, "seed": seed})

    def portable(self, graph: Graph, soft_edge_mask: Tensor | None) -> nn.Module:
        """Its form in arrays if it has one, else the network itself on the graph, its kernels in plain torch."""
        from fastglt.models.portable import OnGraph

        form = self.array_form(graph, soft_edge_mask)
        return OnGraph(self, graph, soft_edge_mask).eval() if form is None else form


def state_of(network: Network, state: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """A network's state, or another one for it, under the names that stand in tickets."""
    given = network.state_dict() if state is None else state
    return {network.public_name(name): value for name, value in given.items()}
