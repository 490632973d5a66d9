"""The whole state of a `Training` as named tensors and plain values, and back.

Weights are ranked in the order of their names, and files forget that order: the plain values keep it. Where several
processes train, what each has of its own edges alone is brought together in the first one, so that a file does not
tell how many they were.
"""

from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from fastglt.masks import Mask, Masks
from fastglt.system.container import own_copies
from fastglt.tasks import Scores
from fastglt.training.loop import Training
from fastglt.training.records import EpochRecord, Snapshot

Tensors = dict[str, Tensor]
# What unpacking raises where tensors or plain values are not as they were packed.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RuntimeError)


def pack(training: Training) -> tuple[Tensors, dict[str, Any]]:
    """Everything that the next epoch depends on; rounds that are over are kept elsewhere.

    Of several processes the first one packs, while the others `lend` what they own.
    """
    moments, best = lend(training)
    tensors = {f"state/{name}": value for name, value in training.network.state_dict().items()}
    tensors |= _masks("masks", training.masks) | _soft_masks(
        "scores", training.soft_edge_mask, training.soft_weight_masks
    )
    tensors |= {f"gradient_sum/{name}": total for name, total in training.gradient_sum.items()}
    tensors |= {f"extra/{name}": value for name, value in training.extra.items()}
    tensors |= {f"memory/{name}": value for name, value in training.method_state.items()}
    for index, parameter in enumerate(training.optimizer):
        state = training.optimizer.state.get(parameter, {})
        state = {**state, **moments} if parameter is training.own_edges else state
        tensors |= {f"adam/{index}/{key}": value for key, value in state.items()}
    meta: dict[str, Any] = {
        "epoch": training.epoch,
        "stage": training.stage,
        "target": training.target,
        "regrow": training.regrow,
        "weight_decay": training.weight_decay,
        "l1": training.l1,
        "history": [list(asdict(record).values()) for record in training.history],
    }
    if best is not None:
        best_tensors, meta["best"] = pack_snapshot(best)
        tensors |= {f"best/{name}": value for name, value in best_tensors.items()}
    meta["names"] = list(tensors)
    return own_copies(tensors), meta


def lend(training: Training) -> tuple[Tensors, Snapshot | None]:
    """Moments of the soft edge mask, and the best epoch: in the first process of all edges. All ask at once."""
    ranges, best, own = training.ranges, training.best, training.own_edges
    state = {} if own is None else training.optimizer.state.get(own, {})
    moments = {key: ranges.to_first(state[key]) for key in _MOMENTS if key in state}
    if best is not None and best.soft_edge_mask is not None:
        best = replace(best, soft_edge_mask=ranges.to_first(best.soft_edge_mask))
    return moments, best


def owned(training: Training, tensors: Tensors) -> list[str]:
    """The names of those packed tensors of which a process needs no more than its own edges; alone, of none."""
    if training.ranges.alone:
        return []
    softened = sum(name.startswith("scores/weights/") for name in tensors)
    place = len(list(training.network.parameters())) + softened  # of the soft edge mask among what is trained
    moments = [f"adam/{place}/{key}" for key in _MOMENTS] if "scores/edges" in tensors else []
    size = (training.ranges.size,)
    return [name for name in (*moments, "best/scores/edges") if name in tensors and tensors[name].shape == size]


def unpack(training: Training, tensors: Tensors, meta: dict[str, Any]) -> None:
    """Bring a fresh `Training` to the state that was packed; in one of several, what is `owned` is of its edges."""
    device = training.task.device
    tensors = {name: tensors[name].to(device, copy=True) for name in meta["names"]}
    training.network.load_state_dict(_below(tensors, "state/"))
    soft_edge_mask, soft_weight_masks = _unpack_soft_masks(tensors, "scores")
    gradients = _below(tensors, "gradient_sum/")
    training.begin_stage(
        meta["stage"],
        soft_edges=soft_edge_mask is not None,
        soft_weights=bool(soft_weight_masks),
        sum_gradients=bool(gradients),
        regrow=meta["regrow"],
        extra=_below(tensors, "extra/"),
        target=None if meta["target"] is None else (meta["target"][0], meta["target"][1]),
        weight_decay=meta["weight_decay"],
        l1=(meta["l1"][0], meta["l1"][1]),
    )
    with torch.no_grad():
        if training.soft_edge_mask is not None and soft_edge_mask is not None:
            training.soft_edge_mask.copy_(soft_edge_mask)
        for name, value in soft_weight_masks.items():
            training.soft_weight_masks[name].copy_(value)
        for name, value in gradients.items():
            training.gradient_sum[name].copy_(value)
    training.method_state = _below(tensors, "memory/")
    training.apply(_unpack_masks(tensors, "masks"))
    for index, parameter in enumerate(training.optimizer):
        state = _below(tensors, f"adam/{index}/")
        if state:
            training.optimizer.state[parameter] = state
    training.epoch = meta["epoch"]
    training.history = [EpochRecord(**dict(zip(_FIELDS, row, strict=True))) for row in meta["history"]]
    training.best = unpack_snapshot(_below(tensors, "best/"), meta["best"]) if "best" in meta else None


def pack_snapshot(snapshot: Snapshot) -> tuple[Tensors, dict[str, Any]]:
    """A snapshot alone, for the result of a finished phase."""
    tensors = {f"state/{name}": value for name, value in snapshot.state.items()}
    tensors |= _masks("masks", snapshot.masks) | _soft_masks(
        "scores", snapshot.soft_edge_mask, snapshot.soft_weight_masks
    )
    tensors = own_copies(tensors)
    meta = {"epoch": snapshot.epoch, "scores": asdict(snapshot.scores), "round": snapshot.round}
    more = {"findings": snapshot.findings} if snapshot.findings else {}
    return tensors, {**meta, **more, "names": list(tensors)}


def unpack_snapshot(tensors: Tensors, meta: dict[str, Any]) -> Snapshot:
    """The inverse of `pack_snapshot`."""
    tensors = {name: tensors[name] for name in meta["names"]}
    soft_edge_mask, soft_weight_masks = _unpack_soft_masks(tensors, "scores")
    return Snapshot(
        epoch=meta["epoch"],
        scores=Scores(**meta["scores"]),
        state=_below(tensors, "state/"),
        masks=_unpack_masks(tensors, "masks"),
        soft_edge_mask=soft_edge_mask,
        soft_weight_masks=soft_weight_masks,
        round=meta["round"],
        findings=meta.get("findings", {}),
    )


_MOMENTS = ("exp_avg", "exp_avg_sq")
_FIELDS = tuple(EpochRecord.__dataclass_fields__)


def _below(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _masks(prefix: str, masks: Masks) -> Tensors:
    weights = {f"{prefix}/weights/{name}": mask.kept for name, mask in masks.weights.items()}
    return {f"{prefix}/edges": masks.edges.kept, **weights}


def _unpack_masks(tensors: Tensors, prefix: str) -> Masks:
    weights = _below(tensors, f"{prefix}/weights/")
    return Masks(
        edges=Mask(tensors[f"{prefix}/edges"].cpu()),
        weights={name: Mask(kept.cpu()) for name, kept in weights.items()},
    )


def _soft_masks(prefix: str, edges: Tensor | None, weights: Tensors) -> Tensors:
    edge = {} if edges is None else {f"{prefix}/edges": edges}
    return edge | {f"{prefix}/weights/{name}": value for name, value in weights.items()}


def _unpack_soft_masks(tensors: Tensors, prefix: str) -> tuple[Tensor | None, Tensors]:
    return tensors.get(f"{prefix}/edges"), _below(tensors, f"{prefix}/weights/")
