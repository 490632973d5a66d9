"""Attacks on the edges of a graph, to see what a defence is worth where nobody has published a poisoned graph."""

from fastglt.attacks.blocks import Attack, attack_task_edges

__all__ = ["Attack", "attack_task_edges"]
