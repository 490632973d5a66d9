import math

import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog
from torch import Tensor

from fastglt.methods.parts.transport import sinkhorn
from tests.helpers import randn


def clouds(n: int, m: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    return randn(n, 3, seed=seed, dtype=torch.float64), randn(m, 3, seed=seed + 50, dtype=torch.float64) + 0.3


def exact_matching(left: Tensor, right: Tensor) -> float:
    """Clouds of one size: the best way to pair them off."""
    cost = torch.cdist(left, right).numpy()
    return float(cost[linear_sum_assignment(cost)].mean())


def exact_plan(left: Tensor, right: Tensor) -> float:
    """Any sizes: the linear program over plans with uniform margins."""
    n, m = len(left), len(right)
    rows = torch.kron(torch.eye(n), torch.ones(1, m))
    columns = torch.kron(torch.ones(1, n), torch.eye(m))
    margins = torch.cat([torch.full((n,), 1 / n), torch.full((m,), 1 / m)])
    cost = torch.cdist(left, right).flatten()
    found = linprog(cost.numpy(), A_eq=torch.cat([rows, columns]).numpy(), b_eq=margins.numpy())
    assert found.fun is not None
    return float(found.fun)


class TestByHand:
    @pytest.mark.parametrize("eps", [1e-3, 1.0])
    def test_a_point_goes_to_a_point_along_a_straight_line(self, eps: float) -> None:
        left, right = torch.tensor([[1.0, 1.0]]), torch.tensor([[4.0, 5.0]])
        assert float(sinkhorn(left, right, eps=eps, iterations=1)) == pytest.approx(5)

    def test_a_point_goes_to_all_of_several_in_equal_shares(self) -> None:
        left, right = torch.tensor([[0.0]]), torch.tensor([[1.0], [-2.0], [6.0]])
        assert float(sinkhorn(left, right)) == pytest.approx(3)
        assert float(sinkhorn(right, left)) == pytest.approx(3)

    @pytest.mark.parametrize("eps", [0.25, 1.0])
    def test_two_points_and_the_same_two(self, eps: float) -> None:
        # Costs 0 1 / 1 0. By symmetry both potentials of a side are equal: −eps·log((1 + e^(−1/eps)) / 2) in all.
        pair = torch.tensor([[0.0], [1.0]])
        expected = -eps * math.log((1 + math.exp(-1 / eps)) / 2)
        assert float(sinkhorn(pair, pair, eps=eps)) == pytest.approx(expected)

    def test_crossing_costs_more_than_not_crossing(self) -> None:
        # 0 → 1 and 10 → 11: one step each. The plan is certain, so its entropy costs log 2.
        left, right = torch.tensor([[0.0], [10.0]]), torch.tensor([[11.0], [1.0]])
        assert float(sinkhorn(left, right)) == pytest.approx(1 + 1e-3 * math.log(2), abs=1e-5)

    def test_the_gradient_moves_each_point_towards_its_partner_by_its_share(self) -> None:
        left = torch.tensor([[0.0], [10.0]], requires_grad=True)
        sinkhorn(left, torch.tensor([[11.0], [1.0]])).backward()  # type: ignore[no-untyped-call]
        assert left.grad is not None
        torch.testing.assert_close(left.grad, torch.tensor([[-0.5], [-0.5]]))


class TestConverged:
    @pytest.mark.parametrize("seed", range(3))
    def test_clouds_of_one_size_against_the_best_matching(self, seed: int) -> None:
        left, right = clouds(7, 7, seed=seed)
        exact = exact_matching(left, right)
        found = float(sinkhorn(left, right, iterations=3000))
        assert exact <= found <= exact + 1e-3 * math.log(7) + 1e-9  # entropy costs no more than that

    @pytest.mark.parametrize(("n", "m"), [(4, 7), (9, 3), (2, 5)])
    def test_other_clouds_against_the_linear_program(self, n: int, m: int) -> None:
        left, right = clouds(n, m)
        exact = exact_plan(left, right)
        found = float(sinkhorn(left, right, iterations=6000))
        assert exact - 1e-6 <= found <= exact + 1e-3 * math.log(min(n, m)) + 1e-6

    def test_it_is_symmetric(self) -> None:
        left, right = clouds(5, 4)
        one, other = (sinkhorn(*pair, eps=0.1, iterations=1000) for pair in ((left, right), (right, left)))
        torch.testing.assert_close(one, other)

    def test_the_gradient_is_the_distances(self) -> None:
        left, right = (cloud.requires_grad_() for cloud in clouds(4, 3))
        assert torch.autograd.gradcheck(lambda a, b: sinkhorn(a, b, eps=0.3, iterations=300), (left, right))


class TestOnTheWay:
    def test_the_value_rises_towards_the_distance(self) -> None:
        left, right = clouds(30, 20)
        values = [float(sinkhorn(left, right, iterations=steps)) for steps in (1, 3, 10, 30, 100)]
        assert values == sorted(values)
        assert values[0] > 0
        assert values[-1] < exact_plan(left, right) + 1e-3 * math.log(20)

    @pytest.mark.parametrize("distance", [0.0, 1e-6, 1.0, 1e4])
    def test_small_eps_is_stable_in_single_precision(self, distance: float) -> None:
        left = randn(40, 5).softmax(-1).requires_grad_()
        right = (randn(30, 5, seed=1).softmax(-1) + distance).requires_grad_()
        value = sinkhorn(left, right, eps=1e-3)
        value.backward()  # type: ignore[no-untyped-call]
        for cloud in (left, right):
            assert cloud.grad is not None
            assert bool(cloud.grad.isfinite().all())
        shift = distance * math.sqrt(5)
        assert abs(float(value.detach()) - shift) < 1.5  # no two points of a simplex are further apart

    def test_a_cloud_upon_itself_costs_next_to_nothing_and_has_a_gradient(self) -> None:
        left, right = (randn(20, 5).requires_grad_() for _ in range(2))
        value = sinkhorn(left, right)
        value.backward()  # type: ignore[no-untyped-call]
        assert 0 <= float(value.detach()) <= 1e-3 * math.log(20) + 1e-5
        assert left.grad is not None
        assert float(left.grad.abs().max()) < 1e-5


class TestBatches:
    @pytest.mark.parametrize("filling", [0.0, 3.0, 1e4])
    def test_filled_up_clouds_are_as_far_apart_as_alone(self, filling: float) -> None:
        sizes = [(5, 4), (2, 6), (1, 1)]
        pairs = [clouds(n, m, seed=seed) for seed, (n, m) in enumerate(sizes)]
        sides, real = [], []
        for side, longest in ((0, 5), (1, 6)):
            padded = torch.full((3, longest, 3), filling, dtype=torch.float64)
            for row, pair in enumerate(pairs):
                padded[row, : len(pair[side])] = pair[side]
            sides.append(padded.requires_grad_())
            real.append(torch.arange(longest) < torch.tensor([[size[side]] for size in sizes]))
        together = sinkhorn(*sides, left_real=real[0], right_real=real[1])
        together.sum().backward()  # type: ignore[no-untyped-call]
        for row, pair in enumerate(pairs):
            left, right = (cloud.requires_grad_() for cloud in pair)
            alone = sinkhorn(left, right)
            alone.backward()  # type: ignore[no-untyped-call]
            torch.testing.assert_close(together[row], alone)
            for padded, cloud in zip(sides, (left, right), strict=True):
                assert padded.grad is not None
                torch.testing.assert_close(padded.grad[row, : len(cloud)], cloud.grad)
                assert not bool(padded.grad[row, len(cloud) :].any())
