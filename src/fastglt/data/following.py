"""A graph as it is now, told as it was before: classes by their names, nodes in the part of the split they were in.

Each file numbers its classes anew, and a split that is drawn is another one once a node has come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fastglt.data.base import Dataset, Names, SplitMasks
from fastglt.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_MASKS = tuple(f"{part}_mask" for part in SplitMasks._fields)


def following(before: Dataset, after: Dataset, nodes_before: Tensor) -> Dataset:
    """The new graph with the classes of before and, unless its files have a split, with the split of before.

    `nodes_before` has the number of each node before, −1 for a new one, which no split has. Where nothing has to
    change, it is the very dataset.
    """
    return _with_split(before, with_classes(before, after), nodes_before)


def learnt_from_is_judged(before: Dataset, after: Dataset, nodes_before: Tensor) -> bool:
    """Whether nodes are validated or tested now that were trained on, or tested that chose the epoch; or whether
    nodes have other classes than before.
    """
    if not _have_splits(before, after):
        return False
    stayed = nodes_before >= 0
    train, val, _ = (before.tensors[name][nodes_before[stayed]] for name in _MASKS)
    _, val_now, test_now = (after.tensors[name][stayed] for name in _MASKS)
    old, new = before.tensors["y"][nodes_before[stayed]], after.tensors["y"][stayed]
    known = _known(old) & _known(new)
    moved = (train & (val_now | test_now)) | (val & test_now)
    if bool(moved.any()) or old.shape != new.shape:
        return True
    return bool((old[known].nan_to_num() != new[known].nan_to_num()).any())


def with_classes(before: Dataset, after: Dataset) -> Dataset:
    """The new graph with the classes of before, by their names."""
    if before.names is None or after.names is None or not (before.names.classes and after.names.classes):
        return after
    old, new = before.names.classes, after.names.classes
    if old == new or not _are_classes(after.tensors["y"]):
        return after
    unknown = [name for name in new if name not in old]
    if unknown:
        rule = f"classes of the new graph must be among those of the graph before, {', '.join(old[:5])}"
        more = ", …" if len(old) > 5 else ""
        raise InputError(f"{rule}{more} (got {unknown[0]!r}); a new class needs a new search")
    y = after.tensors["y"]
    numbers = y.new_tensor([old.index(name) for name in new])
    renumbered = numbers[y.clamp(min=0)].where(_known(y), y)
    return replace(after, tensors={**after.tensors, "y": renumbered}, names=Names(after.names.nodes, old))


def _with_split(before: Dataset, after: Dataset, nodes_before: Tensor) -> Dataset:
    if not after.drawn or not _have_splits(before, after):
        return after
    usable = (nodes_before >= 0) & _known(after.tensors["y"])
    masks = {name: before.tensors[name][nodes_before.clamp(min=0)] & usable for name in _MASKS}
    for name in _MASKS[:2]:
        if not masks[name].any():
            rule = "some training and validation nodes of the graph before must be left"
            raise InputError(f"{rule} (got no {name}); give the new graph masks of its own")
    if all(mask.equal(after.tensors[name]) for name, mask in masks.items()):
        return after
    return replace(after, tensors={**after.tensors, **masks}, drawn=False)


def _have_splits(*datasets: Dataset) -> bool:
    return all(name in dataset.tensors for dataset in datasets for name in _MASKS)


def _are_classes(y: Tensor) -> bool:
    return y.dim() == 1 and not y.is_floating_point()


def _known(y: Tensor) -> Tensor:
    """Of which nodes a class is known; labels that are no classes all are."""
    return y >= 0 if _are_classes(y) else y.new_ones(len(y)).bool()
