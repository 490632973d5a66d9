"""Training by parts: what is over the whole graph is what full batch has, and what cannot be is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from fastglt import Budget, find_ticket
from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.partition import divided
from fastglt.methods import FixedMasks, make
from fastglt.methods.base import Targets
from fastglt.models import GCN, Network
from fastglt.models import make as make_model
from fastglt.tasks import MultiLabel, NodeClassification
from fastglt.tasks.base import Step, Task
from fastglt.training.checkpoint import pack, unpack
from fastglt.training.distillation import Teacher
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.helpers import both_ways, randn, toy_task
from tests.toy_data import QUICK, HandWritten, TakesData, seeded, toy_data


def two_blocks() -> NodeClassification:
    """Two cliques of six nodes without an edge between them; METIS finds just these."""
    pairs = [(a, b) for block in (0, 6) for a in range(block, block + 6) for b in range(block, a)]
    nodes = torch.arange(12)
    return NodeClassification(
        graph=Graph.from_edge_index(both_ways(pairs), num_nodes=12),
        x=Features(randn(12, 5)),
        y=nodes % 2,
        train=torch.tensor([0, 1, 2, 7]),
        val=torch.tensor([3, 8]),
        test=torch.tensor([4, 9]),
    )


def trained(
    task: NodeClassification, *, epochs: int = 2, network: Network | None = None, **by_parts: Any
) -> Training:
    """Epochs with soft masks, then one with summed gradients, without dropout."""
    network = network or GCN(task.x.num_features, 4, 3, dropout=0.0)
    training = Training(network, task, Recipe(lr=0.05, **by_parts), seed=0)
    training.begin_stage("soft", soft_edges=True, soft_weights=True, l1=(1e-3, 1e-3))
    for _ in range(epochs):
        training.run_epoch(Hooks())
    training.begin_stage("sum", soft_edges=True, sum_gradients=True)
    training.run_epoch(Hooks())
    return training


def assert_same(one: Training, two: Training) -> None:
    for name, value in one.network.state_dict().items():
        torch.testing.assert_close(two.network.state_dict()[name], value, rtol=1e-4, atol=1e-6)
    assert one.soft_edge_mask is not None
    torch.testing.assert_close(one.soft_edge_mask, two.soft_edge_mask, rtol=1e-4, atol=1e-6)
    for name, total in one.gradient_sum.items():
        torch.testing.assert_close(two.gradient_sum[name], total, rtol=1e-3, atol=1e-6)
    assert [record.val for record in one.history] == [record.val for record in two.history]
    assert one.history[-1].loss == pytest.approx(two.history[-1].loss, rel=1e-4)


class TestExactness:
    @pytest.mark.parametrize("kind", ["metis", "random"])
    def test_all_parts_in_one_step_are_full_batch(self, kind: str) -> None:
        full = trained(toy_task())
        assert_same(full, trained(toy_task(), parts=4, parts_per_step=4, partition=kind))

    def test_shares_without_edges_between_them_are_full_batch(self) -> None:
        assert_same(trained(two_blocks()), trained(two_blocks(), parts=2, parts_per_step=2, shares=2))

    def test_batch_norms_of_shares_count_from_the_same_start(self) -> None:
        network = make_model("resgcn", in_channels=5, hidden=4, out_channels=2, seed=0, num_layers=2, dropout=0.0)
        once = trained(two_blocks(), network=network, parts=2, parts_per_step=2, shares=2, epochs=1)
        norms = [norm for norm in once.network.modules() if isinstance(norm, nn.BatchNorm1d)]
        counted = [norm.num_batches_tracked for norm in norms]
        assert {int(count) for count in counted if count is not None} == {2}  # one for each step

    def test_renormalisation_counts_what_the_whole_graph_has(self) -> None:
        nodes, blocks = torch.arange(12), two_blocks()
        unlike = Features(blocks.x.dense + 0.5 * (nodes >= 6).float().unsqueeze(1))
        task = replace(blocks, x=unlike, train=torch.tensor([0, 1, 7, 8]), val=nodes[2:3], test=nodes[3:4])
        options: dict[str, Any] = {"in_channels": 5, "hidden": 4, "out_channels": 2, "seed": 0}
        options |= {"num_layers": 3, "dropout": 0.0}
        network = make_model("resgcn", **options, norm="renorm")
        training = Training(network, task, Recipe(lr=1e-9, parts=2, parts_per_step=2, shares=2), seed=0)
        for _ in range(200):
            training.run_epoch(Hooks())
        plain = make_model("resgcn", **options, norm="batch").train()
        plain(task.x, task.graph)  # on all nodes
        counted, expected = (net.get_submodule("layers.1.norm") for net in (training.network, plain))
        mean, variance = expected.get_buffer("running_mean") / 0.1, (expected.get_buffer("running_var") - 0.9) / 0.1
        torch.testing.assert_close(counted.get_buffer("running_mean"), mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(counted.get_buffer("running_var"), variance * 11 / 12, rtol=1e-3, atol=1e-5)

    def test_soft_masks_of_edges_between_parts_stay(self) -> None:
        task = toy_task()
        training = trained(task, parts=3, epochs=1)
        assert training.soft_edge_mask is not None
        touched = training.soft_edge_mask.detach() != 1
        labels = divided(task.graph, 3, "metis").labels
        assert labels is not None
        inside = labels[task.graph.edges[0]] == labels[task.graph.edges[1]]
        assert not bool((touched & ~inside).any())
        assert int(touched.sum()) > 0

    @pytest.mark.parametrize("method", ["fastglt", "forest", "oneshot", "rigl", "dglt", "random"])
    def test_masks_have_the_exact_counts(self, method: str) -> None:
        ticket = find_ticket(
            "gcn",
            toy_data(),
            method=method,
            budget=replace(QUICK, parts=4, parts_per_step=2),
            hidden=8,
            graph_sparsity=0.3,
            weight_sparsity=0.5,
            isolated=False,
        )
        assert ticket.masks.edges.count == 42
        assert ticket.masks.weights_kept == 36
        assert ticket.config["budget"]["parts"] == 4

    def test_a_training_goes_on_from_its_checkpoint(self) -> None:
        budget, targets = Budget(oneshot_epochs=2, denoise_epochs=4, interval=2, parts=4), Targets()
        method = make("fastglt", targets=targets, budget=budget)
        task = toy_task()
        whole, cut = (Training(GCN(12, 8, 3), task, method.recipe, seed=3) for _ in range(2))
        for training, epochs in ((whole, 6), (cut, 3)):
            method.begin(training)
            for _ in range(epochs):
                training.run_epoch(method)
                method.after_epoch(training)
        again = Training(GCN(12, 8, 3), task, method.recipe, seed=3)
        unpack(again, *pack(cut))
        for _ in range(3):
            again.run_epoch(method)
            method.after_epoch(again)
        assert again.masks.edges == whole.masks.edges
        assert all(
            torch.equal(value, again.network.state_dict()[name])
            for name, value in whole.network.state_dict().items()
        )


class TestWholeRuns:
    def test_one_part_is_full_batch_byte_for_byte(self) -> None:
        one, none = (
            find_ticket("gcn", toy_data(), budget=budget, hidden=8, isolated=False)
            for budget in ({"parts": 1, **_QUICK}, _QUICK)
        )
        assert one.config == none.config
        assert one.masks == none.masks
        assert all(torch.equal(value, none.weights[name]) for name, value in one.weights.items())

    @pytest.mark.parametrize("model", [HandWritten, TakesData])
    def test_users_models_get_parts_as_data(self, model: Any) -> None:
        budget = replace(QUICK, parts=3, partition="random")
        ticket = find_ticket(seeded(model), toy_data(loops=True), budget=budget, graph_sparsity=0.2, isolated=False)
        assert ticket.masks.edges.count == 48

    @pytest.mark.parametrize("task", ["link", "multi-label"])
    def test_other_tasks(self, task: str) -> None:
        data = toy_data()
        if task == "multi-label":
            data.y = torch.stack([data.y == 0, data.y > 1], 1).float()
        options: dict[str, Any] = {"task_options": {"decoder_layers": 1}} if task == "link" else {}
        ticket = find_ticket(
            "gcn", data, task=task, hidden=8, budget=replace(QUICK, parts=2), isolated=False, **options
        )
        assert ticket.masks.edges.sparsity == pytest.approx(0.2, abs=0.02)

    def test_a_taught_ticket(self) -> None:
        budget = replace(QUICK, parts=3)
        ticket = find_ticket("gcn", toy_data(), hidden=8, budget=budget, distill={"nodes": "unlabelled"})
        assert ticket.scores["isolated_val"] >= 0


_QUICK = {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2, "lr": 0.01}


class TestTeacher:
    def test_a_teacher_within_a_part_speaks_of_its_nodes(self) -> None:
        from fastglt.graphs.parts import Cutter

        task = toy_task()
        outputs = torch.arange(90.0).view(30, 3)
        part = Cutter(task.graph).cut(torch.tensor([2, 5, 20]))
        teacher = Teacher(outputs=outputs, weight=1.0, nodes=torch.tensor([5, 6, 20])).within(task, part)
        assert teacher is not None
        assert teacher.outputs.tolist() == outputs[[2, 5, 20]].tolist()
        assert teacher.nodes is not None
        assert teacher.nodes.tolist() == [1, 2]
        assert Teacher(outputs=outputs, weight=1.0, nodes=torch.tensor([6])).within(task, part) is None


class StepsOfItsOwn(NodeClassification):
    """A task that knows nothing of parts."""

    step_in = Task.step_in

    def steps(self, seed: int) -> tuple[Step, ...]:
        return (Step(nodes=self.train),)


class TestRefused:
    @pytest.mark.parametrize(
        ("wrong", "rule"),
        [
            ({"parts": 0}, r"parts must be at least 1 \(got 0\)"),
            ({"parts": 1.5}, r"parts must be a whole number \(got 1.5\)"),
            ({"partition": "random"}, r"partition must come with several parts of the graph"),
            ({"parts": 4, "partition": "metric"}, r"unknown partition \(got 'metric'\); did you mean 'metis'"),
            ({"parts": 4, "parts_per_step": 5}, r"parts_per_step must not exceed the 4 parts \(got 5\)"),
            ({"parts": 4, "shares": 2}, r"shares must not exceed the 1 parts_per_step \(got 2\)"),
        ],
    )
    def test_impossible_settings(self, wrong: dict[str, Any], rule: str) -> None:
        with pytest.raises(InputError, match=rule):
            Budget(**wrong)

    @pytest.mark.parametrize(
        ("method", "reason"),
        [
            ("wdglt", "it looks at the outputs of all nodes in every step"),
            ("teddy", "it looks at the outputs of all nodes in every step"),
            ("adaglt", "it weighs all edges anew in every step"),
            ("snip", "it rates edges and weights by one gradient over the whole graph"),
        ],
    )
    def test_methods_that_need_the_whole_graph(self, method: str, reason: str) -> None:
        with pytest.raises(InputError, match=rf"parts must be 1 for method '{method}' \(got 2\): {reason}"):
            find_ticket("gcn", toy_data(), method=method, budget={"parts": 2}, hidden=4)

    def test_more_parts_than_nodes(self) -> None:
        with pytest.raises(InputError, match=r"parts must not exceed the graph's 30 nodes \(got 31\)"):
            find_ticket("gcn", toy_data(), budget={"parts": 31}, hidden=4)

    def test_batches_of_links(self) -> None:
        with pytest.raises(InputError, match=r"batch must be none where steps are on parts of the graph \(got 8\)"):
            find_ticket("gcn", toy_data(), task="link", task_options={"batch": 8}, budget={"parts": 2}, hidden=4)

    def test_a_task_without_steps_on_parts(self) -> None:
        task = toy_task()
        fields = {name: getattr(task, name) for name in ("graph", "x", "y", "train", "val", "test")}
        with pytest.raises(InputError, match=r"give it a method step_in"):
            Training(GCN(12, 4, 3), StepsOfItsOwn(**fields), Recipe(parts=2), seed=0)


def test_a_part_without_targets_teaches_nothing() -> None:
    task = replace(two_blocks(), train=torch.tensor([0, 1]))
    training = Training(GCN(5, 4, 3), task, Recipe(parts=2), seed=0)
    training.run_epoch(FixedMasks())
    states: Sequence[Any] = [
        training.optimizer.state[parameter]["step"] for parameter in training.network.parameters()
    ]
    assert {int(step) for step in states} == {1}


@pytest.mark.parametrize(("parts_per_step", "shares"), [(1, 1), (2, 2)])
def test_a_part_whose_labels_are_unknown_teaches_nothing(parts_per_step: int, shares: int) -> None:
    blocks = two_blocks()
    fields = {name: getattr(blocks, name) for name in ("graph", "x", "train", "val", "test")}
    y = torch.nn.functional.one_hot(blocks.y, 3).float()
    first = blocks.train < 4
    y[blocks.train[first]] = torch.nan
    recipe = Recipe(parts=2, partition="blocks", parts_per_step=parts_per_step, shares=shares)
    one, other = (
        Training(GCN(5, 4, 3, dropout=0.0), MultiLabel(y=y, **fields | {"train": train}), recipe, seed=0)
        for train in (blocks.train, blocks.train[~first])
    )
    for training in (one, other):
        training.run_epoch(Hooks())
    assert one.history == other.history
    for name, value in one.network.state_dict().items():
        assert torch.equal(value, other.network.state_dict()[name])
