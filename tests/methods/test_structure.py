"""Methods under --structure units: exact counts, whole units, and a search that goes on bit for bit."""

import json
from functools import partial
from typing import Any

import pytest
import torch

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.masks import flatten
from fastglt.methods import METHODS, Budget, Method, Targets, make
from fastglt.methods.parts.unit_swaps import return_units
from fastglt.models import GAT, GCN, GIN, Network
from fastglt.models.resgcn.network import ResGCN
from fastglt.tickets.find import find
from fastglt.tickets.ticket import Ticket
from fastglt.tickets.ticket_file import encode
from fastglt.training.checkpoint import pack, unpack
from fastglt.training.loop import Training, train
from tests.helpers import toy_task

BUDGET = Budget(oneshot_epochs=2, denoise_epochs=10, interval=2, lr=0.01)
ROUNDS: dict[str, Any] = {"round_epochs": 2, "edge_share": 0.4, "weight_share": 0.6}
BY_UNITS = [name for name, method in METHODS.items() if "units" in method.structures]
OTHERS = [name for name in METHODS if name not in BY_UNITS]


def by_units(name: str, graph: float, weight: float, **options: Any) -> Method:
    more = ROUNDS if name in ("ugs", "wdglt") else {}
    targets = Targets(graph_sparsity=graph, weight_sparsity=weight, structure="units")
    return make(name, targets=targets, budget=BUDGET, **more, **options)


def start(method: Method, network: Network | None = None) -> Training:
    network, task = network or GCN(12, 8, 3), toy_task()
    return Training(network, task, method.recipe, seed=0, units=method.units(network, task))


def ticket_of(method: Method, network: Network | None = None) -> Ticket:
    return find(network or GCN(12, 8, 3), toy_task(), method, seed=0, isolated=False, dense=False).ticket


def alive(ticket: Ticket, network: Network) -> int:
    kept = flatten({name: mask.kept for name, mask in ticket.masks.weights.items()}).bool()
    task = toy_task()
    return int(network.units(task.x, task.graph).alive(kept).sum())


def note_rows(seen: list[torch.Tensor], training: Training) -> None:
    seen.append(training.masks.weights["layer2.weight"].kept.any(1))


class TestEveryMethod:
    @pytest.mark.parametrize("name", BY_UNITS)
    def test_whole_units_are_left(self, name: str) -> None:
        """Three of eight units: 45 of 120 weights."""
        ticket = ticket_of(by_units(name, 0.3, 0.625))
        assert (ticket.masks.edges.count, ticket.masks.weights_kept) == (42, 45)
        assert alive(ticket, GCN(12, 8, 3)) == 3

    @pytest.mark.parametrize("name", ["fastglt", "oneshot", "random"])
    def test_the_remainder_goes_as_single_weights(self, name: str) -> None:
        ticket = ticket_of(by_units(name, 0.0, 0.7))
        assert ticket.masks.weights_kept == 36
        assert alive(ticket, GCN(12, 8, 3)) == 3

    @pytest.mark.parametrize("name", OTHERS)
    def test_one_that_sets_masks_in_its_own_way_is_refused(self, name: str) -> None:
        with pytest.raises(InputError, match=rf"structure must be weights for method '{name}' \(got units\)"):
            ticket_of(by_units(name, 0.0, 0.5))

    @pytest.mark.parametrize(
        "network", [GIN(12, 8, 3), GIN(12, 8, 3, depth=2), GAT(12, 4, 3, heads=2), ResGCN(12, 8, 3, num_layers=3)]
    )
    def test_every_backbone(self, network: Network) -> None:
        total = sum(shape.numel() for shape in network.weight_shapes.values())
        ticket = ticket_of(by_units("fastglt", 0.3, 0.6), network)
        assert ticket.masks.weights_kept == total - round(0.6 * total)
        task = toy_task()
        assert alive(ticket, network) < 0.7 * network.units(task.x, task.graph).count

    def test_weights_that_stay_have_no_structure(self) -> None:
        assert ticket_of(by_units("fastglt", 0.3, 0.0)).masks.weights_kept == 120

    def test_an_unknown_structure_is_told(self) -> None:
        with pytest.raises(InputError, match=r"unknown structure \(got 'heads'\)"):
            Targets(structure="heads")


class TestFastGLT:
    @pytest.mark.parametrize(
        "options", [{}, {"unit_score": "effect", "unit_swap_fraction": 0.3}, {"start": "random"}]
    )
    def test_equal_runs_give_equal_files(self, options: dict[str, Any]) -> None:
        method = by_units("fastglt", 0.3, 0.7, **options)
        assert encode(ticket_of(method)) == encode(ticket_of(method))

    @pytest.mark.parametrize("epochs", [1, 4, 7])
    def test_a_search_goes_on_bit_for_bit(self, epochs: int) -> None:
        method = by_units("fastglt", 0.3, 0.7, unit_swap_fraction=0.5)
        finished, first = start(method), start(method)
        train(finished, method)

        def stop(training: Training) -> None:
            if training.epoch == epochs:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(first, method, stop)
        tensors, meta = pack(first)
        again = start(method)
        unpack(again, {name: value.clone() for name, value in tensors.items()}, json.loads(json.dumps(meta)))
        train(again, method)
        one, other = pack(again), pack(finished)
        assert one[1] == other[1]
        assert all(torch.equal(value, other[0][key]) for key, value in one[0].items())

    def test_units_return_with_their_initial_weights_into_them(self) -> None:
        method = by_units("fastglt", 0.0, 0.5)
        training = start(method)
        assert training.units is not None
        grown = torch.tensor([True, *[False] * 7])
        with torch.no_grad():
            for weight in training.weights.values():
                weight.zero_()
        return_units(training, grown)
        found = training.weights["layer1.weight"]
        assert torch.equal(found[:, 0], GCN(12, 8, 3).layer1.weight[:, 0])
        assert not bool(found[:, 1:].any())
        assert not bool(training.weights["layer2.weight"].any())

    def test_swaps_bring_other_units(self) -> None:
        """Without swaps the units are those of the first cut; with them some have come that were not there."""
        cut, ended = [], []
        for share in (0.0, 0.9):
            method, seen = by_units("fastglt", 0.0, 0.625, unit_swap_fraction=share), list[torch.Tensor]()
            training = start(method)
            train(training, method, partial(note_rows, seen))
            cut.append(seen[BUDGET.oneshot_epochs - 1])
            ended.append(seen[-1])
        assert bool((ended[0] <= cut[0]).all())
        assert not bool((ended[1] <= cut[1]).all())

    def test_an_unknown_score_is_told(self) -> None:
        with pytest.raises(InputError, match=r"unknown unit score \(got 'size'\)"):
            by_units("fastglt", 0.0, 0.5, unit_score="size")

    def test_nothing_of_it_is_in_settings_of_before(self) -> None:
        assert "unit_score" not in make("fastglt", targets=Targets(), budget=BUDGET).options
        assert Targets().settings == {"graph_sparsity": 0.2, "weight_sparsity": 0.9}


def test_the_compiled_ticket_has_no_more_units_than_are_left() -> None:
    from fastglt.deploy.compiling import compile_for

    task = toy_task()
    ticket = ticket_of(by_units("fastglt", 0.3, 0.625))
    predictor = compile_for(ticket, task.graph, Features(task.x.dense))
    assert predictor.live_units == 3
    masked = predictor.network(predictor.x, predictor.graph, predictor.score)
    torch.testing.assert_close(predictor.logits(), masked)
