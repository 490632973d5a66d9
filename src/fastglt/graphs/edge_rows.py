"""The features of edges as networks read them: a row for each edge, then one for each node's self-loop."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fastglt.errors import InputError


@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeRows:
    """Features of columns, from which a table of rows is made when somebody asks for it.

    >>> columns, values = torch.tensor([[0, 1, 1], [1, 0, 1]]), torch.tensor([[5.0], [5.0], [7.0]])
    >>> rows = EdgeRows(columns=columns, edge=torch.tensor([0, 0, 1]), values=values, nodes=2)
    >>> rows.table.tolist()  # of the edge, then of each node's self-loop
    [[5.0], [0.0], [7.0]]
    """

    columns: Tensor  # int64 [2, columns], the self-loops last
    edge: Tensor  # the edge of each column; a self-loop has the number of edges
    values: Tensor  # [columns, features]
    nodes: int

    @cached_property
    def table(self) -> Tensor:
        """float32 [edges + nodes, features]; a self-loop that is not in the data has zeros."""
        loop = self.columns[0] == self.columns[1]
        edges = int(self.edge[~loop].max()) + 1 if bool((~loop).any()) else 0
        place = torch.where(loop, edges + self.columns[0], self.edge.long())
        values = self.values.detach().float()
        table = values.new_zeros(edges + self.nodes, values.shape[1])
        table[place] = values
        if not torch.equal(table[place], values):
            raise InputError(
                "an edge must have the same features in both directions (got others); say directed=True"
            )
        return table
