"""What a user's PyG model must be like: which of its weights can be pruned, and what is refused with a reason."""

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models.base import Network
from fastglt.models.layers import weight_matrices
from fastglt.system.process import is_out_of_memory
from fastglt.system.seeds import own_random_state


def message_passing_layers(module: nn.Module) -> list[Any]:
    """Every layer of PyG that sends messages."""
    if "torch_geometric" not in sys.modules:  # nobody can have made one
        return []
    from torch_geometric.nn import MessagePassing

    return [layer for layer in module.modules() if isinstance(layer, MessagePassing)]


def default_prunable(module: nn.Module) -> tuple[str, ...]:
    """The names of a model's trainable weight matrices: see `weight_matrices`.

    A single row or column is one in a linear layer only.
    """
    from torch_geometric.nn import Linear

    names: dict[int, str] = {}  # one name for each parameter, although modules may share it
    for name, owner, parameter in weight_matrices(module):
        wide = sum(size > 1 for size in parameter.shape) >= 2
        if parameter.requires_grad and (wide or isinstance(owner, nn.Linear | Linear)):
            names.setdefault(id(parameter), name)
    return tuple(names.values())


def refuse_unsupported(module: nn.Module) -> None:
    """Refuse what no data could make work."""
    from torch_geometric.nn import HANConv, HeteroConv, HGTConv, HypergraphConv

    for part in module.modules():
        kind = type(part).__name__
        if isinstance(part, HeteroConv | HGTConv | HANConv | torch.fx.GraphModule):
            raise InputError(f"heterogeneous and traced models are not supported (got {kind})")
        if isinstance(part, HypergraphConv):
            raise InputError(f"hypergraphs are not supported: an edge joins two nodes (got {kind})")
        if isinstance(part, torch.jit.ScriptModule) or hasattr(part, "_orig_mod") or part._compiled_call_impl:
            raise InputError(f"compiled models hide their messages; pass the model before compilation (got {kind})")
        if getattr(part, "cached", False) is True:
            raise InputError(f"{kind}(cached=True) keeps the unpruned graph; build the model with cached=False")
    if not message_passing_layers(module):
        raise InputError(f"the model needs at least one MessagePassing layer (got none in {type(module).__name__})")
    for name, parameter in module.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise InputError(
                f"parameter '{name}' has no shape yet; run the model once before (lazy layers, -1 channels)"
            )
        if parameter.is_meta:
            raise InputError(
                f"the model must have numbers (got '{name}' on the meta device); to_empty() and load them"
            )
        real = parameter.dtype in (torch.float32, torch.float64)
        if not real and (parameter.is_floating_point() or parameter.is_complex()):
            raise InputError(f"parameters must be float32 or float64 (got {parameter.dtype} in '{name}')")
    for name, value in module.state_dict().items():
        if not isinstance(value, Tensor):
            raise InputError(f"the model's state must consist of tensors (got {type(value).__name__} in '{name}')")


def unused_weights(
    network: Network, x: Features, graph: Graph, num_outputs: int, *, soft_edges: bool
) -> tuple[str, ...]:
    """Run copies of the network; refuse it if that fails, and tell which prunable weights have no gradient."""
    device = x.device
    soft_edges = soft_edges and graph.num_edges > 0
    scores = None
    if soft_edges:
        scores = torch.ones(graph.num_edges, dtype=torch.float32, device=device, requires_grad=True)
    with own_random_state(device), torch.enable_grad():
        trial = copy.deepcopy(network).to(device)
        calm = _run(trial.eval(), x, graph, scores)
        _check_output(calm, graph.num_nodes, num_outputs)
        if soft_edges and graph.num_edges > 1:
            _refuse_memory(trial, copy.deepcopy(network).to(device).eval(), x, graph)
        used = _differentiate(calm, trial, scores)
        out = _train(trial, x, graph, scores)
        _check_output(out, graph.num_nodes, num_outputs)
        used |= _differentiate(out, trial, scores)
    return tuple(name for name in network.prunable if name not in used)


def _differentiate(out: Tensor, trial: Network, scores: Tensor | None) -> set[str]:
    """The names of the parameters, shared ones under every name, that the output depends on."""
    every = dict(trial.named_parameters(remove_duplicate=False))
    trainable = {name: parameter for name, parameter in every.items() if parameter.requires_grad}
    wanted = [*trainable.values(), *([] if scores is None else [scores])]
    _refuse_other_parameters(out, wanted)
    found: tuple[Tensor | None, ...] = ()
    if out.requires_grad:
        found = _gradients(out, wanted, trial)
    for name, gradient in zip(trainable, found, strict=False):
        if gradient is not None and gradient.layout != torch.strided:
            got = trial.public_name(name)
            raise InputError(f"gradients must be dense (got a sparse one of '{got}'; embeddings have sparse=False)")
    used = {name for name, gradient in zip(trainable, found, strict=False) if gradient is not None}
    if not used:
        raise InputError("the model must have trainable parameters that its prediction depends on (got none)")
    if scores is not None and found[-1] is None:
        raise InputError("the model must pass its messages in MessagePassing.propagate (got no message at all)")
    return used


def _refuse_other_parameters(out: Tensor, own: list[Tensor]) -> None:
    """A copy of a model must not compute with what belongs to the original."""
    ours, seen, todo = {id(tensor) for tensor in own}, set(), [out.grad_fn]
    while todo:
        step = todo.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        leaf = getattr(step, "variable", None)
        if isinstance(leaf, nn.Parameter) and id(leaf) not in ours:
            raise InputError(
                f"the model must compute with parameters of its own (got one of shape {tuple(leaf.shape)} that is "
                "not); layers belong in an nn.ModuleList, and a lambda over self stays with the original in a copy"
            )
        todo += [before for before, _ in step.next_functions]


def _gradients(out: Tensor, wanted: Sequence[Tensor], trial: Network) -> tuple[Tensor | None, ...]:
    """Of an output's sum. Refuse a model that computes it again meanwhile, when masks and scores are gone."""
    remedy = "activation checkpointing has to be turned off"
    try:
        found = torch.autograd.grad(out.sum(), wanted, allow_unused=True, retain_graph=True)
        with _without_parameters(trial):
            again = torch.autograd.grad(out.sum(), wanted, allow_unused=True)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        reason = str(error).strip().split("\n")[0]
        hint = f"; {remedy}" if "checkpoint" in reason.lower() else ""
        raise InputError(f"the model must be differentiable (got {reason}){hint}") from error
    if not all(map(_alike, found, again)):
        raise InputError(f"the model must run once (got one that runs again in the backward pass); {remedy}")
    return found


@contextmanager
def _without_parameters(trial: Network) -> Iterator[None]:
    """Whoever asks for a parameter finds no numbers."""
    places = [(part._parameters, name, p) for part in trial.modules() for name, p in part._parameters.items()]
    try:
        for parameters, name, value in places:
            parameters[name] = None if value is None else nn.Parameter(torch.full_like(value, torch.nan))
        yield
    finally:
        for parameters, name, value in places:
            parameters[name] = value


def _alike(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.layout != torch.strided:  # refused for that
        return True
    if one.shape != other.shape or not one.is_floating_point():
        return torch.equal(one, other)
    one, other = one.detach(), other.detach()
    largest = float(one.abs().nan_to_num(0.0).max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=1e-3, atol=1e-4 * largest, equal_nan=True)


def _train(trial: Network, x: Features, graph: Graph, scores: Tensor | None) -> Any:
    """The output in training mode; what training changes must be in the state that is kept, if it matters later."""
    kept = trial.state_dict().keys()
    before = {name: value.clone() for name, value in trial.named_buffers() if name not in kept}
    out = _run(trial.train(), x, graph, scores)
    changed = [name for name, value in trial.named_buffers() if name in before and not _alike(before[name], value)]
    if changed:
        now = _run(trial.eval(), x, graph, scores)
        for name in changed:
            owner, _, buffer = name.rpartition(".")
            setattr(trial.get_submodule(owner), buffer, before[name])
        if not _alike(now, _run(trial, x, graph, scores)):
            got = trial.public_name(changed[0])
            raise InputError(f"buffers that training changes must be persistent (got '{got}', which is not)")
    return out


def _run(trial: Network, x: Features, graph: Graph, scores: Tensor | None, where: str = "this data") -> Any:
    """The network's output; its inputs are copies, in case it writes into them."""
    graph = graph.as_given
    names = [name for name in ("edge_index", "edge_weight", "edge_attr") if getattr(graph, name) is not None]
    copies: dict[str, Any] = {name: getattr(graph, name).clone() for name in names}
    features = Features(x.dense.clone())
    inputs = {"x": features.dense, **copies}
    for kind in ("node_fields", "edge_fields"):
        copies[kind] = {name: value.clone() for name, value in getattr(graph, kind).items()}
        inputs |= copies[kind]
    names += trial.read_fields(graph)
    torch.manual_seed(0)
    before = {name: value._version for name, value in inputs.items()}  # a clone in inference mode begins with 1
    try:
        out = trial(features, replace(graph, **copies), scores)
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()}".split("\n")[0].rstrip(": ")
        passed = " and ".join([", ".join(["x", *names[:-1]]), names[-1]])
        raise InputError(f"the model must run on {where} (got {reason}; it is given {passed} alone)") from error
    for name, value in inputs.items():
        if value._version > before[name]:
            raise InputError(f"the model must leave its inputs alone (got one that writes into {name})")
    return out


def _check_output(out: object, num_nodes: int, num_outputs: int) -> None:
    fits = isinstance(out, Tensor) and out.dim() == 2 and out.shape[0] == num_nodes and out.shape[1] >= num_outputs
    if not fits:
        got = f"shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        expected = f"one row of at least {num_outputs} outputs for each of {num_nodes} nodes"
        pooled = isinstance(out, Tensor) and out.dim() == 2 and out.shape[0] < num_nodes
        hint = "; graph-level tasks are not supported" if pooled else ""
        raise InputError(f"the model must return {expected} (got {got}){hint}")


def _refuse_memory(used: Network, fresh: Network, x: Features, graph: Graph) -> None:
    """On a smaller graph, a network that has seen the whole one must do the same as a fresh copy."""
    keep = torch.ones(graph.num_edges, dtype=torch.bool)
    keep[0] = False
    smaller = graph.prune(Mask(keep))
    scores = torch.ones(smaller.num_edges, dtype=torch.float32, device=x.device)
    where = "this data without one of its edges"
    first, second = (_run(network, x, smaller, scores, where) for network in (used, fresh))
    if first.shape != second.shape or not torch.allclose(first, second, equal_nan=True):
        raise InputError("the model must compute everything from its inputs (got one that remembers a graph)")
