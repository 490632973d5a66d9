"""What holds for every method, also for those still to come."""

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt import InputError, Ticket
from fastglt.graphs.graph import Graph
from fastglt.methods import METHODS, Budget, Method
from fastglt.models import GAT, GCN, GIN, Network, PyGNetwork
from fastglt.tasks import NodeClassification
from fastglt.tickets.find import find
from fastglt.tickets.ticket_file import encode
from fastglt.training.checkpoint import pack, pack_snapshot, unpack
from fastglt.training.loop import Training, train
from tests.helpers import GRID, columns, counts, method_of, toy_task
from tests.toy_data import seeded

BUDGET = Budget(oneshot_epochs=2, denoise_epochs=10, interval=2, lr=0.01)
# Methods in rounds take as many as their shares need; here a few short ones.
ROUNDS = {"round_epochs": 2, "edge_share": 0.4, "weight_share": 0.6}
QUICK: dict[str, dict[str, Any]] = {"ugs": ROUNDS, "wdglt": ROUNDS, "ace": {**ROUNDS, "erase_epochs": 1}}

each_method = pytest.mark.parametrize("name", METHODS)


def quick(name: str, graph: float, weight: float) -> Method:
    """A method that is done after a few epochs."""
    return method_of(name, graph, weight, budget=BUDGET, **QUICK.get(name, {}))


def start(
    method: Method, network: Network | None = None, task: NodeClassification | None = None, *, seed: int = 0
) -> Training:
    """A fresh training of a search."""
    return Training(network or GCN(12, 8, 3), task or toy_task(), method.recipe, seed=seed)


def ticket_of(method: Method, *, seed: int) -> Ticket:
    """A search alone."""
    return find(GCN(12, 8, 3), toy_task(), method, seed=seed, isolated=False, dense=False).ticket


class TestNames:
    @each_method
    def test_a_method_says_who_it_is(self, name: str) -> None:
        method = METHODS[name]
        assert method.name == name
        assert method.summary == method.summary.strip() != ""
        assert "\n" not in method.summary

    def test_an_unknown_one_is_told(self) -> None:
        with pytest.raises(InputError, match=r"unknown method \(got 'fastgtl'\); did you mean 'fastglt'\?"):
            method_of("fastgtl", 0.1, 0.1)

    @each_method
    def test_options_are_plain_values_and_others_are_refused(self, name: str) -> None:
        options = method_of(name, 0.1, 0.1).options
        assert json.loads(json.dumps(options)) == options
        with pytest.raises(InputError, match=f"method '{name}' has no option 'nonsense'; it takes"):
            method_of(name, 0.1, 0.1, nonsense=1)

    def test_a_method_without_options_says_so(self) -> None:
        with pytest.raises(InputError, match="method 'random' has no option 'start'; it takes none"):
            method_of("random", 0.1, 0.1, start="random")


class TestTargets:
    @each_method
    @pytest.mark.parametrize(("sparsities", "kept"), GRID, ids=[str(sparsities) for sparsities, _ in GRID])
    def test_counts_are_exact(self, name: str, sparsities: tuple[float, float], kept: tuple[int, int]) -> None:
        method = quick(name, *sparsities)
        training = start(method)
        best = train(training, method)
        assert counts(best.masks) == kept
        assert counts(training.masks) == kept
        for weight, mask in best.masks.weights.items():
            assert not best.state[weight][~mask.kept].any()
        assert best.epoch <= training.epoch <= method.epochs
        assert [record.epoch for record in training.history][: training.epoch] == list(range(1, training.epoch + 1))

    @each_method
    @pytest.mark.parametrize(("graph", "weight"), [(0.0, 0.0), (0.0, 0.9), (0.5, 0.0)])
    def test_what_is_not_pruned_has_no_soft_masks(self, name: str, graph: float, weight: float) -> None:
        def check(training: Training) -> None:
            assert training.soft_edge_mask is None or graph > 0
            assert training.soft_weight_masks == {} or weight > 0
            assert training.masks.edges.count == 60 or graph > 0
            assert training.masks.weights_kept == 120 or weight > 0

        method = quick(name, graph, weight)
        train(start(method), method, check)


class Reversing(nn.Module):
    """A user's model that passes messages along other columns than it was given: they cannot be scored."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(12, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index.flip(1))  # type: ignore[no-any-return]


def two_layers(kind: Any) -> Callable[[], Network]:
    return lambda: PyGNetwork(seeded(lambda: kind(12, 8, num_layers=2, out_channels=3, dropout=0.5)))


NETWORKS: dict[str, Callable[[], Network]] = {
    "GIN": lambda: GIN(12, 8, 3, depth=2),
    "GAT": lambda: GAT(12, 4, 3, heads=2),
    "a user's GCN": two_layers(pyg.GCN),
    "a user's SAGE": two_layers(pyg.GraphSAGE),
}


class TestNetworks:
    @each_method
    @pytest.mark.parametrize("kind", NETWORKS)
    def test_every_network_is_pruned_over_all_its_matrices(self, name: str, kind: str) -> None:
        network, method = NETWORKS[kind](), quick(name, 0.5, 0.9)
        total = sum(shape.numel() for shape in network.weight_shapes.values())
        best = train(start(method, network), method)
        assert counts(best.masks) == (30, total - round(0.9 * total))

    @each_method
    @pytest.mark.parametrize("build", [lambda: GCN(12, 8, 3), two_layers(pyg.GraphSAGE)], ids=["GCN", "a user's"])
    def test_directed_graphs(self, name: str, build: Callable[[], Network]) -> None:
        pairs = [(i, (i + step) % 30) for step in (1, 2, 29) for i in range(30)]  # back and forth, and forth only
        task = dataclasses.replace(toy_task(), graph=Graph.from_edge_index(columns(pairs), num_nodes=30))
        assert (task.graph.directed, task.graph.num_edges) == (True, 90)
        network, method = build(), quick(name, 0.3, 0.5)
        total = sum(shape.numel() for shape in network.weight_shapes.values())
        assert counts(train(start(method, network, task), method).masks) == (63, total - round(0.5 * total))

    @each_method
    def test_edges_that_stay_need_no_scores(self, name: str) -> None:
        network, method = PyGNetwork(seeded(Reversing)), quick(name, 0.0, 0.5)
        assert counts(train(start(method, network), method).masks) == (60, 36)

    @each_method
    def test_a_network_may_have_nothing_to_prune(self, name: str) -> None:
        network, method = PyGNetwork(seeded(pyg.SAGEConv, 12, 3), prunable=[]), quick(name, 0.5, 0.0)
        assert counts(train(start(method, network), method).masks) == (30, 0)

    @each_method
    def test_a_graph_may_have_no_edges(self, name: str) -> None:
        task = dataclasses.replace(toy_task(), graph=Graph.from_edge_index(columns([]), num_nodes=30))
        method = quick(name, 0.0, 0.5)
        assert counts(train(start(method, task=task), method).masks) == (0, 60)

    @each_method
    def test_a_users_model_may_be_of_double_precision(self, name: str) -> None:
        network, method = PyGNetwork(seeded(pyg.SAGEConv, 12, 3).double()), quick(name, 0.5, 0.5)
        assert counts(train(start(method, network), method).masks) == (30, 36)


class TestDeterminism:
    @each_method
    def test_the_same_seed_gives_the_same_file_and_another_one_another_ticket(self, name: str) -> None:
        one, again, other = (ticket_of(quick(name, 0.5, 0.9), seed=seed) for seed in (3, 3, 4))
        assert encode(one) == encode(again)
        assert not all(torch.equal(value, other.weights[key]) for key, value in one.weights.items())

    @each_method
    def test_start_data_and_the_callers_random_numbers_are_left_alone(self, name: str) -> None:
        network, task = GCN(12, 8, 3), toy_task()
        torch.manual_seed(0)
        state = torch.get_rng_state()
        find(network, task, quick(name, 0.5, 0.9), seed=0, isolated=False, dense=False)
        assert torch.equal(torch.get_rng_state(), state)
        fresh, whole = GCN(12, 8, 3), toy_task()
        for key, value in network.state_dict().items():
            assert torch.equal(value, fresh.state_dict()[key])
        assert all(parameter.grad is None for parameter in network.parameters())
        assert torch.equal(task.x.dense, whole.x.dense)
        for mine, theirs in ((task.y, whole.y), (task.graph.edge_index, whole.graph.edge_index)):
            assert torch.equal(mine, theirs)


@cache
def whole_run(name: str) -> tuple[Training, dict[int, tuple[bytes, str, int]]]:
    """A finished search and, after each epoch, what was written down and how many rounds were over."""
    method, files = quick(name, 0.4, 0.8), {}
    training = start(method)

    def note(state: Training) -> None:
        tensors, meta = pack(state)
        files[state.epoch] = (safetensors.torch.save(tensors), json.dumps(meta), len(state.rounds))

    train(training, method, note)
    return training, files


@each_method
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
def test_a_stopped_search_goes_on_bit_for_bit(name: str, share: float) -> None:
    finished, files = whole_run(name)
    epoch = max(1, int(share * finished.epoch))
    content, meta, rounds = files[epoch]
    method = quick(name, 0.4, 0.8)
    training = start(method)
    unpack(training, safetensors.torch.load(content), json.loads(meta))
    training.rounds = finished.rounds[:rounds]  # a run's folder keeps them
    train(training, method)
    for one, other in (
        (pack(training), pack(finished)),
        *zip(packed_rounds(training), packed_rounds(finished), strict=True),
    ):
        assert one[1] == other[1]
        assert list(one[0]) == list(other[0])
        assert all(torch.equal(value, other[0][key]) for key, value in one[0].items())


def packed_rounds(training: Training) -> list[tuple[dict[str, Tensor], dict[str, Any]]]:
    return [pack_snapshot(snapshot) for snapshot in training.rounds]
