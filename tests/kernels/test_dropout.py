import pytest
import torch
from torch import Tensor

from fastglt.kernels import dropout
from fastglt.kernels.drop import Drop
from tests.conftest import BACKENDS
from tests.helpers import randn
from tests.kernels.references import dropout_factor


def kept_by_dropout(rows: int, width: int, p: float, seed: int) -> Tensor:
    """Which numbers a dropout keeps."""
    torch.manual_seed(seed)
    return dropout(torch.ones(rows, width), p, training=True) > 0


@pytest.mark.usefixtures("backend")
class TestDropout:
    @pytest.mark.parametrize("width", [1, 7, 64])
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    @pytest.mark.parametrize("seed", [0, 5])
    def test_the_bits_are_the_hash_of_key_row_and_column(self, width: int, p: float, seed: int) -> None:
        expected = dropout_factor(13, width, p, seed)
        torch.manual_seed(seed)
        assert torch.equal(dropout(torch.ones(13, width), p, training=True), expected)

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 0.9])
    def test_keeps_the_share_and_the_mean(self, p: float) -> None:
        torch.manual_seed(0)
        out = dropout(torch.ones(500, 400), p, training=True)
        noise = (p * (1 - p) / out.numel()) ** 0.5  # one standard deviation of the share kept
        assert float((out > 0).float().mean()) == pytest.approx(1 - p, abs=4 * noise)
        assert float(out.double().mean()) == pytest.approx(1, abs=4 * noise / (1 - p))
        assert float(out[out > 0].min()) == float(out.max()) == pytest.approx(1 / (1 - p))

    def test_the_seed_decides(self) -> None:
        assert torch.equal(kept_by_dropout(20, 30, 0.5, seed=7), kept_by_dropout(20, 30, 0.5, seed=7))
        assert not torch.equal(kept_by_dropout(20, 30, 0.5, seed=7), kept_by_dropout(20, 30, 0.5, seed=8))

    def test_two_calls_in_a_row_differ(self) -> None:
        torch.manual_seed(0)
        one, two = (dropout(torch.ones(20, 30), 0.5, training=True) for _ in range(2))
        assert not torch.equal(one, two)

    def test_eval_and_zero_change_nothing_and_draw_nothing(self) -> None:
        x, before = randn(3, 4), torch.get_rng_state()
        assert dropout(x, 0.5, training=False) is x
        assert dropout(x, 0.0, training=True) is x
        assert torch.equal(torch.get_rng_state(), before)

    def test_gradcheck(self) -> None:
        def function(x: Tensor) -> Tensor:
            torch.manual_seed(3)
            return dropout(x, 0.4, training=True)

        x = randn(5, 6, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(function, (x,))

    def test_the_gradient_is_masked_like_the_value(self) -> None:
        x = torch.ones(9, 11, requires_grad=True)
        torch.manual_seed(0)
        out = dropout(x, 0.5, training=True)
        assert torch.equal(torch.autograd.grad(out.sum(), x)[0], out.detach())

    def test_the_input_need_not_be_contiguous(self) -> None:
        x = randn(6, 5)
        torch.manual_seed(0)
        expected = dropout(x.T.contiguous(), 0.5, training=True)
        torch.manual_seed(0)
        assert torch.equal(dropout(x.T, 0.5, training=True), expected)


def test_every_back_end_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for name in BACKENDS:
        monkeypatch.setenv("FASTGLT_BACKEND", name)
        torch.manual_seed(5)
        results.append([dropout(randn(67, width), 0.37, training=True) for width in (1, 7, 512)])
    for compiled, *others in zip(*results, strict=True):
        assert all(torch.equal(compiled, other) for other in others)


def test_the_share_dropped_is_the_threshold_of_the_hash() -> None:
    torch.manual_seed(0)
    drop = Drop.draw(0.25, training=True)
    torch.manual_seed(0)
    assert drop == Drop(key=int(torch.randint(2**62, ())), threshold=2**30, scale=4 / 3)
    assert Drop.draw(0.25, training=False) is None
    assert Drop.draw(0.0, training=True) is None


@pytest.mark.parametrize("lag", [1, 2, 16, 64])
def test_is_uncorrelated_between_rows_and_columns(lag: int) -> None:
    kept = kept_by_dropout(1024, 1024, 0.5, seed=1).double() * 2 - 1
    deviation = 1 / 1000  # of the mean of a million fair signs
    assert abs(float((kept[lag:] * kept[:-lag]).mean())) < 4 * deviation
    assert abs(float((kept[:, lag:] * kept[:, :-lag]).mean())) < 4 * deviation
    assert abs(float((kept[lag:, lag:] * kept[:-lag, :-lag]).mean())) < 4 * deviation


def test_is_uncorrelated_between_calls() -> None:
    signs = [kept_by_dropout(1024, 1024, 0.5, seed=seed).double() * 2 - 1 for seed in range(3)]
    for one, two in ((0, 1), (1, 2), (0, 2)):
        assert abs(float((signs[one] * signs[two]).mean())) < 4 / 1000


def test_drops_as_often_in_every_row_and_column() -> None:
    kept = kept_by_dropout(1024, 1024, 0.5, seed=2).double()
    for axis in (0, 1):
        worst = float((kept.mean(axis) - 0.5).abs().max())
        assert worst < 5 * 0.5 / 32  # five standard deviations: one in a thousand such tests would fail by chance
