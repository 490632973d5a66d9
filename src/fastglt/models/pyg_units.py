"""The hidden units of a user's model, found by trying: what one linear layer gives, who reads it, column by column?

While one layer's outputs are disturbed, all others give what they gave before. So only what leads straight from it,
through aggregation, activations, norms of each unit, residuals and concatenation, is disturbed as well, and each
column of it must be found in one column of whoever reads it. A model in which it is not so is refused: its units
cannot be taken out one by one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.models.units import Ends, Units
from fastglt.system.seeds import derive, own_random_state, permutation

_TRIED_ALONE = 3  # columns of a layer
_NOISE = 10.0  # in units of the largest output
_SAME = 1e-5  # of the largest input


@dataclass(frozen=True, eq=False, kw_only=True)
class _Layer:
    """A linear layer and what it was given and gave when nothing was disturbed."""

    name: str  # of its weight
    module: nn.Module
    given: Tensor
    gave: Tensor
    readers: dict[str, int] = field(default_factory=dict)  # by weight: the column in which its first unit is read


def find_units(
    module: nn.Module, run: Callable[[], Tensor], prunable: Sequence[str], shapes: Mapping[str, torch.Size]
) -> Units:
    """The units between the linear layers of a model in evaluation; `prunable` are names of weights in it."""
    linear = _linear_layers(module)
    for name in prunable:
        if name not in linear:
            _refuse(f"'{name}' is no weight of a linear layer")
    with own_random_state(torch.device("cpu")), torch.no_grad():
        layers, usual = _watch(linear, run)
        ends_here = {name for name in layers if _trace(layers, name, run, usual)}
    return _number(layers, ends_here, prunable, shapes)


def _refuse(reason: str) -> NoReturn:
    rule = "structure must be weights for a model whose hidden units cannot be told apart"
    raise InputError(f"{rule} (got units, and {reason}); fastglt's own models know theirs")


def _linear_layers(module: nn.Module) -> dict[str, nn.Module]:
    """PyTorch's and PyG's linear layers by the names of their weights; one that is shared is none."""
    from torch_geometric.nn import Linear

    found = {
        f"{name}.weight".lstrip("."): layer
        for name, layer in module.named_modules()
        if type(layer) in (nn.Linear, Linear)
    }
    owners = [id(layer.weight) for layer in found.values()]
    return {name: layer for name, layer in found.items() if owners.count(id(layer.weight)) == 1}


def _watch(linear: Mapping[str, nn.Module], run: Callable[[], Tensor]) -> tuple[dict[str, _Layer], Tensor]:
    """What each layer is given and gives, and what the model does."""
    seen: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in linear}

    def note(name: str) -> Callable[..., None]:
        return lambda _, given, gave: seen[name].append((given[0].clone(), gave.clone()))

    with _hooked({layer: note(name) for name, layer in linear.items()}):
        usual = run()
    for name, calls in seen.items():
        if len(calls) != 1 or calls[0][0].dim() != 2:
            _refuse(f"the layer of '{name}' is not called once, with a row for each node or edge")
    return {
        name: _Layer(name=name, module=layer, given=seen[name][0][0], gave=seen[name][0][1])
        for name, layer in linear.items()
    }, usual


def _trace(layers: Mapping[str, _Layer], name: str, run: Callable[[], Tensor], usual: Tensor) -> bool:
    """Note who reads a layer's units, and in which columns; returns whether the outputs themselves do."""
    layer, width = layers[name], layers[name].gave.shape[1]
    order = permutation(width, derive(0, "units", name)).tolist()
    reaches_outputs = False
    for columns in ([column] for column in order[:_TRIED_ALONE]):
        changed, out = _disturb(layers, layer, columns, run)
        reaches_outputs |= not torch.allclose(out, usual)
        for other, places in changed.items():
            if len(places) > 1:
                _refuse(f"each unit that '{name}' writes reaches several columns of '{other}'")
            if places and layer.readers.setdefault(other, places[0] - columns[0]) != places[0] - columns[0]:
                _refuse(f"'{other}' reads the units that '{name}' writes in another order")
    half = order[: width // 2 + 1]
    changed, out = _disturb(layers, layer, half, run)
    for other, places in changed.items():
        start = layer.readers.get(other)
        if places and (start is None or not set(places) <= {start + column for column in half}):
            _refuse(f"'{other}' reads the units that '{name}' writes in another order")
    return reaches_outputs or not torch.allclose(out, usual)


def _disturb(
    layers: Mapping[str, _Layer], layer: _Layer, columns: Sequence[int], run: Callable[[], Tensor]
) -> tuple[dict[str, list[int]], Tensor]:
    """The columns of each layer's input that change with some columns of one's output, and what the model gives."""
    changed: dict[str, list[int]] = {}
    noise = torch.zeros_like(layer.gave)
    noise[:, list(columns)] = _NOISE * (1 + layer.gave.abs().max()) * torch.randn(len(noise), len(columns)).sign()

    def hook(other: _Layer) -> Callable[..., Tensor]:
        def answer(_: nn.Module, given: tuple[Tensor], gave: Tensor) -> Tensor:
            if other is layer:
                return other.gave + noise
            apart = (given[0] - other.given).abs().amax(0) > _SAME * (1 + other.given.abs().max())
            changed[other.name] = apart.nonzero().flatten().tolist()
            return other.gave.clone()

        return answer

    with _hooked({other.module: hook(other) for other in layers.values()}):
        return changed, run()


@contextmanager
def _hooked(hooks: Mapping[nn.Module, Callable[..., object]]) -> Iterator[None]:
    handles = [layer.register_forward_hook(hook) for layer, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _number(
    layers: Mapping[str, _Layer], ends_here: set[str], prunable: Sequence[str], shapes: Mapping[str, torch.Size]
) -> Units:
    """One number for each unit: layers that are read in the same columns write the same units."""
    groups = _groups(layers)
    first, layer_numbers, starts = 0, list[int](), dict[str, int]()
    for number, members in enumerate(groups):
        readers = {reader for name in members for reader in layers[name].readers}
        if readers and readers | members <= set(prunable) and not members & ends_here:
            width = layers[next(iter(members))].gave.shape[1]
            starts |= dict.fromkeys(members, first)
            layer_numbers += [number] * width
            first += width
    if not layer_numbers:
        _refuse("no unit has prunable weights alone into it and out of it")
    ends = {}
    for name in prunable:
        rows, columns = shapes[name]
        read = torch.full((columns,), -1)
        for other in starts:
            place, width = layers[other].readers.get(name), layers[other].gave.shape[1]
            if place is not None:
                read[place : place + width] = torch.arange(starts[other], starts[other] + width)
        written = torch.arange(starts[name], starts[name] + rows) if name in starts else torch.full((rows,), -1)
        ends[name] = Ends(rows=written, columns=read, writes="rows")
    return Units(layer=torch.tensor(layer_numbers), ends=ends)


def _groups(layers: Mapping[str, _Layer]) -> list[set[str]]:
    """The layers that write the same units."""
    groups: list[set[str]] = []
    for name, layer in layers.items():
        spans = {(reader, start, layer.gave.shape[1]) for reader, start in layer.readers.items()}
        joined = {name}
        for group in groups:
            for other in group:
                theirs = layers[other]
                for reader, start, width in spans:
                    if reader not in theirs.readers:
                        continue
                    place, wide = theirs.readers[reader], theirs.gave.shape[1]
                    if (place, wide) == (start, width):
                        joined |= group
                    elif place < start + width and start < place + wide:
                        _refuse(f"'{reader}' reads units of '{name}' and '{other}' in columns that overlap")
        groups = [group for group in groups if not group & joined] + [joined]
    return groups
