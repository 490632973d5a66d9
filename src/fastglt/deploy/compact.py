"""Compact weights for a model without a program: linear layers keep what is left of them, as it runs fastest.

Whatever is no plain linear layer stays as it is, and so does a model that would give something else.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from fastglt.deploy.layouts import race
from fastglt.errors import InputError, unknown_name
from fastglt.graphs.features import Features
from fastglt.kernels import CSR, spmm

Forward = Callable[[], Tensor]
_SPARSE_UP_TO = 0.25  # share of weights that are left, up to which a sparse matrix is worth a trial
_TOLERANCE = 1e-4  # of the largest score, or of 1
_features: ContextVar[Features | None] = ContextVar("features", default=None)


@contextmanager
def known(x: Features) -> Iterator[None]:
    """While a model runs on these features, a layer that is given them may skip their zeros."""
    token = _features.set(x)
    try:
        yield
    finally:
        _features.reset(token)


class Compact(nn.Module, ABC):
    """A linear layer whose matrix is stored in another way."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.out_features, self.in_features = layer.weight.shape
        self.bias: nn.Parameter | None = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """What the layer gives."""
        if x.shape[-1] != self.in_features:
            raise InputError(f"the layer must be given {self.in_features} columns (got {x.shape[-1]})")
        out = self._product(x if x.dim() == 2 else x.reshape(-1, self.in_features))
        out = out if self.bias is None else out + self.bias
        return out.reshape(*x.shape[:-1], self.out_features)

    @property
    @abstractmethod
    def weight(self) -> Tensor:
        """The whole matrix, for models that read it themselves."""

    @abstractmethod
    def _product(self, x: Tensor) -> Tensor:
        """Rows times the matrix."""


class Trimmed(Compact):
    """Without the columns that no weight is left in, and without such rows."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer)
        weight = layer.weight.detach()
        self.used, self.live = (weight.any(dim).nonzero().squeeze(1) for dim in (0, 1))
        self.left = weight[self.live][:, self.used]

    @property
    def weight(self) -> Tensor:
        """Zeros written out."""
        whole = self.left.new_zeros(self.out_features, self.in_features)
        whole[self.live.unsqueeze(1), self.used] = self.left
        return whole

    def _product(self, x: Tensor) -> Tensor:
        part = x.index_select(1, self.used) @ self.left.t()
        if self.live.numel() == self.out_features:
            return part
        return part.new_zeros(x.shape[0], self.out_features).index_copy_(1, self.live, part)


class Sparse(Compact):
    """The weights that are left, and where they stand."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer)
        weight = layer.weight.detach()
        rows, columns = weight.nonzero().unbind(1)
        self.csr, order = CSR.from_entries(rows, columns, (self.out_features, self.in_features))
        self.values = weight[rows, columns][order]

    @property
    def weight(self) -> Tensor:
        """Zeros written out."""
        whole = self.values.new_zeros(self.out_features, self.in_features)
        rows = torch.repeat_interleave(self.csr.row_counts)  # the pattern's own would be kept
        whole[rows, self.csr.indices.long()] = self.values
        return whole

    def _product(self, x: Tensor) -> Tensor:
        return spmm(self.csr, self.values, x.t().contiguous()).t().contiguous()


class OnFeatures(Sparse):
    """`Sparse`, written out for each product: of rows that are the data's own, only what is not zero is read."""

    def _product(self, x: Tensor) -> Tensor:
        features, matrix = _features.get(), self.weight.t()
        if features is not None and x is features.dense and features.is_sparse:
            return spmm(features.csr, features.values, matrix.contiguous())
        return x @ matrix


KINDS: Mapping[str, Callable[[nn.Linear], nn.Module]] = {
    "whole": lambda layer: layer,
    "trimmed": Trimmed,
    "sparse": Sparse,
    "features": OnFeatures,
}


def plain_layers(module: nn.Module) -> dict[str, nn.Linear]:
    """The linear layers of PyTorch and PyG that nobody has changed, by their names."""
    kinds: tuple[type, ...] = (nn.Linear,)
    if "torch_geometric" in sys.modules:  # else nobody can have made one of PyG's
        from torch_geometric.nn import Linear

        kinds = (nn.Linear, Linear)

    def plain(layer: nn.Module) -> bool:
        changed = layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer)
        return type(layer) in kinds and not changed

    return {name: cast(nn.Linear, layer) for name, layer in module.named_modules() if plain(layer)}


def compact(
    module: nn.Module, run: Forward, layouts: Sequence[str] | None
) -> tuple[tuple[str, ...], dict[str, float]]:
    """Make the plain layers compact, in place; give the layout of each, and the milliseconds of trials.

    `run` runs the module. Without layouts, a few are tried out on what each layer is given then.
    """
    layers, trials = plain_layers(module), dict[str, dict[str, float]]()
    if layouts is None:
        expected = _try_out(layers, run, trials)
        chosen = {name: min(spent, key=lambda kind: spent[kind]) for name, spent in trials.items()}
    else:
        expected, chosen = run(), dict(zip(layers, layouts, strict=True))
    for kind in chosen.values():
        if kind not in KINDS:
            raise unknown_name("layout of a user's model", kind, KINDS)
    made = {name: KINDS[kind](layers[name]) for name, kind in chosen.items()}
    _exchange(module, {layers[name]: layer for name, layer in made.items()})
    if not _gives(run, expected):
        _exchange(module, {layer: layers[name] for name, layer in made.items()})
        chosen = {}
    spent_on = {f"{name}, {kind}": spent for name, each in trials.items() for kind, spent in each.items()}
    return tuple(chosen.get(name, "whole") for name in layers), spent_on


def expand(module: nn.Module) -> None:
    """Give a module ordinary linear layers again, in place."""
    plain: dict[nn.Module, nn.Module] = {}
    for layer in module.modules():
        if isinstance(layer, Compact):
            plain[layer] = ordinary = nn.Linear(layer.in_features, layer.out_features, device="meta")
            ordinary.weight = nn.Parameter(layer.weight, requires_grad=False)
            ordinary.register_parameter("bias", layer.bias)
    _exchange(module, plain)


def _try_out(layers: Mapping[str, nn.Linear], run: Forward, trials: dict[str, dict[str, float]]) -> Tensor:
    """What the module gives, and on the way the milliseconds of each layer's layouts."""

    def hook(name: str) -> Callable[..., None]:
        def listen(layer: nn.Linear, given: tuple[Tensor, ...], _: object) -> None:
            if name not in trials and len(given) == 1 and _ordinary(given[0], layer.weight.dtype):
                trials[name] = _milliseconds(layer, given[0])

        return listen

    handles = [layer.register_forward_hook(hook(name)) for name, layer in layers.items()]
    try:
        return run()
    finally:
        for handle in handles:
            handle.remove()


def _ordinary(x: object, dtype: torch.dtype) -> bool:
    return type(x) is Tensor and x.layout == torch.strided and x.dtype == dtype


def _milliseconds(layer: nn.Linear, x: Tensor) -> dict[str, float]:
    """The medians of a few interleaved trials of the layouts that may be worth it."""
    weight, features = layer.weight, _features.get()
    worth = {
        "whole": True,
        "trimmed": not bool(weight.any(0).all() and weight.any(1).all()),
        "sparse": int(weight.count_nonzero()) <= _SPARSE_UP_TO * weight.numel(),
        "features": features is not None and x is features.dense and features.is_sparse,
    }
    made = {kind: KINDS[kind](layer).forward for kind, tried in worth.items() if tried}
    return race({kind: partial(forward, x) for kind, forward in made.items()}, x.device)[1]


def _exchange(module: nn.Module, twins: Mapping[nn.Module, nn.Module]) -> None:
    for parent in list(module.modules()):
        for name, child in list(parent._modules.items()):
            if child is not None and child in twins:
                setattr(parent, name, twins[child])


def _gives(run: Forward, expected: Tensor) -> bool:
    """Whether it runs and gives that, to float tolerance."""
    try:
        found = run()
    except Exception:
        return False
    allowed = _TOLERANCE * max(1.0, float(expected.abs().max()))
    return found.shape == expected.shape and bool(((found - expected).abs() <= allowed).all())
