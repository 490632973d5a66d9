"""A graph lottery ticket for links as a PyG model. It needs torch, torch_geometric, numpy and safetensors.

    python model.py pairs.csv               # source, target and how likely they are linked, a line for each pair
    python model.py pairs.csv scores.npz    # the same as arrays: pairs, scores

`load()` gives the model and its data, `load(folder)` those of another folder. Pruned weights are zero, pruned edges
are gone, and so are those that were held back to be predicted. What multiplies each message is data.edge_weight.
"""

import csv
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
    encoder: nn.Module = globals()[about["kind"]](**json.loads(about["arguments"]))
    model: nn.Module = globals()["Links"](encoder, json.loads(about["decoder"]))
    model.load_state_dict(load_file(folder / "model.safetensors"), assign=True)  # float32 whatever the default is
    return model.eval(), Data(**load_file(folder / "data.safetensors"))


def main() -> None:
    """Print how likely the pairs of a file are linked, or write it to the file that is named."""
    if len(sys.argv) < 2:
        sys.exit("usage: python model.py pairs.csv [scores.npz]")
    with open(sys.argv[1], encoding="utf-8-sig", newline="") as file:
        lines = [[cell.strip() for cell in row[:2]] for row in csv.reader(file)]
    rows = [line for line in lines if any(line) and not line[0].lower().startswith("source")]
    pairs = torch.tensor([[int(node) for node in row] for row in rows])
    model, data = load()
    with torch.no_grad():
        scores = model(data.x, data.edge_index, data.edge_weight, pairs)[:, 0]
    if len(sys.argv) > 2:
        np.savez(sys.argv[2], pairs=pairs.numpy(), scores=scores.numpy())
        return
    for (source, target), probability in zip(pairs.tolist(), scores.sigmoid().tolist(), strict=True):
        print(f"{source}\t{target}\t{probability:.4f}")


if __name__ == "__main__":
    main()
