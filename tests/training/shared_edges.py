"""A training by parts as each process of a run holds it: numbers of its own edges, and what the first one packs."""

import sys
from pathlib import Path

import torch

from fastglt.models import GCN
from fastglt.system.container import to_bytes
from fastglt.system.ranks import World, joined
from fastglt.training.checkpoint import lend, owned, pack
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.helpers import toy_task


def trained() -> Training:
    """Two epochs with soft masks of edges and weights, which an l1 term pulls."""
    recipe = Recipe(lr=0.01, parts=6, partition="random", parts_per_step=3, shares=3)
    training = Training(GCN(12, 8, 3), toy_task(), recipe, seed=0)
    training.begin_stage("soft", soft_edges=True, soft_weights=True, l1=(0.01, 0.01))
    for _ in range(2):
        training.run_epoch(Hooks())
    return training


def check(world: World) -> None:
    """What is of all edges, what of its own; and that the first process packs what one process would."""
    training = trained()
    edges, own = training.task.graph.num_edges, training.ranges.mine
    assert training.soft_edge_mask is not None
    assert training.own_edges is not None
    state = training.optimizer.state[training.own_edges]
    assert training.best is not None
    assert training.best.soft_edge_mask is not None
    for part in (training.own_edges, state["exp_avg"], state["exp_avg_sq"], training.best.soft_edge_mask):
        assert part.shape == (own.stop - own.start,)
    assert torch.equal(training.own_edges, training.soft_edge_mask.detach()[own])
    assert training.whole_best().soft_edge_mask.shape == (edges,)  # type: ignore[union-attr]
    if world.writes:
        tensors, _ = pack(training)
        assert len(owned(training, tensors)) == 3
        Path(sys.argv[1]).write_bytes(to_bytes(tensors, {}))
    else:
        lend(training)


if __name__ == "__main__":
    with joined() as all_of_them:
        check(all_of_them)
