"""Any PyG model under masks, untouched: soft scores multiply its messages, hard masks shrink its graph."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.inputs import LABELS
from fastglt.models.base import Network
from fastglt.models.pyg_checks import default_prunable, message_passing_layers, refuse_unsupported, unused_weights
from fastglt.models.pyg_fused import Fused, edges_of_messages
from fastglt.models.units import Units
from fastglt.system.seeds import own_randomness

_EDGE_INPUTS = ("edge_weight", "edge_attr")


class PyGNetwork(Network):
    """A private copy of a user's model, callable on a prepared graph.

    The model's forward takes ``(x, edge_index, …)``, where every field of nodes or edges that the data has under
    the name of an argument is passed too (edge_weight, edge_attr, batch, pe, …), or a single ``data`` with all of
    them. Labels and masks of the split are never given. Messages of `MessagePassing` layers can be weighed.
    """

    _PREFIX = "module."

    def __init__(self, module: nn.Module, *, prunable: Sequence[str] | None = None) -> None:
        super().__init__()
        refuse_unsupported(module)
        self._chosen = prunable is not None
        self._prunable = tuple(self._PREFIX + name for name in _prunable_names(module, prunable))
        self._arguments = _forward_arguments(module)
        self._dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
        self.module = _copy(module)
        _refuse_one_way_state(self.module)
        self._graph: Graph | None = None
        self._soft: Tensor | None = None  # a soft edge mask, and 1 for self-loops
        self._message_edges = torch.empty(0, dtype=torch.int64)
        for layer in message_passing_layers(self.module):
            layer.register_propagate_forward_pre_hook(self._check_edges)
            layer.register_message_forward_hook(self._weigh_messages)
        self.fused = Fused(self.module)

    @property
    def prunable(self) -> tuple[str, ...]:
        """The weight matrices found by `default_prunable`, or those the caller named."""
        return self._prunable

    @property
    def public(self) -> nn.Module:
        """The model."""
        module: nn.Module = self.module
        return module

    def public_name(self, name: str) -> str:
        """As the model's owner knows it."""
        return name.removeprefix(self._PREFIX)

    def private_name(self, name: str) -> str:
        """Inside this wrapper."""
        return self._PREFIX + name

    @property
    def described(self) -> str:
        """It is its owner's."""
        return "a user's model"

    @property
    def spared(self) -> int:
        """Of the matrices that would be pruned had the caller not named others."""
        spared = set(default_prunable(self.module)) - set(map(self.public_name, self._prunable))
        return sum(self.module.get_parameter(name).numel() for name in spared) if self._chosen else 0

    @property
    def spec(self) -> dict[str, Any]:
        """The class; the architecture itself stays with its owner."""
        kind = type(self.module)
        prunable = [self.public_name(name) for name in self._prunable]
        return {"name": "pyg", "class": f"{kind.__module__}.{kind.__qualname__}", "prunable": prunable}

    @property
    def reads_edge_values(self) -> bool:
        """Whether edge_weight or edge_attr are passed to it if the data has them."""
        return self._takes_data or any(map(self._accepts, _EDGE_INPUTS))

    def read_fields(self, graph: Graph) -> tuple[str, ...]:
        """The fields of a graph that are passed to it, edge_weight and edge_attr apart."""
        there = (*graph.node_fields, *graph.edge_fields)
        return there if self._takes_data else tuple(name for name in there if self._accepts(name))

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Run the model on the graph's own edges, whole: how far it looks is its own affair."""
        graph = graph.as_given
        if soft_edge_mask is not None:
            self._graph = graph
            self._soft = torch.cat([soft_edge_mask, soft_edge_mask.new_ones(1)])
        try:
            dense = x.dense.to(self._dtype)
            self.fused.begin(x, dense, graph, soft_edge_mask)
            with own_randomness(torch.initial_seed()):
                out = self._call(dense, graph)
            return out if nodes is None else out[nodes]
        finally:
            self._graph = self._soft = None
            self.fused.end()

    def units(self, x: Features, graph: Graph) -> Units:
        """Found by trying: see `find_units`."""
        from fastglt.models.pyg_units import find_units

        twin = copy.deepcopy(self).eval()
        twin.fused.wanted = False  # layers are called as the model calls them
        shapes = {self.public_name(name): shape for name, shape in self.weight_shapes.items()}
        found = find_units(twin.module, lambda: twin(x, graph), list(shapes), shapes)
        return replace(found, ends={self.private_name(name): ends for name, ends in found.ends.items()})

    def check_fits(self, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool = True) -> None:
        """Try a copy out, and refuse a model that cannot be pruned or trained on this data.

        Weight matrices that take no part in the prediction are not prunable. Without soft edges the
        model may do with its edges what it likes, such as dropping some of them at random.
        """
        idle = unused_weights(self, x, graph, num_outputs, soft_edges=soft_edges)
        if idle and self._chosen:
            got = self.public_name(idle[0])
            raise InputError(f"prunable must name trainable weights that the prediction depends on (got '{got}')")
        self._prunable = tuple(name for name in self._prunable if name not in idle)

    def portable(self, graph: Graph, soft_edge_mask: Tensor | None) -> nn.Module:
        """See `UsersModel`."""
        from fastglt.models.pyg_portable import UsersModel

        return UsersModel(self, graph, soft_edge_mask).eval()

    def __deepcopy__(self, memo: dict[int, Any]) -> "PyGNetwork":
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(_copy(self.__dict__, memo))
        return twin

    def _call(self, x: Tensor, graph: Graph) -> Tensor:
        edges = {name: getattr(graph, name) for name in _EDGE_INPUTS if getattr(graph, name) is not None}
        self._refuse_missing_edge_attr(edges)
        fields = {**graph.node_fields, **graph.edge_fields, **edges}
        if self._takes_data:
            from torch_geometric.data import Data

            return self.module(Data(x=x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **fields))  # type: ignore[no-any-return]
        keywords = {name: value for name, value in fields.items() if self._accepts(name)}
        attr = edges.get("edge_attr")
        if attr is not None and attr.dim() == 1 and self._accepts("edge_weight") and "edge_attr" not in keywords:
            keywords.setdefault("edge_weight", attr)  # one number for each edge, under the other of its two names
        self._refuse_missing(graph, keywords)
        if all(self._by_name(name) for name in ("x", "edge_index")):
            return self.module(x=x, edge_index=graph.edge_index, **keywords)  # type: ignore[no-any-return]
        return self.module(x, graph.edge_index, **keywords)  # type: ignore[no-any-return]

    def _refuse_missing(self, graph: Graph, given: Mapping[str, Tensor]) -> None:
        """Refuse a forward that asks for what it cannot be given, silently or not."""
        for name in list(self._arguments)[2:]:
            if name in graph.withheld and name not in given:
                answers = "labels and split would tell it the answers"
                other = "the data has it, but not for each node or edge"
                reason = answers if name in LABELS else other
                raise InputError(f"the model's forward cannot be given '{name}': {reason}; build it without")
            if self._arguments[name].default is inspect.Parameter.empty and name not in given:
                raise InputError(
                    f"the model's forward may need x, edge_index and what the data has of nodes or edges "
                    f"(got '{name}', which the data does not have)"
                )

    @property
    def _takes_data(self) -> bool:
        names = list(self._arguments)
        return bool(names) and (names[0] in ("data", "batch") or len(names) == 1)

    def _by_name(self, name: str) -> bool:
        return name in self._arguments and self._arguments[name].kind is not inspect.Parameter.POSITIONAL_ONLY

    def _accepts(self, name: str) -> bool:
        return name in self._arguments and bool(getattr(self.module, f"supports_{name}", True))

    def _refuse_missing_edge_attr(self, edges: dict[str, Any]) -> None:
        if "edge_attr" in edges:
            return
        for layer in message_passing_layers(self.module):
            width = getattr(layer, "edge_dim", None)
            if width:
                kind = type(layer).__name__
                raise InputError(f"{kind}(edge_dim={width}) needs data.edge_attr, which the data does not have")

    def _check_edges(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        """Refuse a layer that sees other edges than those it was given: scores would go astray."""
        if self._graph is None:
            return
        found = edges_of_messages(inputs[0], self._graph)
        if found is None:
            raise InputError(
                f"{type(layer).__name__} passes messages along other edges than the edge_index it was given; "
                "only self-loops may be added: move edge dropping, sorting or sparse conversion out of the model"
            )
        self._message_edges = found

    def _weigh_messages(self, layer: Any, inputs: Any, output: Any) -> Any:
        if self._soft is None:
            return None
        fits = isinstance(output, Tensor) and output.dim() >= abs(layer.node_dim)
        if not fits or output.shape[layer.node_dim] != self._message_edges.numel():
            got = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
            raise InputError(f"{type(layer).__name__}.message must return one tensor, a row per edge (got {got})")
        shape = [1] * output.dim()
        shape[layer.node_dim] = -1
        return output * self._soft.index_select(0, self._message_edges).to(output.dtype).view(shape)


def _prunable_names(module: nn.Module, chosen: Sequence[str] | None) -> tuple[str, ...]:
    if chosen is None:
        return default_prunable(module)
    known = dict(module.named_parameters(remove_duplicate=False))
    for name in chosen:
        if name not in known:
            raise InputError(f"prunable must name parameters of the model (got '{name}')")
        if "parametrizations" in name.split("."):
            raise InputError(f"prunable must name weights, not what they are computed from (got '{name}')")
    return tuple(dict.fromkeys(chosen))


def _forward_arguments(module: nn.Module) -> dict[str, inspect.Parameter]:
    """What the model's forward takes by name; a forward of ``*args`` takes x and edge_index."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(module.forward).parameters
    arguments = {name: parameter for name, parameter in parameters.items() if parameter.kind not in several}
    if list(arguments) == ["x"] and len(parameters) == 1:
        raise InputError("the model's forward must take x and edge_index, or data (got x alone)")
    return arguments


def _refuse_one_way_state(module: nn.Module) -> None:
    try:
        module.load_state_dict(module.state_dict())
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"the model must load the state that it gives (got {reason})") from error


def _copy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A deep copy; PyG's Sequential draws a name from Python's random numbers when it is copied."""
    try:
        with own_randomness(None):
            return copy.deepcopy(value, memo)
    except Exception as error:
        raise InputError(f"the model must be copyable with copy.deepcopy ({error})") from error
