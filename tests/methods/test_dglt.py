from typing import Any

import pytest
import torch

from fastglt import InputError
from fastglt.masks import flatten
from fastglt.methods import DGLT, Budget, RandomPruning, Targets
from fastglt.methods.dglt import penalty
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, counts, method_of, training_of


def dglt(graph: float, weight: float, *, budget: Budget = BUDGET, **options: Any) -> DGLT:
    method = method_of("dglt", graph, weight, budget=budget, **options)
    assert isinstance(method, DGLT)
    return method


class TestPenalty:
    def test_by_hand(self) -> None:
        # A thousandth in two steps whose logarithms are as 1 to 2: a tenth, then a hundredth.
        assert [penalty(epoch, 2) for epoch in (1, 2)] == pytest.approx([9, 99])

    def test_it_grows_and_leaves_a_thousandth(self) -> None:
        penalties = [penalty(epoch, 50) for epoch in range(1, 51)]
        assert penalties == sorted(penalties)
        left = 1.0
        for value in penalties:
            left /= 1 + value
        assert left == pytest.approx(1e-3)
        assert penalties[0] < 0.01


class TestTransition:
    def begun(self, graph: float, weight: float, **options: Any) -> tuple[Training, DGLT]:
        training, method = training_of(), dglt(graph, weight, **options)
        method.begin(training)
        return training, method

    def test_the_ticket_is_a_random_one_and_nothing_is_cut_yet(self) -> None:
        training, _ = self.begun(0.5, 0.9)
        twin = training_of()
        RandomPruning(targets=Targets(graph_sparsity=0.5, weight_sparsity=0.9)).begin(twin)
        assert torch.equal(training.method_state["edges"], twin.masks.edges.kept)
        kept = flatten({name: mask.kept for name, mask in twin.masks.weights.items()})
        assert torch.equal(training.method_state["weights"], kept)
        assert counts(training.masks) == (60, 120)

    def test_a_step_divides_what_is_outside_and_leaves_the_ticket_alone(self) -> None:
        training, method = self.begun(0.5, 0.9, transition=2 / 24)
        twin, _ = self.begun(0.5, 0.9)
        training.run_epoch(method)
        twin.run_epoch(Hooks())
        assert training.soft_edge_mask is not None
        assert twin.soft_edge_mask is not None
        for ours, theirs, kept in (
            (training.soft_edge_mask, twin.soft_edge_mask, training.method_state["edges"]),
            (flatten(training.weights), flatten(twin.weights), training.method_state["weights"]),
        ):
            assert torch.equal(ours[kept], theirs[kept])
            torch.testing.assert_close(ours[~kept], theirs[~kept] / 10)  # 1 + λ of the first of two epochs

    def test_the_complement_fades_while_the_ticket_learns(self) -> None:
        training, method = self.begun(0.5, 0.9, transition=0.5)
        before = flatten(training.weights).detach().abs()
        for _ in range(method.transition_epochs):
            training.run_epoch(method)
        kept, after = training.method_state["weights"], flatten(training.weights).detach().abs()
        assert float(after[~kept].mean()) < 0.1 * float(before[~kept].mean())
        assert float(after[kept].mean()) > 0.5 * float(before[kept].mean())
        assert training.soft_edge_mask is not None
        assert float(training.soft_edge_mask[~training.method_state["edges"]].detach().abs().max()) < 0.1

    def test_a_mask_with_target_zero_is_left_alone(self) -> None:
        training, method = self.begun(0.0, 0.5, transition=0.5)
        assert training.soft_edge_mask is None
        training.run_epoch(method)
        training, method = self.begun(0.5, 0.0, transition=2 / 24)
        twin, _ = self.begun(0.5, 0.0)
        training.run_epoch(method)
        twin.run_epoch(Hooks())
        assert torch.equal(flatten(training.weights), flatten(twin.weights))


class TestStages:
    def test_the_rest_is_dropped_after_the_transition(self) -> None:
        training = training_of()
        method = dglt(0.5, 0.9, transition=0.25)
        best = train(training, method)
        assert [record.stage for record in training.history] == ["transition"] * 6 + ["train"] * 18
        dropped = {r.epoch: (r.edges_dropped, r.weights_dropped) for r in training.history if r.weights_dropped}
        assert dropped == {6: (30, 108)}
        assert best.epoch > 6
        assert training.method_state == {}

    def test_the_ticket_goes_on_with_its_weights_and_a_fresh_optimiser(self) -> None:
        training, method = training_of(), dglt(0.5, 0.9, transition=1 / 24)
        method.begin(training)
        ticket = dict(training.method_state)
        training.run_epoch(method)
        weights = flatten(training.weights).detach().clone()
        method.after_epoch(training)
        assert torch.equal(training.masks.edges.kept, ticket["edges"])
        assert torch.equal(flatten(training.weights).detach(), weights * ticket["weights"])
        assert not training.optimizer.state
        assert training.soft_edge_mask is not None

    @pytest.mark.parametrize(("share", "epochs"), [(0.01, 1), (0.3, 7), (0.99, 23)])
    def test_both_stages_have_at_least_an_epoch(self, share: float, epochs: int) -> None:
        assert dglt(0.5, 0.9, transition=share).transition_epochs == epochs


@pytest.mark.parametrize("value", [0.0, 1.0, float("nan")])
def test_a_transition_of_nothing_or_everything_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=rf"transition must lie in \(0, 1\) \(got {value}\)"):
        dglt(0.1, 0.1, transition=value)
