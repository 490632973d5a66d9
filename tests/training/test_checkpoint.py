import json
from functools import cache
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from fastglt.masks import Mask, Masks, as_vector
from fastglt.methods import Budget, FixedMasks, Method
from fastglt.models import GAT, GCN, GIN, Network
from fastglt.training.checkpoint import pack, pack_snapshot, unpack, unpack_snapshot
from fastglt.training.loop import Training, train
from tests.helpers import method_of, randn, sparse_task, training_of


class Busy(Method):
    """Uses all that a method may keep in a training: tensors it trains, what it remembers, weights that return."""

    name = "busy"
    summary = "for these tests"

    def begin(self, training: Training) -> None:
        self.prune(training)
        training.begin_stage("busy", soft_edges=True, regrow=True, extra={"scale": torch.ones(3), "idle": randn(2)})

    def extra_loss(self, training: Training, logits: Tensor) -> Tensor:
        return (logits * training.extra["scale"]).square().mean()

    def before_step(self, training: Training) -> None:
        for name, weight in training.weights.items():
            assert weight.grad is not None
            training.method_state[name] = (
                0.9 * training.method_state.get(name, torch.zeros_like(weight)) + weight.grad.abs()
            )

    def after_step(self, training: Training) -> None:
        self.prune(training)

    def after_epoch(self, training: Training) -> None:
        training.method_state["epochs"] = torch.tensor(training.epoch)

    def prune(self, training: Training) -> None:
        """What the gradients speak for stays."""
        scores = {
            name: weight.detach().abs() + training.method_state.get(name, torch.zeros(1))
            for name, weight in training.weights.items()
        }
        weights = {name: Mask(score > score.median()) for name, score in scores.items()}
        training.apply(Masks(edges=training.masks.edges, weights=weights))


SHORT = Budget(oneshot_epochs=3, denoise_epochs=7, interval=2, lr=0.01)  # the last interval is cut short
CASES: dict[str, tuple[Method, Network]] = {
    "fastglt": (method_of("fastglt", 0.4, 0.8, budget=SHORT), GCN(12, 8, 3)),
    "fastglt, the paper's ramp": (method_of("fastglt", 0.4, 0.95, budget=SHORT, ramp=1.0), GIN(12, 16, 3)),
    "fastglt, random start": (method_of("fastglt", 0.4, 0.8, budget=SHORT, start="random"), GCN(12, 8, 3)),
    "fastglt, weights only": (method_of("fastglt", 0.0, 0.8, budget=SHORT), GAT(12, 4, 3, heads=2)),
    "fastglt, edges only": (method_of("fastglt", 0.4, 0.0, budget=SHORT), GCN(12, 8, 3)),
    "oneshot": (method_of("oneshot", 0.4, 0.8, budget=SHORT), GCN(12, 8, 3)),
    "random": (method_of("random", 0.4, 0.8, budget=SHORT), GCN(12, 8, 3)),
    "busy": (Busy(budget=SHORT), GCN(12, 8, 3)),
    "dense": (FixedMasks(budget=SHORT), GCN(12, 8, 3)),
    "fastglt, sparse features": (method_of("fastglt", 0.4, 0.8, budget=SHORT), GCN(60, 8, 3)),
    "gebt": (method_of("gebt", 0.4, 0.8, budget=SHORT, draw_every=1, window=2, distance=1e-9), GCN(12, 8, 3)),
    "dglt": (method_of("dglt", 0.4, 0.8, budget=SHORT, transition=0.5), GCN(12, 8, 3)),
}
TASKS = {"fastglt, sparse features": sparse_task()}
each_case = pytest.mark.parametrize("case", CASES)


def as_file(training: Training) -> tuple[bytes, str]:
    """A packed training as what is written to disk."""
    tensors, meta = pack(training)
    return safetensors.torch.save(tensors), json.dumps(meta)


@cache
def whole_run(case: str) -> tuple[Training, dict[int, tuple[bytes, str]]]:
    """A finished run, and what was written after each of its epochs."""
    method, network = CASES[case]
    training, files = training_of(network=network, budget=SHORT, task=TASKS.get(case)), {}

    def note(state: Training) -> None:
        files[state.epoch] = as_file(state)

    train(training, method, note)
    return training, files


def restored(case: str, epoch: int) -> Training:
    """A fresh training brought to where the run was after an epoch."""
    content, meta = whole_run(case)[1][epoch]
    training = training_of(network=CASES[case][1], budget=SHORT, task=TASKS.get(case))
    unpack(training, safetensors.torch.load(content), json.loads(meta))
    return training


def assert_equal(one: tuple[dict[str, Tensor], Any], other: tuple[dict[str, Tensor], Any]) -> None:
    assert list(one[0]) == list(other[0])
    for name, value in one[0].items():
        assert torch.equal(value, other[0][name]), name
    assert one[1] == other[1]


@each_case
@pytest.mark.parametrize("epoch", [1, 3, 4, 6, 9, 10])
def test_a_resumed_run_ends_bit_for_bit_like_an_uninterrupted_one(case: str, epoch: int) -> None:
    finished, _ = whole_run(case)
    training = restored(case, epoch)
    best = train(training, CASES[case][0])
    assert_equal(pack(training), pack(finished))
    assert finished.best is not None
    assert_equal(pack_snapshot(best), pack_snapshot(finished.best))


def test_what_is_ranked_as_one_lies_side_by_side_after_an_interruption() -> None:
    training = restored("fastglt", 6)
    for parts in (training.weights, training.gradient_sum):
        vector = as_vector(parts)
        assert all(part.untyped_storage().data_ptr() == vector.data_ptr() for part in parts.values())


@each_case
def test_unpacking_and_packing_again_changes_nothing(case: str) -> None:
    for epoch, written in whole_run(case)[1].items():
        assert as_file(restored(case, epoch)) == written


@each_case
def test_a_run_goes_through_its_stages(case: str) -> None:
    stages = {json.loads(meta)["stage"] for _, meta in whole_run(case)[1].values()}
    expected = {
        "fastglt": {"oneshot", "denoise"},
        "fastglt, the paper's ramp": {"oneshot", "denoise", "final"},
        "fastglt, random start": {"warm-up", "denoise"},
        "oneshot": {"oneshot", "train"},
        "random": {"train"},
        "busy": {"busy"},
        "dense": {"train"},
        "gebt": {"draw", "train"},
        "dglt": {"transition", "train"},
    }
    assert stages == expected.get(case, expected["fastglt"])


def test_extra_tensors_and_memory_are_packed_and_regrowing_goes_on() -> None:
    training = restored("busy", 3)
    assert list(training.extra) == ["scale", "idle"]
    assert training.extra["scale"].requires_grad
    assert not torch.equal(training.extra["scale"], torch.ones(3))
    assert int(training.method_state["epochs"]) == 3
    assert training.regrow
    assert len(list(training.optimizer)) == 4 + 1 + 2  # parameters, edge scores, extra tensors


def test_what_was_packed_does_not_follow_the_training() -> None:
    training = training_of(budget=SHORT)
    method = CASES["fastglt"][0]
    method.begin(training)
    training.run_epoch(method)
    tensors, _ = pack(training)
    before = {name: value.clone() for name, value in tensors.items()}
    training.run_epoch(method)
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)


def test_a_state_can_be_unpacked_twice() -> None:
    content, meta = whole_run("fastglt")[1][4]
    tensors, finals = safetensors.torch.load(content), []
    for _ in range(2):
        training = training_of(budget=SHORT)
        unpack(training, tensors, json.loads(meta))
        train(training, CASES["fastglt"][0])
        finals.append(pack(training))
    assert_equal(*finals)


def test_a_snapshot_comes_back() -> None:
    finished, _ = whole_run("fastglt")
    assert finished.best is not None
    tensors, meta = pack_snapshot(finished.best)
    back = unpack_snapshot(safetensors.torch.load(safetensors.torch.save(tensors)), json.loads(json.dumps(meta)))
    assert back.scores == finished.best.scores
    assert back.masks == finished.best.masks
    assert_equal(pack_snapshot(back), (tensors, meta))
