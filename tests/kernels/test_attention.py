import pytest
import torch
from torch import Tensor

from fastglt.kernels import attention
from tests.helpers import randn, values_and_gradients
from tests.kernels.references import PATTERNS, by_pattern, csr_of, dense_attention

pytestmark = pytest.mark.usefixtures("backend")


@by_pattern
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_equals_the_softmax_of_each_row_and_its_gradients(pattern: Tensor, heads: int) -> None:
    csr = csr_of(pattern)
    inputs = randn(pattern.shape[0], heads, seed=1), randn(pattern.shape[1], heads, seed=2)
    ours = values_and_gradients(lambda t, s: attention(csr, t, s, 0.2), *inputs)
    expected = values_and_gradients(lambda t, s: dense_attention(pattern, t, s, 0.2), *inputs)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("heads", [2, 5])
@pytest.mark.parametrize("name", ["empty rows", "rectangular"])
def test_gradcheck(name: str, heads: int) -> None:
    csr = csr_of(PATTERNS[name])
    target = randn(csr.num_rows, heads, seed=1, dtype=torch.float64).requires_grad_()
    source = randn(csr.num_columns, heads, seed=2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda t, s: attention(csr, t, s, 0.2), (target, source))


@pytest.mark.parametrize("heads", [1, 8])
def test_large_logits_do_not_overflow(heads: int) -> None:
    csr = csr_of(torch.ones(1, 2, dtype=torch.bool))
    source = torch.tensor([[500.0], [-3e4]]).repeat(1, heads)
    alpha = attention(csr, torch.full((1, heads), 1000.0), source, 0.2)
    assert alpha.tolist() == [[1] * heads, [0] * heads]


def test_inputs_need_not_be_contiguous() -> None:
    pattern = PATTERNS["hub"]
    csr = csr_of(pattern)
    inputs = randn(3, 9, seed=1).T, randn(3, 9, seed=2).T
    ours = values_and_gradients(lambda t, s: attention(csr, t, s, 0.2), *inputs)
    expected = values_and_gradients(lambda t, s: dense_attention(pattern, t, s, 0.2), *inputs)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
