"""What an order of the nodes in which neighbours lie close is worth: one product, in turns with and without it.

    python benchmarks/node_order.py --datasets ogbn-arxiv,synthetic:nodes=166000,edges=1000000,classes=1000

Seconds of the processor, the least of some rounds. A `;` parts datasets whose names have commas.
"""

import argparse
import time
from collections.abc import Callable

import torch

from fastglt.data import load
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import set_threads, spmm
from fastglt.kernels.csr import LARGE
from fastglt.kernels.order import near_order

_NEAR = 1024  # rows that two neighbours may be apart


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--datasets", default="ogbn-arxiv", help="separated by ;")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    set_threads(1)
    print(f"{'':42}{'order s':>9}{'near':>7}{'product s':>11}{'near':>7}{'product s':>11}")
    for name in given.datasets.split(";"):
        tensors = load(name.strip(), root=given.data_root).tensors
        graph = Graph.from_edge_index(tensors["edge_index"], tensors["x"].shape[0])
        assert graph.num_edges >= LARGE, "only large graphs are ordered"
        tell(name, graph.hops(None, depth=1)[0], given.width, given.rounds)


def tell(name: str, hop: Hop, width: int, rounds: int) -> None:
    """A row: what the order takes to find, and the product without and with it."""
    near_order(hop.csr)  # compiled by now
    began = time.process_time()
    order = near_order(hop.csr)
    spent, hops = time.process_time() - began, [hop] if order is None else [hop, hop.ordered(order)]
    dense = torch.randn(hop.csr.num_columns, width, generator=torch.Generator().manual_seed(0))
    values = torch.ones(hop.csr.num_entries)
    works: list[Callable[[], object]] = [lambda each=each: spmm(each.csr, values, dense) for each in hops]  # type: ignore[misc]
    times = [[seconds(work) for work in works] for _ in range(rounds)]
    row = f"{name.strip()[:41]:42}{spent:9.2f}"
    for i, each in enumerate(hops):
        apart = (each.csr.rows - each.csr.indices).abs()
        row += f"{float((apart <= _NEAR).float().mean()):7.0%}{min(part[i] for part in times):11.3f}"
    print(row if order is not None else f"{row}   left as it is", flush=True)


def seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
