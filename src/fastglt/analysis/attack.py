"""Poison a graph's edges: what an attacker who knows features, graph and training labels could do."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fastglt.attacks import Attack, attack_task_edges
from fastglt.attacks.blocks import AttackSettings, Tell
from fastglt.system.modes import ordinary_mode
from fastglt.system.options import check_names
from fastglt.tasks import make_task

if TYPE_CHECKING:
    from torch_geometric.data import Data


@ordinary_mode()
def attack_edges(data: "Data", *, rate: float, progress: Tell | None = None, **settings: Any) -> Attack:
    """Change a share of a graph's edges so that a GCN errs: random block coordinate descent (PR-BCD).

    >>> import fastglt
    >>> attack = fastglt.attack_edges(data, rate=0.05)  # doctest: +SKIP
    >>> attack.edges, attack.added.shape[1], attack.removed.shape[1]  # doctest: +SKIP

    Args:
        data: A PyG `Data` of an undirected graph with x, edge_index, y and the masks of a split. Test labels are
            not looked at: the GCN's own predictions are what it is led away from.
        rate: The share of edges that is changed, added or removed; exactly round(rate × edges) are.
        progress: Is called with what is being done.
        settings: Fields of `AttackSettings`: steps, fresh, block, width, epochs, lr, seed.
    """
    check_names([field.name for field in fields(AttackSettings)], settings, "the attack")
    task = make_task("node-classification", data)
    return attack_task_edges(task, rate=rate, settings=AttackSettings(**settings), tell=progress)
