"""Summing features up before they are multiplied gives what multiplying first gives, and is decided by a trial."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt import InputError, compile_ticket, find_ticket
from fastglt.deploy import layouts
from fastglt.deploy.layouts import STRIPS, SUMS_FIRST, WHOLE_ROWS, StoredDenseRows, fastest, in_order
from fastglt.deploy.predictor import Predictor
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.kernels import frozen as kernels
from fastglt.models import GCN, Backbone
from fastglt.models.programs import FixedMessages
from tests.deploy.test_predictor import BUDGET, assert_same, backbone, data, graphs, word_features
from tests.helpers import house, randn


def summing_first(network: Backbone, graph: Graph, x: Features, score: Tensor | None = None) -> Predictor:
    """The network's predictor that sums features up first."""
    names = (SUMS_FIRST,)
    program = network.program()
    assert program is not None
    return Predictor(
        network=network, graph=graph, x=x, score=score, program=in_order(program, names), layouts=names
    )


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("near", [1, 20, 2**20])
@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_on_every_back_end_few_rows_at_a_time_or_all(name: str, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_NEAR", near)
    for directed, features in ((False, 9), (True, 40)):
        graph = house(directed=directed)
        score = randn(graph.num_edges, seed=4).abs()
        network, x = backbone(name, features, share=0.2 if near > 1 else 0.6), word_features(7, features, 1)
        for chosen in (None, score):
            predictor = summing_first(network, graph, x, chosen)
            assert_same(predictor)
            assert_same(predictor)  # from the sums that were kept
            assert_same(predictor, torch.tensor([6, 2, 2]))


@given(graphs(), st.sampled_from(["gcn", "gin"]), st.floats(0, 1), st.integers(0, 999), st.booleans())
@settings(max_examples=100, deadline=None)
def test_on_any_graph(graph: Graph, name: str, share: float, seed: int, scored: bool) -> None:
    network, x = backbone(name, 8, seed, share), word_features(graph.num_nodes, 8, seed)
    score = randn(graph.num_edges, seed=seed).sigmoid() if scored else None
    predictor = summing_first(network, graph, x, score)
    assert_same(predictor)
    assert_same(predictor, torch.tensor([seed % graph.num_nodes]))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("nodes", [1, 3])
def test_without_edges(nodes: int, directed: bool) -> None:
    graph = Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.int64), nodes, directed=directed)
    for name in ("gcn", "gin"):
        predictor = summing_first(backbone(name, 5), graph, word_features(nodes, 5, 2))
        assert_same(predictor)
        assert predictor.logits([]).shape == (0, 3)


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_a_network_without_any_weight_still_has_its_biases(name: str) -> None:
    predictor = summing_first(backbone(name, 9, share=0.0), house(), word_features(7, 9, 1))
    assert (predictor.live_units, predictor.used_features) == (0, 0)
    assert_same(predictor)


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_other_features_and_new_nodes_have_sums_of_their_own(name: str) -> None:
    graph = house()
    score = randn(graph.num_edges, seed=4).sigmoid()
    predictor = summing_first(backbone(name, 9), graph, word_features(7, 9, 1), score)
    before = predictor.logits()
    changed = predictor.with_features(word_features(7, 9, 2).dense)
    assert_same(changed)
    assert not torch.equal(changed.logits(), before)
    grown = changed.with_nodes(word_features(2, 9, 5).dense, torch.tensor([[7, 7, 1], [0, 8, 8]]))
    for each in (grown, grown.with_features(word_features(9, 9, 3).dense)):
        assert_same(each)
        assert_same(each, torch.tensor([8, 0]))
        assert each.layouts == (SUMS_FIRST,)
    torch.testing.assert_close(predictor.logits(), before, rtol=0, atol=0)


def test_sums_are_taken_once_and_only_of_features_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def spy(csr: object, values: Tensor, x: Tensor, low: int, high: int) -> Tensor:
        taken.append(tuple(x.shape))
        return real(csr, values, x, low, high)  # type: ignore[arg-type]

    real = kernels._sums
    monkeypatch.setattr(kernels, "_sums", spy)
    network = backbone("gcn", 9, share=1.0)
    assert isinstance(network, GCN)
    with torch.no_grad():
        network.layer1.weight[4] = 0
    predictor = summing_first(network, house(), word_features(7, 9, 1))
    assert predictor.used_features == 8
    for _ in range(3):
        assert_same(predictor)
    assert taken == [(7, 8)]
    (rows,) = predictor._rows
    assert isinstance(rows, StoredDenseRows)
    assert rows.weight is None  # the columns themselves, without a product
    assert rows.product() is rows.x


def test_units_that_nobody_reads_are_not_computed() -> None:
    program = backbone("gcn", 9, share=0.3).program()
    assert isinstance(program, FixedMessages)
    other = program.summing_first()
    assert other.live_units == program.live_units
    assert other._units is not None
    assert other._units.into.shape == (other.matrices[0].shape[1], program.live_units)
    assert program._units is None  # it stays as it was
    assert other.matrices[0].sum() == program.matrices[0].any(1).sum()


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_a_trial_of_the_whole_answer_decides_and_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given_data = data()
    ticket = find_ticket(name, given_data, weight_sparsity=0.3, hidden=64, budget=BUDGET, isolated=False)
    for winner in (STRIPS, WHOLE_ROWS, "dense", SUMS_FIRST):

        def decided(works: dict[str, object], _: torch.device, winner: str = winner) -> object:
            return winner, {key: float(key != winner) for key in works}

        monkeypatch.setattr(layouts, "race", decided)
        predictor = compile_ticket(ticket, given_data)
        assert predictor.layouts == (winner,)
        assert predictor.trials is not None
        assert predictor.trials[winner] == 0
        assert_same(predictor)
        assert predictor.score is not None
        again = compile_ticket(ticket, given_data, layout=predictor.layouts)
        assert again.layouts == predictor.layouts
        assert again.trials is None
        assert torch.equal(again.logits(), predictor.logits())
        test = given_data.test_mask.nonzero().squeeze(1)
        assert_same(again, test)


def test_it_is_tried_where_it_may_pay() -> None:
    hops = house().hops(None, depth=2)

    def tried(name: str, features: int, x: Features) -> bool:
        program = backbone(name, features, share=1.0).program()
        assert program is not None
        chosen, trials = fastest(program, x, hops, None)
        assert len(chosen) == len(program.matrices)
        assert chosen[-1] == min(trials, key=lambda layout: trials[layout])
        return SUMS_FIRST in trials

    assert tried("gcn", 5, word_features(7, 5, 1))
    assert tried("gin", 5, word_features(7, 5, 1))
    assert not tried("gcn", 9, word_features(7, 9, 1))  # more features than the 6 hidden units
    assert not tried("gcn", 5, Features(torch.zeros(7, 5)))
    assert not tried("gat", 5, word_features(7, 5, 1))


def test_attention_cannot_be_summed_before_products() -> None:
    program = backbone("gat", 5).program()
    assert program is not None
    assert in_order(program, ("dense",)) is program
    with pytest.raises(InputError, match="unknown layout"):
        in_order(program, ("blocks 8",))
    with pytest.raises(InputError, match="'sums first' is for gcn and gin"):
        in_order(program, (SUMS_FIRST,))


def test_a_layout_alone_does_not_change_what_a_program_gives() -> None:
    network, x = backbone("gcn", 9), word_features(7, 9, 1)
    first = summing_first(network, house(), x)
    for names in (("dense",), ("whole rows",)):
        assert_same(replace(first, layouts=names))
    assert_same(replace(first, program=network.program()))
