"""A ticket of your own PyG model, from the search to the pruned graph.

python examples/own_model.py        (EPOCHS=400 for a real search)
"""

import os
import tempfile
from pathlib import Path

import torch
from torch_geometric.nn import GraphSAGE

import fastglt
from fastglt.data import load

epochs = int(os.environ.get("EPOCHS", "40"))

# Handwritten digits, each linked to its nearest neighbours: a PyG `Data` that needs no download.
data = load("digits").data
classes = int(data.y.max()) + 1

torch.manual_seed(0)
model = GraphSAGE(data.num_features, 32, num_layers=2, out_channels=classes)  # left as it is

# How long to search: soft masks are trained for `oneshot_epochs`, then denoised for `denoise_epochs`.
budget = fastglt.Budget(
    oneshot_epochs=max(1, epochs // 10), denoise_epochs=epochs, interval=max(1, epochs // 10), lr=0.01
)
ticket = fastglt.find_ticket(model, data, graph_sparsity=0.2, weight_sparsity=0.8, budget=budget, seed=0)
print(f"{ticket.graph_sparsity:.0%} of the edges and {ticket.weight_sparsity:.0%} of the weights are gone")
print(f"accuracy on test nodes: {ticket.scores['search_test']:.3f} at the end of the search, ", end="")
print(f"{ticket.scores['isolated_test']:.3f} retrained from the initial weights")

# Is it a winning ticket? Dense model and ticket are trained from the same initial weights, once for each seed.
verdict = fastglt.evaluate(ticket, model, data, seeds=range(2))
print(verdict.sentence)

# A ticket is a small file; beside it lie the initial weights of your model.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.safetensors"
    ticket.save(path)
    ticket = fastglt.Ticket.load(path, data)  # verified; another graph is refused

# Use it with plain PyG: weights with zeros in the pruned places, and a graph without the pruned edges.
model.load_state_dict(dict(ticket.weights))
small = ticket.prune(data)
classes_of_nodes = model.eval()(small.x, small.edge_index).argmax(1)
correct = (classes_of_nodes == data.y)[data.test_mask].float().mean()
print(f"plain PyG with {small.num_edges} instead of {data.num_edges} columns: {float(correct):.3f}")
