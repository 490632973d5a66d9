"""Any PyG model under masks, untouched: soft scores multiply its messages, hard masks shrink its graph."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.features import Features
from fastglt.graph import Graph
from fastglt.models.base import Network

_EDGE_INPUTS = ("edge_weight", "edge_attr")


class PyGNetwork(Network):
    """A private copy of a user's model, callable on a prepared graph.

    The model's forward takes ``(x, edge_index, …)``, where edge_weight and edge_attr are passed by name
    if the data has them, or a single ``data``. Every message must come from a `MessagePassing` layer.
    """

    PREFIX = "module."

    def __init__(self, module: nn.Module, *, prunable: Sequence[str] | None = None) -> None:
        super().__init__()
        _refuse_unsupported(module)
        self.module = copy.deepcopy(module)
        names = default_prunable(module) if prunable is None else tuple(prunable)
        parameters = dict(module.named_parameters())
        for name in names:
            if name not in parameters:
                raise InputError(f"prunable must name parameters of the model (got '{name}')")
        self._prunable = tuple(self.PREFIX + name for name in names)
        self._parameters_of_forward = dict(inspect.signature(module.forward).parameters)
        self._graph: Graph | None = None
        self._column_score: Tensor | None = None
        for layer in _message_passing_layers(self.module):
            layer.register_propagate_forward_pre_hook(self._check_edges)
            layer.register_message_forward_hook(self._weigh_messages)

    @property
    def prunable(self) -> tuple[str, ...]:
        """The weight matrices found by `default_prunable`, or those the caller named."""
        return self._prunable

    @property
    def spec(self) -> dict[str, Any]:
        """The class; the architecture itself stays with its owner."""
        kind = type(self.module)
        prunable = [name.removeprefix(self.PREFIX) for name in self._prunable]
        return {"name": "pyg", "class": f"{kind.__module__}.{kind.__qualname__}", "prunable": prunable}

    def forward(self, x: Features, graph: Graph, edge_score: Tensor | None = None) -> Tensor:
        """Run the model on the graph's own edges."""
        self._graph = graph
        if edge_score is not None:
            ones = edge_score.new_ones(1)
            self._column_score = torch.cat([edge_score, ones]).index_select(0, graph.column_edge)
        try:
            return self._call(x.dense, graph)
        finally:
            self._graph = self._column_score = None

    def probe(self, x: Features, graph: Graph, num_classes: int) -> None:
        """Run once and refuse a model that cannot be trained on this data."""
        device = x.dense.device
        was_training = self.training
        scores = torch.ones(graph.num_edges, device=device)
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                out = self.to(device).eval()(x, graph, scores)
        except InputError:
            raise
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(f"the model cannot run on this data: {type(error).__name__}: {reason}") from error
        finally:
            self.train(was_training)
        expected = f"one row of at least {num_classes} class scores for each of {graph.num_nodes} nodes"
        if (
            not isinstance(out, Tensor)
            or out.dim() != 2
            or out.shape[0] != graph.num_nodes
            or out.shape[1] < num_classes
        ):
            got = f"shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
            raise InputError(f"the model must return {expected} (got {got})")

    def _call(self, x: Tensor, graph: Graph) -> Tensor:
        names = list(self._parameters_of_forward)
        if names and (names[0] in ("data", "batch") or len(names) == 1):
            from torch_geometric.data import Data

            extra = {name: getattr(graph, name) for name in _EDGE_INPUTS if getattr(graph, name) is not None}
            return self.module(Data(x=x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **extra))  # type: ignore[no-any-return]
        keywords = {}
        for name in _EDGE_INPUTS:
            supported = getattr(self.module, f"supports_{name}", True)
            if name in names and supported and getattr(graph, name) is not None:
                keywords[name] = getattr(graph, name)
        for name in names[2:]:
            parameter = self._parameters_of_forward[name]
            required = parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            )
            if required and name not in keywords:
                raise InputError(f"the model's forward needs '{name}', which the data does not have")
        return self.module(x, graph.edge_index, **keywords)  # type: ignore[no-any-return]

    def _check_edges(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        """Refuse a layer that sees other edges than those it was given: scores would go astray."""
        if self._graph is None:
            return
        edge_index = inputs[0]
        given = self._graph.edge_index
        real = int((self._graph.column_edge < self._graph.num_edges).sum())
        same = (
            isinstance(edge_index, Tensor)
            and not edge_index.is_sparse
            and edge_index.layout == torch.strided
            and edge_index.shape[1] >= real
            and torch.equal(edge_index[:, :real], given[:, :real])
        )
        if not same:
            raise InputError(
                f"{type(layer).__name__} passes messages along other edges than the edge_index it was given; "
                "only self-loops may be added: move edge dropping, sorting or sparse conversion out of the model"
            )

    def _weigh_messages(self, layer: Any, inputs: Any, output: Any) -> Any:
        score, graph = self._column_score, self._graph
        if score is None or graph is None:
            return None
        if not isinstance(output, Tensor):
            raise InputError(f"{type(layer).__name__}.message must return one tensor (got {type(output).__name__})")
        count = output.shape[layer.node_dim]
        real = int((graph.column_edge < graph.num_edges).sum())
        if count > real:  # self-loops, the data's or added ones, come last and keep their messages
            score = torch.cat([score[:real], score.new_ones(count - real)])
        shape = [1] * output.dim()
        shape[layer.node_dim] = -1
        return output * score.view(shape)


def default_prunable(module: nn.Module) -> tuple[str, ...]:
    """The names of a model's weight matrices: no biases, norms, embeddings or attention vectors."""
    from torch_geometric.nn import Linear as PyGLinear

    names = []
    for prefix, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            linear = isinstance(owner, nn.Linear | PyGLinear) and name == "weight"
            matrix = parameter.dim() >= 2 and min(parameter.shape) > 1 and not name.startswith("att")
            if linear or (matrix and not isinstance(owner, nn.Embedding)):
                names.append(f"{prefix}.{name}" if prefix else name)
    return tuple(dict.fromkeys(names))


def _message_passing_layers(module: nn.Module) -> list[Any]:
    from torch_geometric.nn import MessagePassing

    return [layer for layer in module.modules() if isinstance(layer, MessagePassing)]


def _refuse_unsupported(module: nn.Module) -> None:
    from torch_geometric.nn import HeteroConv

    layers = _message_passing_layers(module)
    if any(isinstance(layer, HeteroConv) for layer in module.modules()) or isinstance(module, torch.fx.GraphModule):
        raise InputError("heterogeneous models are not supported (got a model over several node or edge types)")
    if not layers:
        raise InputError(f"the model needs at least one MessagePassing layer (got none in {type(module).__name__})")
    for layer in layers:
        if getattr(layer, "cached", False):
            raise InputError(
                f"{type(layer).__name__}(cached=True) keeps the unpruned graph; build the model with cached=False"
            )
    for name, parameter in module.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise InputError(
                f"parameter '{name}' has no shape yet; run the model once before (lazy layers, -1 channels)"
            )
