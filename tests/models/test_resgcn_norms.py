"""Batch renormalisation: a case by hand, and a whole ResGCN against PyG's layers around a plain form of it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fastglt.graphs.features import Features
from fastglt.models.resgcn.network import ResGCN
from fastglt.models.resgcn.norms import BatchRenorm, count, normalise
from fastglt.models.resgcn.twin import StockResGCN
from tests.helpers import randn
from tests.models.references import FEATURES, GRAPHS, HIDDEN, IN, OUT

VARIANTS: dict[str, dict[str, Any]] = {"one matrix": {}, "deeper MLPs": {"mlp_layers": 2}}


class PlainRenorm(nn.BatchNorm1d):
    """Renormalisation as its paper writes it down, with PyTorch's own gradients."""

    def forward(self, x: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        if not self.training:
            return super().forward(x)
        mean, variance = x.mean(0), x.var(0, correction=0)
        deviation, own = (self.running_var + self.eps).sqrt(), (variance + self.eps).sqrt()
        r, d = (own / deviation).clamp(1 / 3, 3).detach(), ((mean - self.running_mean) / deviation).clamp(-5, 5)
        if self.num_batches_tracked == 0:
            r, d = torch.ones_like(r), torch.zeros_like(d)
        with torch.no_grad():
            first = self.num_batches_tracked == 0
            about = variance if first else variance + (mean - self.running_mean) ** 2
            self.num_batches_tracked += 1
            share = max(0.1, 1 / int(self.num_batches_tracked))
            self.running_var.lerp_(about, share)
            self.running_mean.lerp_(mean, share)
        return ((x - mean) / own * r + d.detach()) * self.weight + self.bias


def with_plain_norms(model: nn.Module) -> nn.Module:
    """The same model with every batch norm in plain form."""
    for name, child in model.named_children():
        if isinstance(child, nn.BatchNorm1d):
            plain = PlainRenorm(child.num_features).double()
            plain.load_state_dict(child.state_dict())
            setattr(model, name, plain)
        else:
            with_plain_norms(child)
    return model


def test_a_case_by_hand() -> None:
    norm = BatchRenorm(1)
    weight, bias = torch.tensor([3.0]), torch.tensor([1.0])
    norm.count(torch.tensor([2.0]), torch.tensor([4.0 - norm.eps]))
    assert [float(part) for part in norm.corrected(weight, bias)] == [3.0, 1.0]  # nothing to compare with
    norm.count(torch.tensor([6.0]), torch.tensor([16.0 - norm.eps]))
    assert [float(part) for part in norm.corrected(weight, bias)] == [6.0, 7.0]  # twice as wide, two away
    assert norm.running_mean == 4.0
    torch.testing.assert_close(norm.running_var, torch.tensor([(4.0 + 16.0 + 16.0) / 2]))
    norm.count(torch.tensor([1000.0]), torch.tensor([0.0]))
    assert float(norm.scale) == pytest.approx(1 / 3)
    assert float(norm.shift) == 5.0
    torch.testing.assert_close(norm.running_mean, torch.tensor([(2.0 + 6.0 + 1000.0) / 3]))  # all so far
    for _ in range(20):
        norm.count(torch.tensor([0.0]), torch.tensor([1.0]))
    torch.testing.assert_close(norm.running_mean, torch.tensor([1008.0 / 10 * 0.9**13]))  # then a tenth


def test_training_normalises_as_evaluation_would() -> None:
    norm, weight, bias = BatchRenorm(3), randn(3), randn(3, seed=1)
    with torch.no_grad():
        normalise(norm.train(), randn(9, 3, seed=2), weight, bias)
        rows = 0.5 + 1.5 * randn(9, 3, seed=3)
        expected = normalise(norm.eval(), rows, weight, bias)
        torch.testing.assert_close(normalise(norm.train(), rows, weight, bias), expected)


def test_a_single_row_is_refused() -> None:
    with pytest.raises(ValueError, match="two rows or more"):
        count(BatchRenorm(1).train(), torch.ones(1), torch.ones(1), 1)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", ["undirected", "directed"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_network_with_it_is_pygs(variant: str, kind: str) -> None:
    graph = GRAPHS[kind]
    options = {"num_layers": 4, "dropout": 0.0, "norm": "renorm", **VARIANTS[variant]}
    ours = ResGCN(IN, HIDDEN, OUT, **options).double()
    theirs = StockResGCN.of(ours.spec).double()
    theirs.load_weights(ours)
    with_plain_norms(theirs)
    x = FEATURES["dense"].dense.double()
    for _ in range(3):  # from the second on there is something to correct
        x = 2 * x + 1
        out, expected = ours.train()(Features(x), graph), theirs.train()(x, graph.edge_index)
        torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)
        direction = randn(*out.shape, seed=42).double()
        mine = torch.autograd.grad((out * direction).sum(), list(ours.parameters()))
        theirs.zero_grad()
        (expected * direction).sum().backward()
        for (name, _), gradient in zip(ours.named_parameters(), mine, strict=True):
            want = theirs.get_parameter(theirs.names[name]).grad
            assert want is not None
            got = gradient.T if gradient.dim() == 2 else gradient
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    for name, buffer in ours.named_buffers():
        torch.testing.assert_close(buffer, theirs.get_buffer(theirs.names[name]), rtol=1e-6, atol=1e-6)
    out, expected = ours.eval()(Features(x), graph), theirs.eval()(x, graph.edge_index)
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)
