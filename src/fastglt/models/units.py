"""Hidden units: which weights lead into each of them and which lead out, so that they can be pruned as one.

A unit is a column of the matrices that write it and a row of those that read it. Without all of these weights
nothing of it is left in the outputs: what it still computes, from its bias alone, nobody reads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from fastglt.errors import InputError
from fastglt.masks import flatten
from fastglt.models.layers import looks_at_all_units
from fastglt.models.operations import Attention, Linear, Operation

_OUTSIDE = ("features", "classes", "link")  # ends of a network: what it is given, and what it is asked for
_NOBODY = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Ends:
    """The units that a prunable tensor's places stand for: of its rows and columns, or of each of its entries."""

    rows: Tensor  # int64, a unit for each row, or for each entry; -1: none that can be pruned
    columns: Tensor | None  # None: there are entries, each of one unit
    writes: str  # columns, rows or entries: where the units are that it leads into

    def keeps(self, kept: Tensor) -> Tensor:
        """Which entries stay, with units; a vector."""
        kept = torch.cat([kept, kept.new_ones(1)])  # the last is nobody, who always stays
        rows = kept[self.rows]
        return rows if self.columns is None else torch.outer(rows, kept[self.columns]).flatten()

    def add_sums(self, values: Tensor, into: Tensor, out: Tensor) -> None:
        """Add what a vector has in the places that lead into each unit, and in those that lead out of it."""
        if self.columns is None:
            into.index_add_(0, self.rows % into.numel(), values)
            return
        values = values.view(self.rows.numel(), self.columns.numel())
        written, read = (into, out) if self.writes == "rows" else (out, into)
        written.index_add_(0, self.rows % into.numel(), values.sum(1))
        read.index_add_(0, self.columns % into.numel(), values.sum(0))

    def leads_into(self, units: Tensor) -> Tensor:
        """Which entries lead into some units, and not out of them; a vector."""
        units = torch.cat([units, units.new_zeros(1)])
        rows = units[self.rows]
        if self.columns is None:
            return rows
        columns = units[self.columns]
        one, other = (rows.unsqueeze(1), columns) if self.writes == "rows" else (columns, rows.unsqueeze(1))
        return (one & ~other).flatten()


@dataclass(frozen=True, eq=False, kw_only=True)
class Units:
    """All hidden units of a network, numbered layer by layer; vectors over weights are as `flatten` gives them."""

    layer: Tensor  # int64, a number for the layer of each unit; one layer's units compete with each other
    ends: Mapping[str, Ends]  # of each prunable tensor, in the network's order

    @property
    def count(self) -> int:
        """How many there are."""
        return self.layer.numel()

    def keep(self, kept: Tensor) -> Tensor:
        """Which weights are left with some units, as one boolean vector."""
        return flatten({name: ends.keeps(kept) for name, ends in self.ends.items()}).bool()

    def alive(self, kept: Tensor) -> Tensor:
        """Which units have a weight left, of those that a boolean vector over all weights keeps."""
        return self.sums(kept) > 0

    def sums(self, values: Tensor) -> Tensor:
        """For each unit the sum over its weights of a vector over all weights."""
        into, out = self.both_sums(values)
        return into + out

    def means(self, values: Tensor) -> Tensor:
        """For each unit the mean over its weights."""
        return self.sums(values) / self.sizes

    def both_sums(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The sums over the weights into each unit, and over those out of it."""
        into = torch.zeros(self.count + 1, dtype=torch.float64)  # nobody's is the last
        out = torch.zeros_like(into)
        for ends, part in zip(self.ends.values(), torch.split(values.cpu(), self._sizes), strict=True):
            ends.add_sums(part.double(), into, out)
        return into[:-1], out[:-1]

    def touch(self, units: Tensor) -> Tensor:
        """Which weights belong to some units, as one boolean vector."""
        return ~self.keep(~units)

    def lead_into(self, units: Tensor) -> Tensor:
        """Which weights lead into some units, and not out of them, as one boolean vector."""
        return flatten({name: ends.leads_into(units) for name, ends in self.ends.items()}).bool()

    @cached_property
    def sizes(self) -> Tensor:
        """How many weights each unit has."""
        return self.sums(torch.ones(sum(self._sizes)))

    @property
    def _sizes(self) -> list[int]:
        return [
            ends.rows.numel() * (1 if ends.columns is None else ends.columns.numel()) for ends in self.ends.values()
        ]


def units_of(
    operations: Iterable[Operation], shapes: Mapping[str, torch.Size], modules: Iterable[nn.Module], described: str
) -> Units:
    """The units that a backbone's operations name; refused where they leave a weight out, or norms mix them."""
    mixing = next((type(part).__name__ for part in modules if looks_at_all_units(part)), None)
    if mixing is not None:
        rule = "structure must be weights for a model whose norm looks at all units of a layer at once"
        raise InputError(f"{rule} (got units, and {described}, which has {mixing}); a batch norm does not")
    parts = list(operations)
    linear = [part for part in parts if isinstance(part, Linear) and part.weight in shapes]
    widths = {part.writes: shapes[part.weight][1] for part in linear if part.writes not in _OUTSIDE}
    starts, layers, first = dict[str, int](), list[int](), 0
    for number, (name, width) in enumerate(widths.items()):
        starts[name], first = first, first + width
        layers += [number] * width

    def numbers(name: str, size: int) -> Tensor:
        if name not in starts:
            return torch.full((size,), _NOBODY)
        return torch.arange(starts[name], starts[name] + size)

    found: dict[str, Ends] = {}
    for part in linear:
        rows, columns = shapes[part.weight]
        found[part.weight] = Ends(
            rows=numbers(part.reads, rows), columns=numbers(part.writes, columns), writes="columns"
        )
    for attention in (part for part in parts if isinstance(part, Attention)):
        for name in set(attention.parameters) & shapes.keys():
            entries = numbers(attention.product.writes, shapes[name].numel())
            found[name] = Ends(rows=entries, columns=None, writes="entries")
    if not layers or found.keys() != shapes.keys():
        rule = "structure must be weights for a model whose operations do not tell what each weight joins"
        raise InputError(f"{rule} (got units, and {described}); docs/own-model.md has a line about them")
    return Units(layer=torch.tensor(layers), ends={name: found[name] for name in shapes})
