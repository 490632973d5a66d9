from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.masks import flatten, unflatten
from fastglt.methods import GEBT, Budget
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, counts, method_of, training_of


def gebt(graph: float, weight: float, *, budget: Budget = BUDGET, **options: Any) -> GEBT:
    method = method_of("gebt", graph, weight, budget=budget, **options)
    assert isinstance(method, GEBT)
    return method


def first(total: int, count: int) -> Tensor:
    """A mask that keeps the first few."""
    return torch.arange(total) < count


def differing(mask: Tensor, *counts: int) -> Tensor:
    """Masks, a row each, that differ from another one in so many elements."""
    return torch.stack([mask ^ first(mask.numel(), count) for count in counts])


class TestDraw:
    def test_the_smallest_soft_masks_go(self) -> None:
        training, method = training_of(), gebt(0.5, 0.9)
        method.begin(training)
        assert training.soft_edge_mask is not None
        with torch.no_grad():
            training.soft_edge_mask.copy_(torch.arange(1.0, 61) * (-1.0) ** torch.arange(60))  # 1, −2, 3, …
            ranks = unflatten(torch.arange(120.0, 0, -1), training.weights)  # the first layer's are the largest
            for name, score in training.soft_weight_masks.items():
                score.copy_(ranks[name])
        drawn = method.draw(training)
        assert torch.equal(drawn["edges"], ~first(60, 30))
        assert torch.equal(drawn["weights"], first(120, 12))
        assert counts(training.masks) == (60, 120)  # nothing is cut yet

    def test_a_mask_with_target_zero_is_neither_trained_nor_drawn(self) -> None:
        training, method = training_of(), gebt(0.0, 0.9)
        method.begin(training)
        assert training.soft_edge_mask is None
        assert bool(method.draw(training)["edges"].all())


class TestSettled:
    """Of 60 edges and 120 weights, in a window of two draws and with a distance of 0.1."""

    def settled(self, edges: tuple[int, ...], weights: tuple[int, ...]) -> bool:
        training = training_of()
        drawn = {"edges": first(60, 30), "weights": first(120, 12)}
        training.method_state = {
            "edges": differing(drawn["edges"], *edges),
            "weights": differing(drawn["weights"], *weights),
        }
        return gebt(0.5, 0.9, window=2).settled(training, drawn)

    def test_both_masks_have_to_be_close_to_the_last_few_on_average(self) -> None:
        assert self.settled((2, 9), (0, 23))  # 5.5 of 60 and 11.5 of 120 are below a tenth

    def test_one_mask_alone_is_not_enough(self) -> None:
        assert not self.settled((3, 9), (0, 0))  # 6 of 60 are a tenth
        assert not self.settled((0, 0), (4, 20))  # 12 of 120 are a tenth

    def test_too_few_draws_have_not_settled(self) -> None:
        assert not self.settled((0,), (0,))
        assert not gebt(0.5, 0.9).settled(training_of(), {"edges": first(60, 30), "weights": first(120, 12)})


class TestStages:
    def stages(self, **options: Any) -> tuple[Training, list[str]]:
        training = training_of()
        train(training, gebt(0.5, 0.9, **options))
        return training, [record.stage for record in training.history]

    def test_the_first_full_window_can_end_the_drawing(self) -> None:
        training, stages = self.stages(draw_every=2, window=2, distance=1.0)
        assert stages == ["draw"] * 6 + ["train"] * 18  # draws after 2 and 4, compared with that after 6
        assert [record.epoch for record in training.history if record.weights_dropped] == [6]
        assert training.method_state == {}

    def test_half_of_the_epochs_is_the_latest(self) -> None:
        _, stages = self.stages(draw_every=5, window=1, distance=1e-9)
        assert stages == ["draw"] * 12 + ["train"] * 12

    def test_only_the_last_few_draws_are_remembered(self) -> None:
        training, method = training_of(), gebt(0.5, 0.9, draw_every=1, window=3, distance=1e-9)
        method.begin(training)
        draws = []
        for epoch in range(1, 6):
            training.run_epoch(method)
            draws.append(method.draw(training))
            method.after_epoch(training)
            assert len(training.method_state["edges"]) == min(epoch, 3)
        for name in ("edges", "weights"):
            assert torch.equal(training.method_state[name], torch.stack([drawn[name] for drawn in draws[-3:]]))

    def test_the_ticket_is_the_last_draw_and_keeps_its_weights(self) -> None:
        training, method = training_of(), gebt(0.5, 0.9, draw_every=2, window=2, distance=1.0)
        method.begin(training)
        for _ in range(5):
            training.run_epoch(method)
            method.after_epoch(training)
        training.run_epoch(method)
        drawn, weights = method.draw(training), {n: w.detach().clone() for n, w in training.weights.items()}
        method.after_epoch(training)
        assert training.stage == "train"
        assert torch.equal(training.masks.edges.kept, drawn["edges"])
        assert torch.equal(flatten({n: m.kept for n, m in training.masks.weights.items()}), drawn["weights"])
        for name, mask in training.masks.weights.items():
            assert torch.equal(training.weights[name].detach(), weights[name] * mask.kept)
        assert not training.optimizer.state
        assert training.weight_decay == pytest.approx(training.recipe.weight_decay / 10)


def test_the_shortest_budget_leaves_an_epoch_for_each_stage() -> None:
    training = training_of()
    train(training, gebt(0.5, 0.9, budget=Budget(oneshot_epochs=1, denoise_epochs=1, interval=1)))
    assert [record.stage for record in training.history] == ["draw", "train"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draw_every": 0}, r"draw_every must be at least 1 \(got 0\)"),
        ({"window": 0}, r"window must be at least 1 \(got 0\)"),
        ({"distance": 0.0}, r"distance must lie in \(0, 1\] \(got 0.0\)"),
        ({"distance": 1.5}, r"distance must lie in \(0, 1\] \(got 1.5\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gebt(0.1, 0.1, **options)
