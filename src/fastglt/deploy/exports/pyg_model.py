"""A graph lottery ticket as an ordinary PyG model. It needs torch, torch_geometric, numpy and safetensors.

    python model.py                  # node, class and its probability, a line for each node; or its labels
    python model.py scores.npz       # the same as arrays: scores, classes; or labels, where a node has many

`load()` gives the model and its data, `load(folder)` those of another folder. Pruned weights are zero, pruned edges
are gone. What multiplies each message is data.edge_weight: GCN's norm or GIN's mean, times the edge's score; in GAT
the score, after the softmax. Labels and split, if the ticket's data had them, are data.y, train_mask, val_mask and
test_mask.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn
from torch_geometric.data import Data


def load(folder: Path | str = Path(__file__).parent) -> tuple[nn.Module, Data]:
    """The model and the data in a folder, by default that of this file."""
    folder = Path(folder)
    with safe_open(folder / "model.safetensors", "pt") as file:
        about = file.metadata()
    model: nn.Module = globals()[about["kind"]](**json.loads(about["arguments"]))
    model.load_state_dict(load_file(folder / "model.safetensors"), assign=True)  # float32 whatever the default is
    return model.eval(), Data(**load_file(folder / "data.safetensors"))


def main() -> None:
    """Print the predictions, or write them to the file that is named."""
    model, data = load()
    with torch.no_grad():
        scores = model(data.x, data.edge_index, data.edge_weight)
    if "y" in data and data.y.dim() == 2:  # many labels a node, each there or not
        _tell_labels(scores > 0, scores)
        return
    top, classes = scores.softmax(1).max(1)
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], scores=scores.numpy(), classes=classes.numpy())
        return
    for node, (kind, probability) in enumerate(zip(classes.tolist(), top.tolist(), strict=True)):
        print(f"{node}\t{kind}\t{probability:.4f}")


def _tell_labels(there: torch.Tensor, scores: torch.Tensor) -> None:
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], scores=scores.numpy(), labels=there.numpy())
        return
    for node, row in enumerate(there):
        print(f"{node}\t{' '.join(map(str, row.nonzero().squeeze(1).tolist()))}")


if __name__ == "__main__":
    main()
