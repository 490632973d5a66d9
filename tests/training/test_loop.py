import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from fastglt import InputError
from fastglt.graphs.features import Features, _Handover
from fastglt.kernels.optimizer import Adam, Limits, Product
from fastglt.masks import Mask, Masks, as_vector
from fastglt.methods import FixedMasks
from fastglt.models import GAT, GCN, GIN, Network
from fastglt.system.seeds import derive
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Recipe, Training, train
from fastglt.training.records import Scores
from tests.helpers import BUDGET, drop, randn, sparse_task, toy_task, training_of

Loss = Callable[[Any, Tensor], Tensor | None]


class WithLoss(Hooks):
    """Adds a loss to the task's."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def extra_loss(self, training: Training, logits: Tensor) -> Tensor | None:
        return self.loss(training, logits)


def no_extra(training: Training, logits: torch.Tensor) -> None:
    return None


def some_masks() -> Masks:
    """Drops 5 of 60 edges and about half of the weights."""
    halves = {"layer1.weight": randn(12, 8, seed=1) > 0, "layer2.weight": randn(8, 3, seed=2) > 0}
    return Masks(edges=drop(60, 0, 7, 20, 21, 59), weights={name: Mask(kept) for name, kept in halves.items()})


WIDTHS = {"layer1.weight": (12, 8), "layer2.weight": (8, 3)}


class TestScores:
    @pytest.mark.parametrize(
        ("one", "other", "better"),
        [
            ((0.8, 9.0), (0.7, 0.1), True),  # the score comes first
            ((0.7, 0.1), (0.8, 9.0), False),
            ((0.8, 0.5), (0.8, 0.6), True),  # then the lower loss
            ((0.8, 0.6), (0.8, 0.5), False),
            ((0.8, 0.5), (0.8, 0.5), False),  # equals are not better: the earlier one stays
        ],
    )
    def test_validation_decides(self, one: tuple[float, float], other: tuple[float, float], better: bool) -> None:
        first, second = (Scores(val=val, val_loss=loss, test=test) for (val, loss), test in ((one, 0), (other, 1)))
        assert first.better_than(second) == better


class TestRecipe:
    @pytest.mark.parametrize(
        ("setting", "value", "rule"),
        [
            ("lr", 0.0, "lr must be positive"),
            ("lr", float("nan"), "lr must be positive"),
            ("weight_decay", -1.0, "weight_decay must not be negative"),
            ("weight_decay", float("nan"), "weight_decay must not be negative"),
        ],
    )
    def test_impossible_settings_are_refused(self, setting: str, value: float, rule: str) -> None:
        with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
            Recipe(**{setting: value})


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


class TestMasks:
    def test_pruned_weights_and_their_moments_stay_exactly_zero(self) -> None:
        masks = some_masks()
        training = training_of(masks=masks)
        for _ in range(5):
            training.run_epoch(Hooks())
        for name, mask in masks.weights.items():
            weight = training.weights[name].detach()
            assert torch.equal(weight != 0, mask.kept)
            for moment in ("exp_avg", "exp_avg_sq"):
                assert torch.equal(training.optimizer.state[training.weights[name]][moment] != 0, mask.kept)

    def test_a_masked_network_trains_like_one_built_small(self) -> None:
        """Without hidden units 3–7, a network of eight is a network of three."""
        big, small = GCN(12, 8, 3, dropout=0.0), GCN(12, 3, 3, dropout=0.0)
        with torch.no_grad():
            small.layer1.weight.copy_(big.layer1.weight[:, :3])
            small.layer2.weight.copy_(big.layer2.weight[:3])
        columns, rows = torch.zeros(12, 8), torch.zeros(8, 3)
        columns[:, :3], rows[:3] = 1, 1
        weights = {"layer1.weight": Mask(columns), "layer2.weight": Mask(rows)}
        masked = training_of(network=big, masks=Masks(edges=drop(60, 3), weights=weights))
        shapes = {"layer1.weight": (12, 3), "layer2.weight": (3, 3)}
        full = Masks.full(60, shapes)
        plain = training_of(network=small, masks=Masks(edges=drop(60, 3), weights=full.weights))
        for _ in range(10):
            masked.run_epoch(Hooks())
            plain.run_epoch(Hooks())
        torch.testing.assert_close(masked.logits(None), plain.logits(None), rtol=1e-4, atol=1e-5)

    def test_a_mask_of_another_shape_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([60]), weights={"layer1.weight": Mask.full([8, 12])})
        with pytest.raises(InputError, match=r"'layer1.weight' must have its shape \(12, 8\) \(got \(8, 12\)\)"):
            training_of(masks=masks)

    def test_a_mask_of_too_few_edges_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([59]), weights={})
        with pytest.raises(InputError, match=r"each of 60 elements \(got shape \(59,\)\)"):
            training_of(masks=masks)

    def test_revising_notes_what_went_and_what_returned(self) -> None:
        training = training_of(masks=some_masks())
        training.run_epoch(Hooks())
        first = torch.zeros(12, 8)
        first[0] = 1
        weights = {"layer1.weight": Mask(first), "layer2.weight": Mask.full([8, 3])}
        old = some_masks().weights
        kept_in_row = int(old["layer1.weight"].kept[0].sum())
        training.revise(Masks(edges=drop(60, 0, 1), weights=weights))
        record = training.history[-1]
        assert (record.edges_dropped, record.edges_grown) == (1, 4)
        assert record.weights_dropped == old["layer1.weight"].count - kept_in_row
        assert record.weights_grown == 8 - kept_in_row + 24 - old["layer2.weight"].count

    def test_the_graph_is_built_anew_only_if_its_edges_change(self) -> None:
        training = training_of(masks=some_masks())
        before = training.graph
        assert before is not training.task.graph
        training.apply(Masks(edges=drop(60, 0, 7, 20, 21, 59), weights=Masks.full(60, WIDTHS).weights))
        assert training.graph is before
        training.apply(Masks(edges=drop(60, 0, 7, 20, 21, 58), weights=training.masks.weights))
        assert training.graph is not before
        assert training.graph.num_edges == 55
        training.apply(Masks.full(60, WIDTHS))
        assert training.graph is training.task.graph


class TestHooks:
    def test_an_extra_loss_sees_the_training_nodes_or_all_nodes(self) -> None:
        seen: list[tuple[int, ...]] = []

        class Looking(Hooks):
            def extra_loss(self, training: Training, logits: Tensor) -> None:
                seen.append(tuple(logits.shape))

        class LookingAtAll(Looking):
            def wants_all_nodes(self, training: Training) -> bool:
                return True

        one, other = (training_of(network=GCN(12, 8, 3, dropout=0.0)) for _ in range(2))
        one.run_epoch(Looking())
        other.run_epoch(LookingAtAll())
        assert seen == [(12, 3), (30, 3)]
        assert one.history[0].loss == pytest.approx(other.history[0].loss)  # the task's loss stays with its own
        for name, value in one.network.state_dict().items():
            torch.testing.assert_close(value, other.network.state_dict()[name])

    def test_all_nodes_may_be_wanted_in_one_epoch_and_not_in_another(self) -> None:
        seen: list[int] = []

        class Now(Hooks):
            def wants_all_nodes(self, training: Training) -> bool:
                return training.epoch == 1

            def extra_loss(self, training: Training, logits: Tensor) -> None:
                seen.append(len(logits))

        training = training_of()
        for _ in range(3):
            training.run_epoch(Now())
        assert seen == [12, 30, 12]

    def test_before_a_step_the_gradients_of_pruned_weights_are_there(self) -> None:
        found: dict[str, Tensor] = {}

        class Noting(Hooks):
            def before_step(self, training: Training) -> None:
                found.update({name: gradient_of(weight).clone() for name, weight in training.weights.items()})

        training = training_of(masks=some_masks())
        torch.manual_seed(derive(training.seed, "epoch", 0))
        training.network.train()
        loss = training.task.loss(training.logits(training.task.train), training.task.train)
        expected = torch.autograd.grad(loss, list(training.weights.values()))
        training.run_epoch(Noting())
        for (name, gradient), dense in zip(found.items(), expected, strict=True):
            torch.testing.assert_close(gradient, dense)
            assert bool(gradient[~some_masks().weights[name].kept].any())

    def test_before_a_step_gradients_can_be_changed_but_pruned_weights_stay(self) -> None:
        class Pushing(Hooks):
            def before_step(self, training: Training) -> None:
                for parameter in training.network.parameters():
                    parameter.grad = torch.full_like(parameter, -1.0)

        training = training_of(masks=some_masks())
        training.begin_stage("push", weight_decay=0.0)
        before = {name: weight.detach().clone() for name, weight in training.weights.items()}
        training.run_epoch(Pushing())
        for name, weight in training.weights.items():  # Adam's first step is the learning rate
            kept = training.masks.weights[name].kept
            torch.testing.assert_close(weight.detach(), torch.where(kept, before[name] + 0.01, 0.0))

    def test_a_tensor_whose_gradient_is_taken_away_stays(self) -> None:
        class Holding(Hooks):
            def before_step(self, training: Training) -> None:
                training.weights["layer1.weight"].grad = None

        training, start = training_of(), GCN(12, 8, 3)
        training.run_epoch(Holding())
        assert torch.equal(training.weights["layer1.weight"], start.layer1.weight)
        assert not torch.equal(training.weights["layer2.weight"], start.layer2.weight)

    def test_after_a_step_weights_are_corrected_before_they_are_evaluated(self) -> None:
        class Zeroing(Hooks):
            def after_step(self, training: Training) -> None:
                with torch.no_grad():
                    for parameter in training.network.parameters():
                        parameter.zero_()

        training = training_of()
        training.run_epoch(Zeroing())
        assert training.history[0].val_loss == pytest.approx(math.log(3))  # it knows nothing
        assert training.best is not None
        assert not any(value.any() for value in training.best.state.values())

    def test_within_an_epoch_it_is_not_yet_counted(self) -> None:
        seen: list[int] = []

        class Counting(Hooks):
            def before_step(self, training: Training) -> None:
                seen.append(training.epoch)

            def after_step(self, training: Training) -> None:
                seen.append(training.epoch)

        training = training_of()
        training.run_epoch(Counting())
        training.run_epoch(Counting())
        assert seen == [0, 0, 1, 1]

    def test_what_is_computed_with_can_be_replaced(self) -> None:
        """In a step and in its evaluation alike; factors are those of all edges, pruned or not."""
        factors = torch.linspace(0.2, 1, 60)

        class Halving(Hooks):
            def soften(self, training: Training) -> tuple[Tensor | None, dict[str, Tensor]]:
                return factors, {"layer1.weight": training.weights["layer1.weight"] / 2}

        training, halved = training_of(masks=some_masks()), GCN(12, 8, 3)
        training.hooks = Halving()
        training.network.eval()
        with torch.no_grad():
            halved.layer1.weight.mul_(0.5)
        twin = training_of(network=halved, masks=some_masks())
        twin.network.eval()
        expected = twin.network(twin.task.x, twin.graph, factors[some_masks().edges.kept])
        torch.testing.assert_close(training.logits(None), expected)
        training.run_epoch(Halving())
        training.network.eval()
        task, learnt = training.task, training.weights["layer1.weight"].detach()
        inputs = task.x, training.graph, factors[some_masks().edges.kept], task.val
        val = functional_call(training.network, {"layer1.weight": learnt / 2}, inputs).detach()
        assert training.history[0].val_loss == pytest.approx(float(task.loss(val, task.val)))
        assert not torch.equal(learnt, twin.weights["layer1.weight"] * 2)


def gradient_of(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


class TestStages:
    def test_with_regrow_pruned_weights_are_trained_and_keep_their_moments(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("regrow", regrow=True)
        training.run_epoch(Hooks())
        name, pruned = "layer2.weight", ~some_masks().weights["layer2.weight"].kept
        weight = training.weights[name]
        assert bool(weight[pruned].any())
        training.apply(training.masks)
        assert not weight[pruned].any()
        assert bool(training.optimizer.state[weight]["exp_avg"][pruned].any())

    def test_without_it_they_lose_both(self) -> None:
        training = training_of()
        training.run_epoch(Hooks())
        training.apply(some_masks())
        name, pruned = "layer2.weight", ~some_masks().weights["layer2.weight"].kept
        assert not training.weights[name][pruned].any()
        assert not training.optimizer.state[training.weights[name]]["exp_avg"][pruned].any()

    def test_regrowing_ends_with_its_stage(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("regrow", regrow=True)
        training.begin_stage("train")
        training.run_epoch(Hooks())
        for name, mask in some_masks().weights.items():
            assert not training.weights[name][~mask.kept].any()

    def test_extra_tensors_are_trained_without_decay(self) -> None:
        class Pulling(Hooks):
            def extra_loss(self, training: Training, logits: Tensor) -> Tensor:
                return -training.extra["pulled"].sum()

        given = {"pulled": torch.tensor([1.0, 2.0]), "idle": torch.ones(3)}
        training = training_of()
        training.begin_stage("extra", extra=given, weight_decay=100.0)
        training.run_epoch(Pulling())
        assert training.extra["pulled"].tolist() == pytest.approx([1.01, 2.01])  # one step of Adam
        assert training.extra["idle"].tolist() == [1, 1, 1]
        assert given["pulled"].tolist() == [1, 2]  # the caller's stay as they are
        training.begin_stage("plain")
        assert training.extra == {}

    def test_memory_outlives_stages(self) -> None:
        training = training_of()
        training.method_state["seen"] = torch.ones(2)
        training.begin_stage("next")
        training.rewind()
        assert list(training.method_state) == ["seen"]


class TestRewind:
    def rewound(self) -> Training:
        training = training_of(masks=some_masks())
        training.begin_stage("soft", soft_edges=True, soft_weights=True)
        for _ in range(3):
            training.run_epoch(Hooks())
        training.apply(Masks(edges=drop(60, 4), weights=some_masks().weights))
        training.rewind()
        return training

    def test_the_weights_lie_side_by_side_as_before(self) -> None:
        training = self.rewound()
        vector = as_vector(training.weights)
        assert all(part.untyped_storage().data_ptr() == vector.data_ptr() for part in training.weights.values())

    def test_the_network_is_the_initial_one_under_the_masks_in_force(self) -> None:
        training = self.rewound()
        fresh = training_of(masks=Masks(edges=drop(60, 4), weights=some_masks().weights))
        for name, value in fresh.network.state_dict().items():
            assert torch.equal(training.network.state_dict()[name], value)
        training.network.eval()
        fresh.network.eval()
        assert torch.equal(training.logits(None), fresh.logits(None))

    def test_soft_scores_moments_and_the_best_epoch_are_gone_but_not_what_happened(self) -> None:
        training = self.rewound()
        assert training.soft_edge_mask is None
        assert training.soft_weight_masks == {}
        assert not training.optimizer.state
        assert training.best is None
        assert (training.epoch, len(training.history)) == (3, 3)

    def test_it_trains_on_as_from_the_start(self) -> None:
        training = self.rewound()
        fresh = training_of(masks=training.masks)
        fresh.epoch = training.epoch  # the same random numbers
        for one in (training, fresh):
            one.begin_stage("train")
            one.run_epoch(Hooks())
        for name, value in fresh.network.state_dict().items():
            assert torch.equal(training.network.state_dict()[name], value)

    def test_the_start_itself_is_left_alone(self) -> None:
        network = GCN(12, 8, 3)
        training = training_of(network=network)
        training.rewind()
        training.run_epoch(Hooks())
        assert all(torch.equal(a, b) for a, b in zip(network.parameters(), GCN(12, 8, 3).parameters(), strict=True))


def test_a_round_keeps_its_best_epoch() -> None:
    training = training_of()
    training.run_epoch(Hooks())
    first = training.best
    assert first is not None
    training.end_round(1)
    training.rewind()
    training.begin_stage("again")
    for _ in range(3):
        training.run_epoch(Hooks())
    training.end_round(2)
    assert training.best is not None
    assert training.rounds == [replace(first, round=1), training.best]
    assert training.best.round == 2
    assert first.epoch == 1 < training.rounds[1].epoch


class TestSoftMasks:
    def test_soft_weights_multiply(self) -> None:
        training = training_of()
        training.begin_stage("soft", soft_weights=True)
        with torch.no_grad():
            training.soft_weight_masks["layer1.weight"].fill_(0.5)
        twin = training_of()
        with torch.no_grad():
            twin.weights["layer1.weight"].mul_(0.5)
        training.network.eval()
        twin.network.eval()
        torch.testing.assert_close(training.logits(None), twin.logits(None))

    def test_soft_edges_are_those_of_the_kept_edges(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("soft", soft_edges=True)
        assert training.soft_edge_mask is not None
        kept = some_masks().edges.kept
        with torch.no_grad():
            training.soft_edge_mask.copy_(torch.where(kept, torch.arange(60.0) / 60, 1e6))
        training.network.eval()
        expected = training.network(training.task.x, training.graph, (torch.arange(60.0) / 60)[kept])
        assert torch.equal(training.logits(None), expected)

    def test_scores_start_at_one_learn_and_do_not_decay(self) -> None:
        training = training_of()
        training.begin_stage("soft", soft_edges=True, soft_weights=True)
        assert training.soft_edge_mask is not None
        assert bool((training.soft_edge_mask == 1).all())
        weights, scores = training.optimizer.groups
        assert (weights[1], scores[1], training.optimizer.lr) == (5e-4, 0, 0.01)
        assert all(one is two for one, two in zip(weights[0], training.network.parameters(), strict=True))
        softs = [*training.soft_weight_masks.values(), training.soft_edge_mask]
        assert all(one is two for one, two in zip(scores[0], softs, strict=True))
        training.run_epoch(Hooks())
        assert bool((training.soft_edge_mask != 1).any())
        assert all(bool((score != 1).any()) for score in training.soft_weight_masks.values())

    def test_soft_edge_masks_go_on_in_the_next_stage_with_a_fresh_optimiser(self) -> None:
        training = training_of()
        training.begin_stage("one", soft_edges=True, soft_weights=True)
        training.run_epoch(Hooks())
        before = training.soft_edge_mask
        training.begin_stage("two", soft_edges=True)
        assert training.soft_edge_mask is before
        assert training.soft_weight_masks == {}
        assert not training.optimizer.state
        assert training.best is None


def lasso(training: Any, logits: Tensor) -> Tensor:
    """A loss on the soft masks themselves."""
    return sum((score.abs().sum() for score in training.soft_weight_masks.values()), torch.zeros(())) * 0.01


def ridge(training: Any, logits: Tensor) -> Tensor:
    """A loss on the weights themselves and on the prediction."""
    return sum((weight.square().sum() for weight in training.weights.values()), logits.square().mean())


def entangled(training: Any, logits: Tensor) -> Tensor:
    """A loss on products that the training computes too."""
    name = next(iter(training.weights))
    weight, score = training.weights[name], training.soft_weight_masks[name]
    return torch.sin(weight * score).sum()


EXTRAS = {"none": no_extra, "masks": lasso, "weights": ridge, "both": entangled}
NETWORKS: dict[str, Callable[[int], Network]] = {
    "gcn": lambda width: GCN(width, 8, 3),
    "gin": lambda width: GIN(width, 8, 3, depth=2),
    "gat": lambda width: GAT(width, 8, 3, heads=2),  # wider than a row of the sparse features
}
TASKS = {"dense": toy_task, "sparse": sparse_task}
each_network = pytest.mark.parametrize("kind", NETWORKS)
each_task = pytest.mark.parametrize("features", TASKS)


def soft_training(kind: str, features: str, *, pruned: bool = False) -> Training:
    """A training with soft masks that are no longer at one; on request, with hard masks too."""
    task = TASKS[features]()
    network = NETWORKS[kind](task.x.num_features)
    weights = {
        name: Mask(randn(*shape, seed=seed) > 0 if pruned else torch.ones(shape, dtype=torch.bool))
        for seed, (name, shape) in enumerate(network.weight_shapes.items())
    }
    masks = Masks(edges=drop(60, 0, 7, 20) if pruned else drop(60), weights=weights)
    training = training_of(network=network, task=task, masks=masks)
    training.begin_stage("soft", soft_edges=True, soft_weights=True)
    with torch.no_grad():
        for seed, score in enumerate(training.soft_weight_masks.values()):
            score.add_(randn(*score.shape, seed=seed) * 0.1)
    return training


class Autograd:
    """What PyTorch computes for a training by itself: weights times soft masks, nothing kept from before."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.weights = _leaves(training.weights)
        self.soft_weight_masks = _leaves(training.soft_weight_masks)
        assert training.soft_edge_mask is not None
        self.soft_edge_mask = training.soft_edge_mask.detach().clone().requires_grad_()

    def logits(self, nodes: Tensor) -> Tensor:
        training = self.training
        soft = {name: weight * self.soft_weight_masks[name] for name, weight in self.weights.items()}
        network = copy.deepcopy(training.network)
        inputs = (
            Features(training.task.x.dense),
            training.graph,
            self.soft_edge_mask[training.masks.edges.kept],
            nodes,
        )
        return functional_call(network, soft, inputs)  # type: ignore[no-any-return]

    def gradients(self, extra_loss: Loss) -> dict[str, Tensor]:
        """By name, as the optimiser should find them."""
        training = self.training
        torch.manual_seed(derive(training.seed, "epoch", training.epoch))
        training.network.train()
        logits = self.logits(training.task.train)
        loss, extra = training.task.loss(logits, training.task.train), extra_loss(self, logits)
        loss = loss if extra is None else loss + extra
        leaves = {f"weight {name}": weight for name, weight in self.weights.items()}
        leaves |= {f"score {name}": score for name, score in self.soft_weight_masks.items()}
        found = torch.autograd.grad(loss, [*leaves.values(), self.soft_edge_mask])
        named = dict(zip([*leaves, "edges"], found, strict=True))
        for name, mask in training.masks.weights.items():
            named[f"weight {name}"] = named[f"weight {name}"] * mask.kept
        return named


def _leaves(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone().requires_grad_() for name, tensor in tensors.items()}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[int, Tensor]:
    """The gradients that the optimiser went by last, by the id of their tensor."""
    found: dict[int, Tensor] = {}
    step = Adam.step

    def noting(adam: Adam, products: Iterable[Product], limits: Mapping[Tensor, Limits]) -> None:
        found.clear()
        for tensor in adam:
            if tensor.grad is not None:
                kept, _ = limits.get(tensor, (None, None))
                found[id(tensor)] = tensor.grad.clone() if kept is None else tensor.grad * kept
        for product in (products := list(products)):
            if product.value.grad is not None:
                for factor, other in ((product.left, product.right), (product.right, product.left)):
                    handed = product.value.grad * other.detach()
                    found[id(factor)] = found[id(factor)] + handed if id(factor) in found else handed
        step(adam, products, limits)

    monkeypatch.setattr(Adam, "step", noting)
    return found


class TestSoftWeights:
    """They are computed once for a step and an evaluation, apart from autograd."""

    @each_network
    @each_task
    @pytest.mark.parametrize("extra", EXTRAS)
    @pytest.mark.parametrize("pruned", [False, True], ids=["whole", "pruned"])
    def test_gradients_are_those_of_weight_times_score(
        self, kind: str, features: str, extra: str, pruned: bool, seen: dict[int, Tensor]
    ) -> None:
        training = soft_training(kind, features, pruned=pruned)
        for _ in range(3):
            expected = Autograd(training).gradients(EXTRAS[extra])
            training.run_epoch(WithLoss(EXTRAS[extra]))
            tensors: dict[str, Tensor] = {f"weight {name}": weight for name, weight in training.weights.items()}
            tensors |= {f"score {name}": score for name, score in training.soft_weight_masks.items()}
            assert training.soft_edge_mask is not None
            for name, tensor in {**tensors, "edges": training.soft_edge_mask}.items():
                torch.testing.assert_close(seen[id(tensor)], expected[name], rtol=1e-4, atol=1e-6, msg=name)

    @each_network
    @each_task
    def test_evaluation_sees_the_weights_and_scores_of_the_moment(self, kind: str, features: str) -> None:
        training = soft_training(kind, features)
        task = training.task
        for _ in range(3):
            training.run_epoch(Hooks())
            training.network.eval()
            with torch.no_grad():
                expected = task.loss(Autograd(training).logits(task.val), task.val)
            assert training.history[-1].val_loss == pytest.approx(float(expected), rel=1e-5)

    def test_a_change_of_masks_or_scores_is_seen_at_once(self) -> None:
        training = soft_training("gcn", "dense")
        training.run_epoch(Hooks())
        training.network.eval()
        before = training.logits(None)
        training.apply(Masks(edges=drop(60), weights=some_masks().weights))
        pruned = training.logits(None)
        assert not torch.equal(pruned, before)
        torch.testing.assert_close(pruned, Autograd(training).logits(torch.arange(30)))
        with torch.no_grad():
            training.soft_weight_masks["layer1.weight"].mul_(3)
        assert not torch.equal(training.logits(None), pruned)
        torch.testing.assert_close(training.logits(None), Autograd(training).logits(torch.arange(30)))

    def test_a_new_stage_forgets_them(self) -> None:
        training = soft_training("gcn", "dense")
        training.run_epoch(Hooks())
        training.begin_stage("hard")
        training.network.eval()
        assert torch.equal(training.logits(None), training.network(training.task.x, training.graph))

    def test_no_gradient_is_left_over(self) -> None:
        training = soft_training("gcn", "dense")
        training.run_epoch(WithLoss(lasso))
        assert all(tensor.grad is None for tensor in training.optimizer)


@each_network
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_what_evaluation_leaves_to_training_changes_no_bit(
    kind: str, soft: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Training:
        training = soft_training(kind, "sparse", pruned=True)
        if not soft:
            training.begin_stage("hard")
        for _ in range(4):
            training.run_epoch(Hooks())
        return training

    taken: list[bool] = []
    take = _Handover._take

    def noting(handover: _Handover, *arguments: Any) -> Tensor | None:
        left = take(handover, *arguments)
        taken.append(left is not None)
        return left

    monkeypatch.setattr(_Handover, "_take", noting)
    ours = run()
    assert taken == [False, True, True, True]
    monkeypatch.setattr(_Handover, "_take", lambda *arguments: None)
    plain = run()
    assert [asdict(record) for record in ours.history] == [asdict(record) for record in plain.history]
    for name, value in ours.network.state_dict().items():
        assert torch.equal(value, plain.network.state_dict()[name]), name
    for name, score in ours.soft_weight_masks.items():
        assert torch.equal(score, plain.soft_weight_masks[name]), name


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
        task = training.task
        logits = twin(task.x, training.graph, None, task.train)
        task.loss(logits, task.train).backward()  # type: ignore[no-untyped-call]
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
    loss = training.task.loss(training.logits(training.task.train), training.task.train)
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
        loss = training.task.loss(training.logits(training.task.train), training.task.train)
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


def test_an_extra_loss_is_added() -> None:
    plain, raised = training_of(), training_of()
    plain.run_epoch(Hooks())
    raised.run_epoch(WithLoss(lambda training, logits: logits.sum() * 0 + 5))
    assert raised.history[0].loss == pytest.approx(plain.history[0].loss + 5)


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


def test_l1_terms_pull_soft_scores_towards_zero(seen: dict[int, Tensor]) -> None:
    plain, pulled = training_of(), training_of()
    for training, l1 in ((plain, (0.0, 0.0)), (pulled, (0.5, 0.25))):
        training.begin_stage("mask", soft_edges=True, soft_weights=True, l1=l1)
        assert training.soft_edge_mask is not None
        with torch.no_grad():
            training.soft_edge_mask[0] = -1
    found = []
    for training in (plain, pulled):
        training.run_epoch(Hooks())
        assert training.soft_edge_mask is not None
        found.append(seen[id(training.soft_edge_mask)])
    torch.testing.assert_close(found[1] - found[0], torch.cat([torch.tensor([-0.5]), torch.full((59,), 0.5)]))
    assert {product.l1 for product in pulled._soft.values()} == {0.25}
