"""How much of a network is left, as bars of letters."""

from collections.abc import Mapping
from typing import Any


def picture_lines(metrics: Mapping[str, Any], *, width: int = 40) -> list[str]:
    """How much is left of edges, weights and multiplications, as bars.

    >>> kept = {"edges_kept": 25, "edges_total": 100, "weights_kept": 3, "weights_total": 100}
    >>> for line in picture_lines({**kept, "macs_ticket": 1, "macs_dense": 10}, width=20):
    ...     print(line)
    edges    █████···············   25.00 % left
    weights  █···················    3.00 % left
    MACs     ██··················   10.00 % left
    """
    pairs = {
        "edges": (metrics["edges_kept"], metrics["edges_total"]),
        "weights": (metrics["weights_kept"], metrics["weights_total"]),
        "MACs": (metrics["macs_ticket"], metrics["macs_dense"]),
    }
    found = []
    for name, (kept, total) in pairs.items():
        share = kept / total if total else 1.0
        full = min(width, max(1, round(share * width))) if kept else 0
        found.append(f"{name:<8} {'█' * full}{'·' * (width - full)}  {100 * share:6.2f} % left")
    return found
