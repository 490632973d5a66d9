"""A search of a user's own PyG model that survives kills: `python -m tests.kills.user_model FOLDER`."""

import sys
from pathlib import Path

import torch

from fastglt import Budget, Targets, set_threads
from fastglt.data import load
from fastglt.methods import make
from fastglt.runs.run_folder import RunFolder
from fastglt.system.quiet import quiet_import
from fastglt.tasks import NodeClassification
from fastglt.tickets.find import find
from fastglt.tickets.networks import as_network
from tests.kills import GRAPH

with quiet_import():
    from torch_geometric.nn import GraphSAGE


def main(path: Path) -> None:
    """Search, retrain, write the ticket; a finished folder is left as it is."""
    set_threads(1)
    torch.manual_seed(0)
    data = load(GRAPH).data
    model = GraphSAGE(data.num_features, 16, num_layers=2, out_channels=4, dropout=0.5)
    task = NodeClassification.from_data(data)
    budget = Budget(oneshot_epochs=10, denoise_epochs=40, interval=5, lr=0.01)
    method = make("fastglt", targets=Targets(graph_sparsity=0.2, weight_sparsity=0.8), budget=budget)
    network = as_network(model, task, hidden=16, seed=0, soft_edges=True)
    folder = RunFolder(path, {"method": "fastglt", "model": "GraphSAGE"}, checkpoint_every=0)
    with folder.open() as finished:
        if finished is None:
            found = find(network, task, method, seed=0, journal=folder)
            found.ticket.save(path / "ticket.safetensors")
            metrics = {"seed": 0, **found.ticket.scores}
            folder.complete(metrics, {name: phase.history for name, phase in found.phases.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
