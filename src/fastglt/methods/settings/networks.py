"""Networks as they were published for a dataset, width and options; everything else takes the default."""

from collections.abc import Mapping
from typing import Any

WIDTH = 512  # where nothing is published

# DeeperGCN's own settings (Li et al., 2020); FastGLT and UGS have 28 layers on ogbl-collab as well
NETWORKS: dict[tuple[str, str], dict[str, Any]] = {
    ("ogbn-arxiv", "resgcn"): {
        "hidden": 128,
        "num_layers": 28,
        "norm": "batch",
        "mlp_layers": 1,
        "temperature": 0.1,
        "dropout": 0.5,
    },
    ("ogbn-proteins", "resgcn"): {
        "hidden": 64,
        "num_layers": 28,
        "norm": "layer",
        "mlp_layers": 2,
        "temperature": 1.0,
        "learn_temperature": True,
        "dropout": 0.1,
        "self_loops": False,
        "edge_channels": 8,
    },
    ("ogbl-collab", "resgcn"): {
        "hidden": 128,
        "num_layers": 7,
        "norm": "batch",
        "mlp_layers": 1,
        "temperature": 1.0,
        "learn_temperature": True,
        "dropout": 0.0,
    },
}


def network_for(
    dataset: str, model: str, *, hidden: int | None = None, options: Mapping[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    """The width and the options that were published for a pair; what is given wins.

    >>> network_for("ogbn-arxiv", "resgcn", options={"num_layers": 7})[1]["num_layers"]
    7
    >>> network_for("cora", "gcn"), network_for("cora", "gcn", hidden=16)
    ((512, {}), (16, {}))
    """
    published = dict(NETWORKS.get((dataset.lower().partition(":")[0], model), {}))
    width = published.pop("hidden", WIDTH)
    return width if hidden is None else hidden, {**published, **(options or {})}
