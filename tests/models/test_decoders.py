"""Decoders: against PyTorch's own layers, with and without keeping what gradients need."""

import pytest
import torch
from torch import Tensor, nn

from fastglt import InputError
from fastglt.models import decoders
from fastglt.models.decoders import MLP, Dot, make_decoder
from tests.helpers import randn

PAIRS = torch.tensor([[0, 1], [2, 2], [3, 0], [1, 0], [0, 3], [0, 1]])


def reference(decoder: MLP, h: Tensor, pairs: Tensor) -> Tensor:
    """PyTorch's linear layers with the same numbers."""
    layers: list[nn.Module] = []
    for weight, bias in zip(decoder.weights, decoder.biases, strict=True):
        layer = nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = weight.detach().T, bias.detach()
        layers += [layer, nn.ReLU()]
    found: Tensor = nn.Sequential(*layers[:-1])(h[pairs[:, 0]] * h[pairs[:, 1]])
    return found


@pytest.fixture(params=["kept", "recomputed"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Few pairs, or so many that they are decoded two at a time and again for gradients."""
    if request.param == "recomputed":
        monkeypatch.setattr(decoders, "_KEPT", 0)
        monkeypatch.setattr(decoders, "_AT_A_TIME", 2)
    return str(request.param)


@pytest.mark.usefixtures("memory")
class TestBoth:
    def test_the_mlp_is_pytorchs(self) -> None:
        decoder, h = MLP(5, 7, 3, seed=1), randn(4, 5)
        with torch.no_grad():
            for bias in decoder.biases:
                bias.copy_(randn(*bias.shape, seed=4))
        torch.testing.assert_close(decoder(h, PAIRS), reference(decoder, h, PAIRS))

    def test_the_dot_product(self) -> None:
        h = randn(4, 5)
        expected = torch.stack([h[a] @ h[b] for a, b in PAIRS.tolist()]).unsqueeze(1)
        torch.testing.assert_close(Dot()(h, PAIRS), expected)

    @pytest.mark.parametrize("name", ["mlp", "dot"])
    def test_gradients_of_rows_and_weights(self, name: str) -> None:
        decoder = make_decoder(name, width=3, hidden=4, layers=2, seed=0).double()
        h = randn(4, 3, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda rows, *_: decoder(rows, PAIRS), (h, *decoder.learnt))

    @pytest.mark.parametrize("name", ["mlp", "dot"])
    def test_both_orders_of_a_pair_are_one(self, name: str) -> None:
        decoder, h = make_decoder(name, width=5, seed=0), randn(4, 5)
        assert torch.equal(decoder(h, PAIRS), decoder(h, PAIRS.flip(1)))


def test_the_mlp_is_as_wide_as_rows_unless_told() -> None:
    assert [tuple(part.shape) for part in make_decoder("mlp", width=6, seed=0).learnt[:3]] == [
        (6, 6),
        (6, 6),
        (6, 1),
    ]
    assert make_decoder("mlp", width=6, seed=0, hidden=2, layers=2).spec == {
        "name": "mlp",
        "hidden": 2,
        "layers": 2,
    }


def test_the_seed_decides_the_weights() -> None:
    one, again, other = (make_decoder("mlp", width=6, seed=seed).learnt[0] for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_unknown_ones_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown decoder \(got 'bilinear'\)"):
        make_decoder("bilinear", width=3, seed=0)
