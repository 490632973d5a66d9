"""Links: rows of nodes by another model, then a decoder. This file is handed out: it needs torch."""

from torch import Tensor, nn


class Links(nn.Module):
    """A number for each pair of nodes: above 0 a link is likelier than none. Without sizes it is a dot product."""

    def __init__(self, encoder: nn.Module, sizes: list[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.lins = nn.ModuleList(nn.Linear(sizes[i], sizes[i + 1]) for i in range(len(sizes) - 1))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, pairs: Tensor) -> Tensor:
        """The numbers, [pairs, 1]; pairs are node ids, a row of two each."""
        h: Tensor = self.encoder(x, edge_index, edge_weight)
        both = h[pairs[:, 0]] * h[pairs[:, 1]]
        for i, lin in enumerate(self.lins):
            both = lin(both if i == 0 else both.relu())
        return both if len(self.lins) else both.sum(1, keepdim=True)
