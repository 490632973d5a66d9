"""The peer: a backbone's twin from PyG's own layers, trained the way PyG's examples do.

It knows nothing of our kernels, so that a process can run it as any PyG script would.
"""

import warnings

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fastglt.errors import unknown_name
from fastglt.models.twins import StockNetwork
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.data import Data
    from torch_geometric.utils import remove_self_loops, to_torch_csr_tensor

FORMS = ("edge_index", "csr")  # how PyG may be given a graph


def adjacency(network: StockNetwork, data: "Data", form: str) -> Tensor:
    """The graph as PyG takes it: `edge_index`, or a matrix whose row i holds the nodes that i hears."""
    if form not in FORMS:
        raise unknown_name("form of a graph", form, FORMS)
    edge_index: Tensor = data.edge_index
    if form == "edge_index":
        return edge_index
    if network.adds_loops:  # with a matrix, GCNConv would count a loop of the data twice
        edge_index, _ = remove_self_loops(edge_index)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)")
        return to_torch_csr_tensor(edge_index.flip(0), size=(data.num_nodes, data.num_nodes))  # type: ignore[no-any-return]


class StockTraining:
    """A stock network, its optimiser and its data, as in PyG's examples; `data` lies on the device already."""

    def __init__(self, network: StockNetwork, data: "Data", form: str, *, lr: float, weight_decay: float) -> None:
        self.network, self.data = network.to(data.x.device), data
        self.graph = adjacency(network, data, form)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr, weight_decay=weight_decay)

    def run_epoch(self) -> tuple[float, float]:
        """One step on the training nodes, then the accuracy on validation and test."""
        data = self.data
        self.network.train()
        self.optimizer.zero_grad()
        logits = self.network(data.x, self.graph)
        cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return self.evaluate()

    @torch.no_grad()
    def evaluate(self) -> tuple[float, float]:
        """The accuracy on validation and test."""
        data = self.data
        self.network.eval()
        predicted = self.network(data.x, self.graph).argmax(-1)
        right = [int((predicted[mask] == data.y[mask]).sum()) for mask in (data.val_mask, data.test_mask)]
        return right[0] / max(1, int(data.val_mask.sum())), right[1] / max(1, int(data.test_mask.sum()))
