import copy
import math
from collections.abc import Iterator

import pytest
import torch

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.masks import Masks
from fastglt.methods import FixedMasks
from fastglt.models import GAT, GCN
from fastglt.system.seeds import derive
from fastglt.tasks import Scores
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, node_task, toy_task, train_loss, training_of
from tests.training.trainings import some_masks


class TestBest:
    def best_of(self, scores: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch) -> int | None:
        answers: Iterator[Scores] = iter([Scores(val=val, val_loss=loss, test=0.0) for val, loss in scores])
        monkeypatch.setattr(Training, "evaluate", lambda training: next(answers))
        training = training_of()
        for _ in scores:
            training.run_epoch(Hooks())
        return None if training.best is None else training.best.epoch

    def test_the_highest_validation_score(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.5, 1.0), (0.7, 0.9), (0.6, 0.1)], monkeypatch) == 2

    def test_a_tie_goes_to_the_lower_loss(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.7, 0.9), (0.7, 0.8), (0.7, 0.85)], monkeypatch) == 2

    def test_a_full_tie_goes_to_the_earlier(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.best_of([(0.1, 1.0), (0.7, 0.8), (0.7, 0.8)], monkeypatch) == 2

    def test_only_epochs_at_the_target_counts_can_be_the_best(self) -> None:
        training = training_of()
        for target in ((60, 119), (59, 120), (60, 120)):
            training.target = target
            training.run_epoch(Hooks())
        assert training.best is not None
        assert training.best.epoch == 3

    def test_the_snapshot_is_a_copy(self) -> None:
        training = training_of()
        training.run_epoch(Hooks())
        assert training.best is not None
        before = {name: value.clone() for name, value in training.best.state.items()}
        best = training.best
        training.run_epoch(Hooks())
        assert all(torch.equal(best.state[name], before[name]) for name in before)


@pytest.mark.parametrize("masks", [None, some_masks()], ids=["whole", "pruned"])
def test_a_step_is_torchs_adam_on_the_tasks_loss(masks: Masks | None) -> None:
    """Five steps of a loop as one would write it down."""
    training = training_of(masks=masks)
    twin = copy.deepcopy(training.network)
    recipe = training.recipe
    optimiser = torch.optim.Adam(twin.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
    for epoch in range(5):
        training.run_epoch(Hooks())
        torch.manual_seed(derive(training.seed, "epoch", epoch))
        twin.train()
        optimiser.zero_grad()
        task = node_task(training)
        logits = twin(task.x, training.graph, None, task.train)
        task.label_loss(logits, task.y[task.train]).backward()  # type: ignore[no-untyped-call]
        for name, mask in training.masks.weights.items():
            gradient = twin.get_parameter(name).grad
            assert gradient is not None
            gradient.mul_(mask.kept)
        optimiser.step()
    for name, value in training.network.state_dict().items():
        torch.testing.assert_close(value, twin.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_gradients_are_summed_where_nothing_is_pruned() -> None:
    training = training_of()
    training.begin_stage("sum", sum_gradients=True)
    torch.manual_seed(derive(training.seed, "epoch", 0))
    training.network.train()
    loss = train_loss(training)
    expected = torch.autograd.grad(loss, training.weights["layer2.weight"])[0].abs()
    training.run_epoch(Hooks())
    torch.testing.assert_close(training.gradient_sum["layer2.weight"], expected)


def test_gradients_are_summed_over_kept_and_pruned_weights_alike() -> None:
    training = training_of(masks=some_masks())
    training.begin_stage("sum", sum_gradients=True)
    expected = torch.zeros(12, 8)
    for _ in range(3):
        torch.manual_seed(derive(training.seed, "epoch", training.epoch))
        training.network.train()
        loss = train_loss(training)
        expected += torch.autograd.grad(loss, training.weights["layer1.weight"])[0].abs()
        training.run_epoch(Hooks())
    pruned = ~some_masks().weights["layer1.weight"].kept
    assert bool((expected[pruned] > 0).any())
    torch.testing.assert_close(training.gradient_sum["layer1.weight"], expected)


def test_the_history_has_a_line_for_every_epoch() -> None:
    training = training_of(masks=some_masks())
    train(training, FixedMasks(budget=BUDGET))
    assert [record.epoch for record in training.history] == list(range(1, 25))
    assert [record.graph_sparsity for record in training.history] == [pytest.approx(5 / 60)] * 24
    assert {record.stage for record in training.history} == {"train"}
    assert training.history[-1].loss < training.history[0].loss


def test_training_learns() -> None:
    best = train(training_of(), FixedMasks(budget=BUDGET))
    assert best.scores.val > 0.5  # three classes: chance is a third


def test_a_diverging_loss_is_told() -> None:
    network = GCN(12, 8, 3)
    with torch.no_grad():
        network.layer1.weight.fill_(1e30)
        network.layer2.weight.fill_(1e30)
    with pytest.raises(
        InputError, match=r"the loss must stay finite \(got (nan|inf) in epoch 1\); try a lower learning rate"
    ):
        training_of(network=network).run_epoch(Hooks())


def test_a_weight_that_is_no_number_is_told() -> None:
    """Also if an activation comes after it."""
    network = GCN(12, 8, 3)
    with torch.no_grad():
        network.layer1.weight[0, 0] = torch.nan
    with pytest.raises(InputError, match=r"the loss must stay finite \(got nan in epoch 1\)"):
        training_of(network=network).run_epoch(Hooks())


def test_the_callers_network_and_random_state_are_left_alone() -> None:
    network = GCN(12, 8, 3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    train(training_of(network=network, masks=some_masks()), FixedMasks(budget=BUDGET))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_the_callers_random_state_does_not_matter() -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results.append(train(training_of(network=GAT(12, 4, 3, heads=2)), FixedMasks(budget=BUDGET)))
    assert all(torch.equal(value, results[1].state[name]) for name, value in results[0].state.items())


def test_random_numbers_are_seeded_before_a_method_begins() -> None:
    drawn = []

    class Drawing(FixedMasks):
        def begin(self, training: Training) -> None:
            drawn.append(float(torch.rand(())))

    for caller, seed in ((1, 0), (2, 0), (3, 1)):
        torch.manual_seed(caller)
        train(training_of(seed=seed), Drawing(budget=BUDGET))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_method_that_never_reaches_its_target_is_told() -> None:
    class Astray(FixedMasks):
        def begin(self, training: Training) -> None:
            training.begin_stage("train", target=(1, 1))

    with pytest.raises(InputError, match=r"exactly the target counts \(got none from method 'fixed'\)"):
        train(training_of(), Astray(budget=BUDGET))


def test_no_test_nodes_give_no_test_score() -> None:
    task = toy_task()
    object.__setattr__(task, "test", torch.empty(0, dtype=torch.int64))
    training = Training(GCN(12, 8, 3), task, BUDGET.recipe, seed=0)
    assert math.isnan(training.evaluate().test)


def test_test_labels_have_no_influence() -> None:
    task, twin = toy_task(), toy_task()
    twin.y[twin.test] = (twin.y[twin.test] + 1) % 3
    bests = [
        train(Training(GCN(12, 8, 3), chosen, BUDGET.recipe, seed=0), FixedMasks(budget=BUDGET))
        for chosen in (task, twin)
    ]
    assert bests[0].epoch == bests[1].epoch
    assert all(torch.equal(value, bests[1].state[name]) for name, value in bests[0].state.items())


def test_features_are_shared_not_copied() -> None:
    training = training_of()
    assert isinstance(training.task.x, Features)
    assert training.graph is training.task.graph
