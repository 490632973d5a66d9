"""The settings that methods were published with, per dataset and backbone: data, not code.

Everything that stands nowhere in a paper takes the method's own default.
"""

from typing import Any

Pair = tuple[str, str]  # dataset and backbone
Options = dict[str, Any]

_CORA: Options = {"search_lr": 0.008, "search_weight_decay": 8e-5}
_OTHERS: Options = {"search_lr": 0.01, "search_weight_decay": 5e-4}

_LARGE: Options = {"search_lr": 0.01, "search_weight_decay": 0.0}

_UGS: dict[Pair, Options] = {
    ("cora", "gcn"): {**_CORA, "edge_l1": 1e-2, "weight_l1": 1e-2},
    ("cora", "gin"): {**_CORA, "edge_l1": 1e-3, "weight_l1": 1e-3},
    ("cora", "gat"): {**_CORA, "edge_l1": 1e-3, "weight_l1": 1e-3},
    ("citeseer", "gcn"): {**_OTHERS, "edge_l1": 1e-2, "weight_l1": 1e-2},
    ("citeseer", "gin"): {**_OTHERS, "edge_l1": 1e-5, "weight_l1": 1e-5},
    ("citeseer", "gat"): {**_OTHERS, "edge_l1": 1e-7, "weight_l1": 1e-3},
    ("pubmed", "gcn"): {**_OTHERS, "edge_l1": 1e-6, "weight_l1": 1e-3},
    ("pubmed", "gin"): {**_OTHERS, "edge_l1": 1e-5, "weight_l1": 1e-5},
    ("pubmed", "gat"): {**_OTHERS, "edge_l1": 1e-2, "weight_l1": 1e-2},
    # of mask training; the tickets of arxiv's rounds were then trained for 500 epochs with a rate of 0.01
    ("ogbn-arxiv", "resgcn"): {
        **_LARGE,
        "search_lr": 1e-3,
        "round_epochs": 250,
        "edge_l1": 1e-6,
        "weight_l1": 1e-4,
    },
    ("ogbn-proteins", "resgcn"): {**_LARGE, "round_epochs": 100, "edge_l1": 1e-1, "weight_l1": 1e-3},
    ("ogbl-collab", "resgcn"): {**_LARGE, "round_epochs": 500, "edge_l1": 1e-6, "weight_l1": 1e-5},
}
_WITHOUT_L1: dict[Pair, Options] = {
    pair: {name: value for name, value in options.items() if not name.endswith("_l1")}
    for pair, options in _UGS.items()
}

PUBLISHED: dict[str, dict[Pair, Options]] = {
    "ugs": _UGS,
    "ace": _UGS,  # trains as UGS does
    "wdglt": _WITHOUT_L1,  # so does this, with its own term in the loss
}


def options_for(method: str, dataset: str, model: str) -> Options:
    """A method's published options for a pair; none where nothing is published.

    >>> options_for("wdglt", "cora", "gcn")
    {'search_lr': 0.008, 'search_weight_decay': 8e-05}
    """
    return dict(PUBLISHED.get(method, {}).get((dataset.partition(":")[0], model), {}))
