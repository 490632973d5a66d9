"""The FastGLT paper's own numbers, as printed: per cent, multiples of one dense training, millions of MACs.

Slips of the paper are left out, not copied: FastGLT's accuracy on Citeseer in its table 7 is PubMed's value.
"""

Pair = tuple[str, str]  # a graph and a backbone

DENSE: dict[Pair, float] = {
    ("cora", "gcn"): 80.25,
    ("citeseer", "gcn"): 70.51,
    ("pubmed", "gcn"): 78.80,
    ("cora", "gin"): 78.06,
    ("citeseer", "gin"): 68.47,
    ("pubmed", "gin"): 77.50,
    ("cora", "gat"): 79.95,
    ("citeseer", "gat"): 69.12,
    ("pubmed", "gat"): 78.35,
}
# Table 1, FastGLT: accuracy of the sparsest winning ticket, MACs (millions), time relative to one dense training.
TICKETS: dict[Pair, float] = {
    ("cora", "gcn"): 80.33,
    ("citeseer", "gcn"): 70.59,
    ("pubmed", "gcn"): 79.11,
    ("cora", "gin"): 78.32,
    ("citeseer", "gin"): 68.54,
    ("pubmed", "gin"): 77.59,
    ("cora", "gat"): 80.07,
    ("citeseer", "gat"): 69.30,
    ("pubmed", "gat"): 78.56,
}
RELATIVE_TIME = {  # means over the three graphs
    "fastglt": {"gcn": 1.63, "gin": 2.4, "gat": 1.6},
    "ugs": {"gcn": 4.0, "gin": 9.6, "gat": 8.2},
}
# Extreme sparsities, %.
WEIGHTS: dict[Pair, float] = {
    ("cora", "gcn"): 93.0,
    ("citeseer", "gcn"): 99.27,
    ("pubmed", "gcn"): 99.0,
    ("cora", "gin"): 89.16,
    ("citeseer", "gin"): 98.33,
    ("pubmed", "gin"): 98.0,
    ("cora", "gat"): 98.5,
    ("citeseer", "gat"): 99.20,
    ("pubmed", "gat"): 99.0,
}
EDGES: dict[str, dict[Pair, float]] = {
    "fastglt": {("cora", "gcn"): 35.0, ("pubmed", "gcn"): 40.0, ("cora", "gat"): 75.0, ("pubmed", "gat"): 70.0},
    "oneshot": {("cora", "gcn"): 15.0, ("pubmed", "gcn"): 25.0, ("cora", "gat"): 45.0, ("pubmed", "gat"): 40.0},
    "wdglt": {("cora", "gcn"): 18.52, ("pubmed", "gcn"): 34.65, ("cora", "gat"): 60.12, ("pubmed", "gat"): 62.45},
}
# Table 5: extreme sparsities with either start of the denoising.
STARTS: dict[str, dict[str, dict[Pair, float]]] = {
    "weights": {
        "random": {("citeseer", "gcn"): 94.22, ("citeseer", "gin"): 89.38, ("citeseer", "gat"): 70.26},
        "oneshot": {("citeseer", "gcn"): 99.27, ("citeseer", "gin"): 98.33, ("citeseer", "gat"): 99.20},
    },
    "edges": {
        "random": {("citeseer", "gcn"): 23.16, ("citeseer", "gin"): 20.89, ("citeseer", "gat"): 56.06},
        "oneshot": {("citeseer", "gcn"): 34.17, ("citeseer", "gin"): 45.06, ("citeseer", "gat"): 68.97},
    },
}
# Table 6: accuracy by the decay κ of swaps; 90 % of weights and 30 % (Cora) or 40 % (Citeseer) of edges removed.
DECAY: dict[Pair, dict[int, float]] = {
    ("cora", "gcn"): {1: 80.09, 2: 79.84, 3: 79.86},
    ("cora", "gin"): {1: 78.26, 2: 78.04, 3: 77.71},
    ("cora", "gat"): {1: 80.77, 2: 79.80, 3: 80.54},
    ("citeseer", "gcn"): {1: 69.26, 2: 69.23, 3: 69.06},
    ("citeseer", "gin"): {1: 70.08, 2: 69.16, 3: 68.14},
    ("citeseer", "gat"): {1: 69.88, 2: 69.82, 3: 68.93},
}
DECAY_EDGES = {"cora": 0.3, "citeseer": 0.4}
# Table 7: accuracy at each method's own extreme graph sparsity.
AT_EXTREME: dict[str, dict[Pair, tuple[float, float]]] = {  # accuracy, edges removed
    "oneshot": {
        ("cora", "gcn"): (80.09, 15.0),
        ("citeseer", "gcn"): (70.65, 25.0),
        ("pubmed", "gcn"): (79.06, 25.0),
        ("cora", "gat"): (79.82, 45.0),
        ("citeseer", "gat"): (69.48, 50.0),
        ("pubmed", "gat"): (78.39, 40.0),
    },
    "fastglt": {
        ("cora", "gcn"): (80.33, 35.0),
        ("pubmed", "gcn"): (79.11, 40.0),
        ("cora", "gat"): (80.17, 75.0),
        ("citeseer", "gat"): (69.30, 82.5),
        ("pubmed", "gat"): (78.56, 70.0),
    },
}
SPEEDUP = 1.48  # of inference, on average

# Tables 2 and 4: extreme sparsities on OGB's graphs with a 28-layer ResGCN; what cannot be found is not there.
LARGE: dict[str, dict[str, dict[str, float]]] = {
    "edges": {
        "random": {"ogbn-proteins": 5.74},
        "ugs": {"ogbn-arxiv": 11.19, "ogbn-proteins": 16.94, "ogbl-collab": 8.20},
        "wdglt": {"ogbn-arxiv": 30.94, "ogbn-proteins": 22.48, "ogbl-collab": 17.14},
        "fastglt": {"ogbn-arxiv": 48.01, "ogbn-proteins": 34.49, "ogbl-collab": 31.55},
    },
    "weights": {
        "random": {"ogbn-arxiv": 28.72, "ogbn-proteins": 17.88, "ogbl-collab": 6.14},
        "ugs": {"ogbn-arxiv": 40.07, "ogbn-proteins": 33.60, "ogbl-collab": 38.32},
        "wdglt": {"ogbn-arxiv": 63.23, "ogbn-proteins": 47.23, "ogbl-collab": 59.06},
        "fastglt": {"ogbn-arxiv": 73.25, "ogbn-proteins": 73.01, "ogbl-collab": 71.66},
    },
}
# Figure 5, ogbn-arxiv: how many times FastGLT's time a search takes, at 36.9 % of edges and 49.7 % of weights.
SLOWER = {"ugs": 12.0, "wdglt": 19.6}
# Figure 6: the most that scores differ between intervals of 3 to 50 epochs, in points.
INTERVALS = {"citeseer": 1.35, "ogbn-arxiv": 1.74}
