"""Tickets of methods that cut and swap edges in ways of their own, by as many processes as there are."""

import hashlib
from dataclasses import replace
from typing import Any

from fastglt.methods import Budget, Targets, make
from fastglt.models import GCN
from fastglt.system.ranks import joined
from fastglt.tickets.find import find
from fastglt.tickets.ticket_file import encode
from tests.helpers import toy_task

BUDGET = Budget(oneshot_epochs=2, denoise_epochs=6, interval=2, lr=0.01, parts=6, parts_per_step=3, shares=3)
ROUNDS = {"round_epochs": 2, "edge_share": 0.3, "weight_share": 0.6}
METHODS: dict[str, dict[str, Any]] = {
    "fastglt": {"edge_score": "similarity"},
    "ugs": ROUNDS,
    "ace": {**ROUNDS, "erase_epochs": 1},
    "gebt": {"draw_every": 1, "window": 2},
    "dglt": {},
    "forest": {},
}


def digests() -> dict[str, str]:
    """A digest of each method's ticket, and of those on the way; times apart, which are never the same."""
    found = {}
    for name, options in METHODS.items():
        method = make(name, targets=Targets(graph_sparsity=0.4, weight_sparsity=0.5), budget=BUDGET, **options)
        made = find(GCN(12, 8, 3), toy_task(), method, seed=1, isolated=False, dense=False)
        tickets = [replace(ticket, seconds={}) for ticket in (made.ticket, *made.rounds)]
        found[name] = " ".join(hashlib.sha256(encode(ticket)).hexdigest()[:12] for ticket in tickets)
    return found


if __name__ == "__main__":
    with joined():
        print(digests())
