"""The part of a graph, and of its features, that some nodes have among themselves."""

from dataclasses import replace

from torch import Tensor

from fastglt.graphs.graph import Graph


def induced(graph: Graph, kept: Tensor) -> tuple[Graph, Tensor]:
    """The graph of the kept nodes, numbered anew in their old order, and which of the edges are in it.

    Edges are sorted by their ends, so those that are left have their old order too.

    >>> import torch
    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=4)
    >>> part, inside = induced(path, torch.tensor([True, False, True, True]))
    >>> part.edges.tolist(), inside.tolist()
    ([[1], [2]], [False, False, True])
    """
    given, number = graph.as_given, kept.long().cumsum(0) - 1
    columns = kept[given.edge_index].all(0)
    attr, weight = given.edge_attr, given.edge_weight
    part = Graph._prepare(
        number[given.edge_index[:, columns]],
        int(kept.sum()),
        graph.directed,
        None if attr is None else attr[columns],
        None if weight is None else weight[columns],
        {name: value[columns] for name, value in given.edge_fields.items()},
    )
    fields = {name: value[kept] for name, value in graph.node_fields.items()}
    return replace(part, node_fields=fields, withheld=graph.withheld), kept[graph.edges].all(0)
