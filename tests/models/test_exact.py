"""Full batch part by part: what every backbone gives and learns is what it does with all nodes at once."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from fastglt import Budget, Ticket, evaluate, find_ticket
from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.methods import METHODS, make
from fastglt.methods.base import Targets
from fastglt.models import GCN, Network, exact
from fastglt.models import make as make_model
from fastglt.models.exact import Division, compute_by_parts
from fastglt.runs.ranked import check_ranks
from fastglt.tasks import NodeClassification
from fastglt.training.checkpoint import pack, unpack
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.helpers import randn, toy_task
from tests.models.test_strips import BACKBONES, graph, kept_edges
from tests.toy_data import QUICK, HandWritten, seeded, toy_data

TARGETS = torch.tensor([3, 50, 17, 3])  # a target may be named twice


def shaken(name: str, options: dict[str, Any], **more: Any) -> Network:
    network = make_model(name, in_channels=12, hidden=8, out_channels=4, seed=0, **{**options, **more}).train()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * randn(*parameter.shape))
    return network


def by_parts(network: Network, whole: Graph, kind: str = "metis") -> Network:
    other = copy.deepcopy(network)
    compute_by_parts(other, Division(4, kind), whole)
    return other


def learnt(network: Network, x: Features, given: Graph, score: Tensor) -> dict[str, Tensor]:
    """Outputs, all gradients, and what norms have counted."""
    score = score.clone().requires_grad_()
    outputs = network(x, given, score, TARGETS)
    (outputs * randn(4, 4, seed=5)).sum().backward()
    assert score.grad is not None
    grads = {name: value.grad for name, value in network.named_parameters() if value.grad is not None}
    return {"outputs": outputs, "mask": score.grad, **grads, **dict(network.named_buffers())}


@pytest.mark.parametrize(("name", "options"), BACKBONES)
@pytest.mark.parametrize("directed", [False, True])
def test_outputs_and_gradients_are_those_of_full_batch(name: str, options: dict[str, Any], directed: bool) -> None:
    whole, x = graph(directed=directed), Features(randn(60, 12))
    kept, soft = kept_edges(whole), randn(whole.num_edges, seed=2)
    pruned, network = whole.prune(Mask(kept)), shaken(name, options, dropout=0.0)
    for kind in ("metis", "random"):
        wanted = learnt(copy.deepcopy(network), x, pruned, soft[kept])
        found = learnt(by_parts(network, whole, kind), x, pruned, soft[kept])
        assert set(found) == set(wanted)
        for part, value in wanted.items():
            torch.testing.assert_close(found[part], value, rtol=1e-3, atol=1e-5, msg=part)


@pytest.mark.parametrize(("name", "options"), BACKBONES)
def test_going_backwards_drops_what_going_forwards_has_dropped(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference is a pass that PyTorch records as it goes, so that nothing is computed again."""
    whole, x, soft = graph(directed=False), Features(randn(60, 12)), randn(150, seed=2)
    network, found = by_parts(shaken(name, options, dropout=0.4), whole), []
    for apply in (exact._Exact.apply, recorded):
        monkeypatch.setattr(exact._Exact, "apply", apply)
        torch.manual_seed(0)
        found.append(learnt(copy.deepcopy(network), x, whole, soft[: whole.num_edges]))
    for part, value in found[1].items():
        torch.testing.assert_close(found[0][part], value, rtol=1e-3, atol=1e-5, msg=part)
    with torch.no_grad():
        assert not torch.equal(network(x, whole), network(x, whole))  # something is dropped, anew in each pass


def recorded(job: Any, names: tuple[str, ...], soft_edge_mask: Tensor, *learnt: Tensor) -> Tensor:
    rows = None
    for layer in range(len(job.layers)):
        rows = job._layer(layer, rows, soft_edge_mask)
    return job.read(rows)  # type: ignore[no-any-return]


def trained(task: NodeClassification, **recipe: Any) -> Training:
    network = make_model("resgcn", in_channels=12, hidden=4, out_channels=3, seed=0, num_layers=3, dropout=0.0)
    training = Training(network, task, Recipe(lr=0.02, **recipe), seed=0)
    training.begin_stage("soft", soft_edges=True, soft_weights=True, l1=(1e-3, 1e-3))
    for _ in range(3):
        training.run_epoch(Hooks())
    training.begin_stage("sum", soft_edges=True, sum_gradients=True)
    training.run_epoch(Hooks())
    return training


def test_epochs_with_soft_masks_are_those_of_full_batch() -> None:
    full, exact = trained(toy_task()), trained(toy_task(), parts=4, exact=True)
    for name, value in full.network.state_dict().items():
        torch.testing.assert_close(exact.network.state_dict()[name], value, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(exact.soft_edge_mask, full.soft_edge_mask, rtol=1e-3, atol=1e-4)
    for name, total in full.gradient_sum.items():
        torch.testing.assert_close(exact.gradient_sum[name], total, rtol=1e-2, atol=1e-4)
    assert [record.loss for record in exact.history] == pytest.approx([record.loss for record in full.history])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_reaches_its_counts(method: str) -> None:
    budget = replace(QUICK, parts=4, exact=True)
    given: dict[str, Any] = {"budget": budget, "hidden": 8, "graph_sparsity": 0.3, "weight_sparsity": 0.5}
    ticket = find_ticket("gcn", toy_data(), method=method, isolated=False, **given)
    assert (ticket.masks.edges.count, ticket.masks.weights_kept) == (42, 36)
    assert ticket.config["budget"]["exact"] is True


@pytest.mark.parametrize("task", ["link", "multi-label"])
def test_other_tasks(task: str) -> None:
    data = toy_data()
    if task == "multi-label":
        data.y = torch.stack([data.y == 0, data.y > 1], 1).float()
    options: dict[str, Any] = {"task_options": {"batch": 20}} if task == "link" else {}
    budget = replace(QUICK, parts=3, exact=True)
    found = [
        find_ticket("gin", data, task=task, hidden=8, budget=each, isolated=False, **options)
        for each in (budget, QUICK)
    ]
    assert [ticket.masks.edges.count for ticket in found] == [found[1].masks.edges.count] * 2


def test_a_ticket_is_saved_and_judged_in_the_same_way(tmp_path: Path) -> None:
    budget = replace(QUICK, parts=3, exact=True)
    ticket = find_ticket("gcn", toy_data(), hidden=8, budget=budget, distill={"nodes": "unlabelled"})
    ticket.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", toy_data())
    assert evaluate(loaded, "gcn", toy_data(), seeds=[0, 1]).n == 2


def test_a_training_goes_on_from_its_checkpoint() -> None:
    budget, task = Budget(oneshot_epochs=2, denoise_epochs=4, interval=2, parts=4, exact=True), toy_task()
    method = make("fastglt", targets=Targets(), budget=budget)
    whole, cut, again = (Training(GCN(12, 8, 3), task, method.recipe, seed=3) for _ in range(3))
    for training, epochs in ((whole, 6), (cut, 3)):
        method.begin(training)
        for _ in range(epochs):
            training.run_epoch(method)
            method.after_epoch(training)
    unpack(again, *pack(cut))
    for _ in range(3):
        again.run_epoch(method)
        method.after_epoch(again)
    assert again.masks.edges == whole.masks.edges
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name])


class TestRefused:
    @pytest.mark.parametrize(
        ("wrong", "rule"),
        [
            ({}, r"exact must come with several parts of the graph \(got True and parts 1\)"),
            ({"parts": 4, "parts_per_step": 2}, r"parts_per_step must be 1 beside exact.*\(got 2\)"),
        ],
    )
    def test_impossible_settings(self, wrong: dict[str, Any], rule: str) -> None:
        with pytest.raises(InputError, match=rule):
            Budget(exact=True, **wrong)

    def test_a_batch_norm_within_a_layer(self) -> None:
        network = shaken("resgcn", {"num_layers": 2, "mlp_layers": 2})
        with pytest.raises(InputError, match="norm batch within an MLP sees one part alone"):
            by_parts(network, graph(directed=False))

    def test_a_users_model(self) -> None:
        with pytest.raises(InputError, match=r"exact must come with a network whose layers go part by part"):
            find_ticket(seeded(HandWritten), toy_data(), budget=replace(QUICK, parts=2, exact=True))

    def test_several_processes(self) -> None:
        with pytest.raises(InputError, match=r"exact must be computed by one process \(got 2\)"):
            check_ranks(2, parts=4, shares=None, exact=True)

    def test_a_graph_on_disk(self) -> None:
        on_disk = replace(graph(directed=False), on_disk=cast("Any", "somewhere"))
        with pytest.raises(InputError, match="exact must come with a graph in memory"):
            by_parts(shaken("gcn", {}), on_disk)

    def test_more_parts_than_nodes(self) -> None:
        with pytest.raises(InputError, match=r"parts must not exceed the graph's 30 nodes \(got 31\)"):
            find_ticket("gcn", toy_data(), budget=replace(QUICK, parts=31, exact=True), hidden=4)
