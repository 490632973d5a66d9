"""Compile a ticket and predict with it: nodes of its graph, other features, nodes that came later.

python examples/predict.py        (EPOCHS=400 for a real search)
"""

import os

import torch

import fastglt
from fastglt.data import load

epochs = int(os.environ.get("EPOCHS", "40"))
data = load("digits").data
budget = fastglt.Budget(
    oneshot_epochs=max(1, epochs // 10), denoise_epochs=epochs, interval=max(1, epochs // 10), lr=0.01
)
ticket = fastglt.find_ticket("gcn", data, hidden=64, budget=budget, isolated=False, seed=0)

# Pruned edges, pruned weights and hidden units that no weight reaches are gone from a predictor.
predictor = fastglt.compile_ticket(ticket, data)
about = predictor.about()
print(f"{about['edges']} edges and {about['live_units']} of 64 hidden units are left")

# Classes of a few nodes: only their neighbourhoods are touched. `predictor.logits(nodes)` gives the outputs.
print("classes of nodes 3, 14 and 15:", predictor.predict([3, 14, 15]).tolist())
right = (predictor.predict() == data.y)[data.test_mask].float().mean()
print(f"accuracy on the test nodes: {float(right):.3f}")

# The same nodes with other features.
blurred = predictor.with_features(data.x * 0.9)
changed = int((blurred.predict() != predictor.predict()).sum())
print(f"with fainter digits {changed} of {data.num_nodes} nodes change their class")

# Two nodes that came later, each linked to two that were there. They are numbered on from the last one.
first = data.num_nodes
links = torch.tensor([[3, 7, 14, 15], [first, first, first + 1, first + 1]])
grown = predictor.with_nodes(data.x[[3, 14]], links)
print("classes of the new nodes:", grown.predict([first, first + 1]).tolist())
