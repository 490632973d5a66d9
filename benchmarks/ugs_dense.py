"""One epoch of UGS's mask training: ours against the same step with dense N×N matrices, as UGS is usually coded.

    python benchmarks/ugs_dense.py --threads 1

Cora, GCN with 512 hidden units; a training step and an evaluation. The dense side is plain PyTorch: dense adjacency
times dense soft mask with an entry for each direction, dense features, soft masks on the weights, the l1
subgradient, Adam on all of it. It is timed twice: as UGS is published, the masked adjacency normalised anew in each
pass by products with diagonal matrices; and as lean as dense N×N can be, normalised by degrees that are found once.
All start from the same weights and masks, and it is checked that they give the same class scores. They take turns;
medians.
"""

import argparse

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, relu

from fastglt.bench.runs import SteppedSearch, interleaved
from fastglt.kernels import set_threads
from fastglt.methods import UGS, Budget, Targets
from fastglt.methods.settings.published import options_for
from fastglt.runs.experiment import Experiment
from fastglt.system.process import keep_freed_memory
from fastglt.system.seeds import own_random_state

_FOREVER = 10**9  # epochs: a stage that does not end while it is measured


class DenseUGS:
    """The step written plainly; everything N×N is dense."""

    def __init__(self, run: SteppedSearch, method: UGS, *, as_published: bool) -> None:
        training, self.method, self.as_published = run.training, method, as_published
        task, graph = training.task, training.task.graph
        assert training.soft_edge_mask is not None
        self.y, self.train, self.val, self.test = task.y, task.train, task.val, task.test
        self.x, nodes, (source, target) = task.x.dense, graph.num_nodes, graph.edges
        self.adjacency = torch.zeros(nodes, nodes)
        self.adjacency[source, target] = self.adjacency[target, source] = 1
        scale = (self.adjacency.sum(1) + 1).rsqrt()
        self.norm, self.loops = scale[:, None] * scale, torch.eye(nodes)
        self.edge_mask = torch.ones(nodes, nodes)
        self.edge_mask[source, target] = self.edge_mask[target, source] = training.soft_edge_mask.detach()
        self.edge_mask.requires_grad_()
        names = ("layer1", "layer2")
        copies = {
            name: value.detach().clone().requires_grad_() for name, value in training.soft_weight_masks.items()
        }
        self.weight_masks = [copies[f"{name}.weight"] for name in names]
        own = {name: value.detach().clone() for name, value in training.network.named_parameters()}
        self.weights = [own[f"{name}.weight"].requires_grad_() for name in names]
        self.biases = [own[f"{name}.bias"].requires_grad_() for name in names]
        decayed = {"params": self.weights + self.biases, "weight_decay": method.search_weight_decay}
        self.optimizer = torch.optim.Adam([decayed], lr=method.search_lr)
        self.optimizer.add_param_group({"params": [self.edge_mask, *self.weight_masks]})

    def logits(self, *, training: bool) -> Tensor:
        propagate = self.adjacency * self.edge_mask + self.loops
        if self.as_published:
            scale = torch.diag(propagate.sum(1).clamp(min=1e-12).rsqrt())
            propagate = scale @ propagate @ scale
        else:
            propagate = self.norm * propagate
        first, second = (weight * mask for weight, mask in zip(self.weights, self.weight_masks, strict=True))
        hidden = relu(propagate @ (self.x @ first) + self.biases[0])
        return propagate @ (dropout(hidden, 0.5, training) @ second) + self.biases[1]

    def epoch(self) -> tuple[float, float, float]:
        """Train, then look at validation and test."""
        self.optimizer.zero_grad()
        loss = cross_entropy(self.logits(training=True)[self.train], self.y[self.train])
        loss.backward()  # type: ignore[no-untyped-call]
        pressures = [self.method.edge_l1, *[self.method.weight_l1] * len(self.weight_masks)]
        for mask, pressure in zip([self.edge_mask, *self.weight_masks], pressures, strict=True):
            assert mask.grad is not None
            mask.grad += pressure * mask.detach().sign()
        self.optimizer.step()
        with torch.no_grad():
            logits = self.logits(training=False)
        right = logits.argmax(1) == self.y
        val_loss = float(cross_entropy(logits[self.val], self.y[self.val]))
        return float(right[self.val].float().mean()), val_loss, float(right[self.test].float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    keep_freed_memory()
    set_threads(arguments.threads)
    targets, options = Targets(graph_sparsity=0.2, weight_sparsity=0.9), options_for("ugs", "cora", "gcn")
    prepared = Experiment(
        dataset="cora", model="gcn", method="ugs", targets=targets, budget=Budget(), options=options
    ).prepare()
    method = UGS(targets=targets, round_epochs=_FOREVER, **options)
    device = prepared.task.device
    with own_random_state(device):
        ours = SteppedSearch(prepared.network, prepared.task, method, seed=0)
        dense = {
            "dense N×N as published": DenseUGS(ours, method, as_published=True),
            "dense N×N at its leanest": DenseUGS(ours, method, as_published=False),
        }
        ours.training.network.eval()
        with torch.no_grad():
            expected = ours.training.outputs(None)
            for side in dense.values():  # soft masks are a hundred-thousandth off 1, and so are degrees
                torch.testing.assert_close(side.logits(training=False), expected, rtol=1e-3, atol=1e-4)
        print("the same class scores at the start", flush=True)
        sides = {"ours": ours.epoch, **{name: side.epoch for name, side in dense.items()}}
        seconds = interleaved(sides, repeats=arguments.repeats, device=device)
    print(f"ours: {1000 * seconds['ours']:.1f} ms per epoch on {arguments.threads} thread(s)")
    for name in dense:
        print(f"{name}: {1000 * seconds[name]:.1f} ms per epoch, {seconds[name] / seconds['ours']:.1f} times ours")


if __name__ == "__main__":
    main()
