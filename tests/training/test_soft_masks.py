import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from fastglt.graphs.features import Features, _ProductReuse
from fastglt.kernels.optimizer import Adam, Limits, Product
from fastglt.masks import Mask, Masks
from fastglt.models import GAT, GCN, GIN, Network
from fastglt.system.seeds import derive
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from tests.helpers import drop, node_task, randn, sparse_task, toy_task, training_of
from tests.training.trainings import Loss, WithLoss, some_masks


def no_extra(training: Training, logits: torch.Tensor) -> None:
    return None


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
        torch.testing.assert_close(training.outputs(None), twin.outputs(None))

    def test_soft_edges_are_those_of_the_kept_edges(self) -> None:
        training = training_of(masks=some_masks())
        training.begin_stage("soft", soft_edges=True)
        assert training.soft_edge_mask is not None
        kept = some_masks().edges.kept
        with torch.no_grad():
            training.soft_edge_mask.copy_(torch.where(kept, torch.arange(60.0) / 60, 1e6))
        training.network.eval()
        expected = training.network(training.task.x, training.graph, (torch.arange(60.0) / 60)[kept])
        assert torch.equal(training.outputs(None), expected)

    def test_soft_masks_start_at_one_learn_and_do_not_decay(self) -> None:
        training = training_of()
        training.begin_stage("soft", soft_edges=True, soft_weights=True)
        assert training.soft_edge_mask is not None
        assert bool((training.soft_edge_mask == 1).all())
        weights, masks = training.optimizer.groups
        assert (weights[1], masks[1], training.optimizer.lr) == (5e-4, 0, 0.01)
        assert all(one is two for one, two in zip(weights[0], training.network.parameters(), strict=True))
        softs = [*training.soft_weight_masks.values(), training.soft_edge_mask]
        assert all(one is two for one, two in zip(masks[0], softs, strict=True))
        training.run_epoch(Hooks())
        assert bool((training.soft_edge_mask != 1).any())
        assert all(bool((soft != 1).any()) for soft in training.soft_weight_masks.values())

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
    return sum((soft.abs().sum() for soft in training.soft_weight_masks.values()), torch.zeros(())) * 0.01


def ridge(training: Any, logits: Tensor) -> Tensor:
    """A loss on the weights themselves and on the prediction."""
    return sum((weight.square().sum() for weight in training.weights.values()), logits.square().mean())


def entangled(training: Any, logits: Tensor) -> Tensor:
    """A loss on products that the training computes too."""
    name = next(iter(training.weights))
    weight, soft = training.weights[name], training.soft_weight_masks[name]
    return torch.sin(weight * soft).sum()


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
        for seed, soft in enumerate(training.soft_weight_masks.values()):
            soft.add_(randn(*soft.shape, seed=seed) * 0.1)
    return training


class Autograd:
    """What PyTorch computes for a training by itself: weights times soft masks, nothing kept from before."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.weights = _leaves(training.weights)
        self.soft_weight_masks = _leaves(training.soft_weight_masks)
        assert training.soft_edge_mask is not None
        self.soft_edge_mask = training.soft_edge_mask.detach().clone().requires_grad_()

    def logits(self, nodes: Tensor | None) -> Tensor:
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
        (step,) = training.task.steps(0)
        logits = self.logits(step.nodes)
        loss, extra = training.task.loss(logits, step), extra_loss(self, logits)
        loss = loss if extra is None else loss + extra
        leaves = {f"weight {name}": weight for name, weight in self.weights.items()}
        leaves |= {f"soft {name}": soft for name, soft in self.soft_weight_masks.items()}
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
    def test_gradients_are_those_of_weight_times_soft_mask(
        self, kind: str, features: str, extra: str, pruned: bool, seen: dict[int, Tensor]
    ) -> None:
        training = soft_training(kind, features, pruned=pruned)
        for _ in range(3):
            expected = Autograd(training).gradients(EXTRAS[extra])
            training.run_epoch(WithLoss(EXTRAS[extra]))
            tensors: dict[str, Tensor] = {f"weight {name}": weight for name, weight in training.weights.items()}
            tensors |= {f"soft {name}": soft for name, soft in training.soft_weight_masks.items()}
            assert training.soft_edge_mask is not None
            for name, tensor in {**tensors, "edges": training.soft_edge_mask}.items():
                torch.testing.assert_close(seen[id(tensor)], expected[name], rtol=1e-4, atol=1e-6, msg=name)

    @each_network
    @each_task
    def test_evaluation_sees_the_weights_and_soft_masks_of_the_moment(self, kind: str, features: str) -> None:
        training = soft_training(kind, features)
        task = node_task(training)
        for _ in range(3):
            training.run_epoch(Hooks())
            training.network.eval()
            with torch.no_grad():
                expected = task.label_loss(Autograd(training).logits(task.val), task.y[task.val])
            assert training.history[-1].val_loss == pytest.approx(float(expected), rel=1e-5)

    def test_a_change_of_hard_or_soft_masks_is_seen_at_once(self) -> None:
        training = soft_training("gcn", "dense")
        training.run_epoch(Hooks())
        training.network.eval()
        before = training.outputs(None)
        training.apply(Masks(edges=drop(60), weights=some_masks().weights))
        pruned = training.outputs(None)
        assert not torch.equal(pruned, before)
        torch.testing.assert_close(pruned, Autograd(training).logits(torch.arange(30)))
        with torch.no_grad():
            training.soft_weight_masks["layer1.weight"].mul_(3)
        assert not torch.equal(training.outputs(None), pruned)
        torch.testing.assert_close(training.outputs(None), Autograd(training).logits(torch.arange(30)))

    def test_a_new_stage_forgets_them(self) -> None:
        training = soft_training("gcn", "dense")
        training.run_epoch(Hooks())
        training.begin_stage("hard")
        training.network.eval()
        assert torch.equal(training.outputs(None), training.network(training.task.x, training.graph))

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
    take = _ProductReuse._take

    def noting(reuse: _ProductReuse, *arguments: Any) -> Tensor | None:
        left = take(reuse, *arguments)
        taken.append(left is not None)
        return left

    monkeypatch.setattr(_ProductReuse, "_take", noting)
    ours = run()
    assert taken == [False, True, True, True]
    monkeypatch.setattr(_ProductReuse, "_take", lambda *arguments: None)
    plain = run()
    assert [asdict(record) for record in ours.history] == [asdict(record) for record in plain.history]
    for name, value in ours.network.state_dict().items():
        assert torch.equal(value, plain.network.state_dict()[name]), name
    for name, mask in ours.soft_weight_masks.items():
        assert torch.equal(mask, plain.soft_weight_masks[name]), name


def test_l1_terms_pull_soft_masks_towards_zero(seen: dict[int, Tensor]) -> None:
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
