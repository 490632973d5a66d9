"""What a "pruned" edge still does in published codes for deep networks: one aggregation, measured.

    python benchmarks/leaks.py --dataset cora --graph-sparsity 0.3

Three leaks: a score of 0 that multiplies messages before the softmax leaves exp(0) in the denominator; a mask for
each layer of which only the mean is printed; self-loops that count as edges to prune.
"""

import argparse
from itertools import pairwise

import torch
from torch import Tensor

from fastglt.data import load
from fastglt.graphs.graph import Graph
from fastglt.kernels.softmax import EPS, softmax_aggregate
from fastglt.masks import Mask
from fastglt.methods.parts.ranking import keep_random

_AT_A_TIME = 16  # channels


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--graph-sparsity", type=float, default=0.3)
    parser.add_argument("--channels", type=int, default=32, help="of a random encoder")
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--layers", type=int, default=28)
    given = parser.parse_args()
    tensors = load(given.dataset, root=given.data_root).tensors
    graph = Graph.from_edge_index(tensors["edge_index"], tensors["x"].shape[0])
    kept = keep_random(graph.num_edges, graph.num_edges - round(given.graph_sparsity * graph.num_edges), seed=0)
    generator = torch.Generator().manual_seed(0)
    encoder = torch.randn(tensors["x"].shape[1], given.channels, generator=generator)
    x, t = tensors["x"] @ encoder, torch.tensor(given.temperature)
    x = x / x.std()
    print(f"{given.dataset}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {int((~kept).sum()):,} pruned")
    tell_softmax(graph, kept, x, t)
    tell_layers(graph.num_edges, given.graph_sparsity, given.layers)
    print(
        f"self-loops: {graph.num_nodes:,} more to prune, if they count: {share(graph.num_nodes, graph.num_edges)}"
    )


def tell_softmax(graph: Graph, kept: Tensor, x: Tensor, t: Tensor) -> None:
    """The aggregation with the edges gone, with a score of 0 here, and with a score of 0 inside the softmax."""
    pruned = graph.prune(Mask(kept)).hops(None, depth=1)[0]
    gone = softmax_aggregate(pruned.csr, torch.ones(pruned.csr.num_entries), x, t)
    whole = graph.hops(None, depth=1)[0]
    scores = whole.spread(kept.float())
    ours = softmax_aggregate(whole.csr, scores, x, t)
    rows, columns = whole.csr.rows, whole.csr.indices.long()
    inside, leaked = torch.empty_like(gone), 0.0
    for low, high in pairwise([*range(0, x.shape[1], _AT_A_TIME), x.shape[1]]):
        message = (x[:, low:high].relu() + EPS)[columns] * scores.unsqueeze(1)
        weight = (t * message).exp()
        total = torch.zeros_like(gone[:, low:high]).index_add_(0, rows, weight)
        above = torch.zeros_like(total).index_add_(0, rows, weight * message)
        inside[:, low:high] = above / total
        leaked += float((weight / total[rows])[scores == 0].sum())
    size = gone.abs().mean()
    for name, found in (("score 0 here", ours), ("score 0 inside the softmax", inside)):
        difference = (found - gone).abs()
        moved = (difference.amax(1) > 1e-5 * size).float().mean()
        print(
            f"{name}: outputs differ from those without the edges by {100 * float(difference.mean() / size):.3g} % "
            f"on average, for {100 * float(moved):.3g} % of the nodes"
        )
    weight_of_pruned = leaked / (graph.num_nodes * x.shape[1])
    print(f"inside the softmax, pruned edges keep {100 * weight_of_pruned:.3g} % of all attention")


def tell_layers(edges: int, sparsity: float, layers: int) -> None:
    """How many edges are gone from all layers if each layer prunes as many of its own, without any agreement."""
    removed = round(sparsity * edges)
    everywhere = torch.ones(edges, dtype=torch.bool)
    for layer in range(layers):
        everywhere &= ~keep_random(edges, edges - removed, seed=layer)
    print(
        f"{layers} masks of {share(removed, edges)} each: mean printed {share(removed, edges)}, "
        f"gone from all layers {int(everywhere.sum()):,} edges"
    )


def share(part: int, whole: int) -> str:
    """A part of a whole as per cent."""
    return f"{100 * part / whole:.1f} %"


if __name__ == "__main__":
    main()
