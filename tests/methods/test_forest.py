"""Forest tickets: which edges go, when they are chosen again, and that weights go FastGLT's way."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask, Masks
from fastglt.methods import FastGLT, Forest
from fastglt.methods.forest import SUSPICION
from fastglt.methods.parts.agreement import ForestRule
from fastglt.methods.parts.edge_trials import try_rules
from fastglt.methods.parts.forests import edge_standing
from fastglt.methods.parts.ranking import edge_cosine
from fastglt.models import GCN
from fastglt.tasks.base import edge_agreement
from fastglt.tickets.find import find
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from fastglt.training.outputs import network_outputs, network_outputs_and_support
from tests.helpers import BUDGET, both_ways, counts, method_of, toy_task, training_of
from tests.suspects.poisoned_task import poisoned


def components(graph: Graph, kept: Tensor) -> int:
    edges = graph.edges[:, kept].numpy()
    matrix = coo_array((np.ones(edges.shape[1]), edges), (graph.num_nodes, graph.num_nodes))
    return int(connected_components(matrix, directed=False)[0])


def after_stage_one(method: Forest) -> Training:
    training = training_of()
    method.begin(training)
    for _ in range(BUDGET.oneshot_epochs):
        training.run_epoch(method)
    return training


def within_classes(training: Training) -> Tensor:
    """Which edges have their two ends in one predicted class."""
    with torch.no_grad():
        predicted = training.network.eval()(training.task.x, training.task.graph).argmax(1)
    within: Tensor = predicted[training.task.graph.edges].diff(dim=0).squeeze(0) == 0
    return within


def forest(graph: float, weight: float, **options: Any) -> Forest:
    method = method_of("forest", graph, weight, **options)
    assert isinstance(method, Forest)
    return method


def test_agreement_is_the_dot_product_of_the_predictions() -> None:
    graph = Graph.from_edge_index(both_ways([(0, 1), (0, 2), (1, 2)]), num_nodes=3)
    logits = torch.tensor([[0.0, 0.0], [0.0, 0.0], [math.log(3.0), 0.0]])  # ½ ½, ½ ½, ¾ ¼
    torch.testing.assert_close(edge_agreement(graph, logits.softmax(-1)), torch.tensor([0.5, 0.5, 0.5]))
    logits[1] = torch.tensor([0.0, math.log(3.0)])  # ¼ ¾
    torch.testing.assert_close(edge_agreement(graph, logits.softmax(-1)), torch.tensor([0.5, 0.5, 0.375]))


def test_support_is_what_an_edge_adds_to_the_certainty_of_all_predictions() -> None:
    training = after_stage_one(forest(0.4, 0.0))
    graph, network = training.task.graph, training.network.double().eval()
    training.task = replace(training.task, x=Features(training.task.x.dense.double()))
    logits, support = network_outputs_and_support(training)
    torch.testing.assert_close(logits, network_outputs(training, whole=True))
    named, small = logits.argmax(-1, keepdim=True), 1e-4

    def certainty(edge: int, score: float) -> Tensor:
        scores = torch.ones(graph.num_edges, dtype=torch.float64)
        scores[edge] = score
        with torch.no_grad():
            found = network(training.task.x, graph, scores, None)
        return found.log_softmax(-1).gather(1, named).sum()  # type: ignore[no-any-return]

    expected = [(certainty(e, 1 + small) - certainty(e, 1 - small)) / (2 * small) for e in range(graph.num_edges)]
    torch.testing.assert_close(support.double(), torch.stack(expected), rtol=1e-3, atol=1e-4)


def test_a_choice_leaves_the_training_as_it_was() -> None:
    training = after_stage_one(forest(0.4, 0.5))
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    ForestRule().choose(training, 36, seed=0, at=training.best)
    assert all(torch.equal(value, before[name]) for name, value in training.network.state_dict().items())
    assert all(parameter.grad is None for parameter in training.network.parameters())


def test_edges_are_cut_by_stage_ones_best_predictions() -> None:
    method = forest(0.4, 0.5, local=False, classes=False, wait=0.0)
    training = after_stage_one(method)
    best = training.best
    assert best is not None
    assert best.soft_weight_masks  # soft masks were trained, and count
    network = training.network
    state = {**best.state, **{name: best.state[name] * score for name, score in best.soft_weight_masks.items()}}
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    with torch.no_grad():
        logits = network.eval()(training.task.x, training.task.graph)
    network.load_state_dict(before)
    shares = logits.softmax(-1)
    graph = training.task.graph
    strength = (shares[graph.edges[0]] * shares[graph.edges[1]]).sum(-1)
    method.after_epoch(training)
    kept = training.masks.edges.kept
    assert int(kept.sum()) == 36
    assert components(graph, kept) == components(graph, torch.ones(60, dtype=torch.bool))
    # what is kept beyond the forest of 29 edges is stronger than all that was cut: at least seven such edges
    assert int((strength[kept] > strength[~kept].max()).sum()) >= 7
    for name, value in training.network.state_dict().items():  # the look left no trace but the cut
        assert torch.equal(value[value != 0], before[name][value != 0])


def test_edges_between_predicted_classes_go_first() -> None:
    training = after_stage_one(forest(0.4, 0.0))
    graph, within = training.task.graph, within_classes(training)
    count = int(within.sum())
    assert 0 < count < 60
    assert torch.equal(ForestRule(forests=0).choose(training, count, seed=0), within)
    kept = ForestRule(forests=0).choose(training, count - 5, seed=0)  # and then by standing
    assert not (kept & ~within).any()
    logits, support = network_outputs_and_support(training)
    standing = torch.stack(
        [
            edge_standing(graph.edges, one, 30, seed=0)
            for one in (edge_agreement(graph, logits.softmax(-1)), support)
        ]
    ).mean(0)
    assert standing[kept].min() >= standing[within & ~kept].max() - 1e-3
    blind = ForestRule(forests=0, classes=False).choose(training, count, seed=0)
    assert not torch.equal(blind, within)


def test_no_soft_edge_mask_is_trained() -> None:
    training = training_of()
    best = train(training, forest(0.4, 0.5))
    assert best.soft_edge_mask is None
    assert counts(best.masks) == (36, 60)


@pytest.mark.parametrize(("wait", "first"), [(0.0, 4), (0.25, 8), (0.5, 12), (0.99, 20)])
def test_the_graph_is_whole_until_predictions_have_become_good(wait: float, first: int) -> None:
    training = training_of()
    best = train(training, forest(0.4, 0.5, wait=wait))
    assert next(record.epoch for record in training.history if record.edges_dropped) == first
    assert best.epoch > first
    assert counts(best.masks) == (36, 60)


def test_edges_are_chosen_anew_after_each_interval_or_stay() -> None:
    revised, fixed = training_of(), training_of()
    train(revised, forest(0.4, 0.0))
    train(fixed, forest(0.4, 0.0, revise=False))
    assert [record.epoch for record in fixed.history if record.edges_dropped] == [12]  # two of five intervals later
    later = [record for record in revised.history if record.edges_grown]
    assert later
    assert all(record.epoch % 4 == 0 and record.edges_grown == record.edges_dropped for record in later)
    assert later[-1].epoch < revised.epoch  # a choice that nobody could train with is not made


@pytest.mark.parametrize("options", [{}, {"forests": None}, {"forests": 2}, {"local": False}, {"support": False}])
def test_components_hold_together_while_a_forest_fits(options: dict[str, object]) -> None:
    training = training_of()
    best = train(training, forest(0.5, 0.9, classes=False, **options))
    assert counts(best.masks) == (30, 12)
    assert components(training.task.graph, best.masks.edges.kept) == 1  # 29 edges would do


@pytest.mark.parametrize("options", [{}, {"forests": None}, {"forests": 2}, {"local": False}])
def test_what_hangs_together_within_a_predicted_class_still_does(options: dict[str, Any]) -> None:
    training = after_stage_one(forest(0.5, 0.0))
    graph = training.task.graph
    within = within_classes(training)
    size = 30 - components(graph, within)  # of the forest
    for count in (size, size + 3):
        kept = ForestRule(**options).choose(training, count, seed=0)
        assert int(kept.sum()) == count
        assert not (kept & ~within).any()
        assert components(graph, kept) == components(graph, within)
    assert components(graph, ForestRule(forests=0).choose(training, size, seed=0)) > components(graph, within)


@pytest.mark.parametrize("strength", ["features", "degree", "random"])
def test_strengths_that_know_nothing_of_the_network_choose_once(strength: str) -> None:
    training = training_of()
    best = train(training, forest(0.5, 0.0, strength=strength))
    assert counts(best.masks)[0] == 30
    assert components(training.task.graph, best.masks.edges.kept) == 1
    assert [record.epoch for record in training.history if record.edges_dropped] == [12]


def test_each_strength_keeps_what_it_calls_strong() -> None:
    training = training_of()
    graph, x = training.task.graph, torch.nn.functional.normalize(training.task.x.dense, dim=1)
    cosine = (x[graph.edges[0]] * x[graph.edges[1]]).sum(1)
    torch.testing.assert_close(edge_cosine(graph, training.task.x), cosine)
    degree = graph.degree[graph.edges].sum(0)
    for strength, value in (("features", cosine), ("degree", -degree)):
        rule = ForestRule(strength=strength, forests=0, local=False)
        kept = rule.choose(training, 30, seed=0)
        assert value[kept].min() >= value[~kept].max()
    first, again, other = (ForestRule(strength="random").choose(training, 30, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_an_edge_stands_as_it_does_with_the_end_that_ranks_it_better() -> None:
    # 0 has five edges, 5 two, 6 one
    graph = Graph.from_edge_index(both_ways([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (5, 6)]), num_nodes=7)
    strength = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    # 1, 2, 3 and 4 have one edge each, their strongest; 0–5 is the last of 0's, the first of 5's; 5–6 is all 6 has
    assert edge_standing(graph.edges, strength, 7).tolist() == [1.0] * 6
    square = Graph.from_edge_index(both_ways([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]), num_nodes=4)
    standing = edge_standing(square.edges, torch.tensor([0.9, 0.8, 0.1, 0.7, 0.2, 0.3]), 4)
    second, last = 1 - math.log(2) / math.log(3), 0.0
    # 0–1: first of 0; 0–2: second of 0, first of 2; 0–3: last of both; 1–2: second of 1 and of 2; 1–3: second of 3
    torch.testing.assert_close(standing, torch.tensor([1.0, 1.0, last, second, second, 1.0]))


def test_fastglt_takes_the_rule_as_an_option() -> None:
    ours, theirs = training_of(), training_of()
    best = train(ours, method_of("forest", 0.4, 0.5))
    same = train(theirs, method_of("fastglt", 0.4, 0.5, edge_score="forest"))
    assert best.masks == same.masks
    assert torch.equal(best.masks.edges.kept, same.masks.edges.kept)


def test_without_edges_to_cut_it_is_fastglt() -> None:
    ours, theirs = train(training_of(), forest(0.0, 0.9)), train(training_of(), method_of("fastglt", 0.0, 0.9))
    assert all(torch.equal(ours.state[name], theirs.state[name]) for name in ours.state)


def test_a_random_start_has_its_forest_too() -> None:
    training = training_of()
    assert counts(train(training, forest(0.4, 0.5, start="random")).masks) == (36, 60)
    assert training.history[0].graph_sparsity == 0  # and until then the whole graph
    assert training.history[0].weight_sparsity > 0


def test_a_choice_after_stage_1_and_the_cut_of_weights_are_one_event() -> None:
    training = training_of()
    train(training, forest(0.4, 0.5, wait=0.0))
    (cut,) = [record for record in training.history if record.epoch == BUDGET.oneshot_epochs]
    assert (cut.edges_dropped, cut.weights_dropped) == (24, 59)  # Ψ(0.5)·120 = 59.48


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wait": 1.0}, r"wait must lie in \[0, 1\) \(got 1\.0\)"),
        ({"forests": -1}, r"forests must not be negative \(got -1\)"),
        ({"strength": "feature"}, r"unknown strength \(got 'feature'\); did you mean 'features'\?"),
        ({"edge_score": "forrest"}, r"unknown edge score \(got 'forrest'\); did you mean 'forest'\?"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        forest(0.4, 0.5, **options)


def test_it_is_a_fastglt() -> None:
    assert issubclass(Forest, FastGLT)
    assert Forest().forest == ForestRule()


class TestEdgeRules:
    def test_a_random_share_is_drawn_first_and_the_rule_chooses_the_rest(self) -> None:
        training = training_of()
        whole, half, none = (
            ForestRule(random_share=share).choose(training, 30, seed=1) for share in (0.0, 0.5, 1.0)
        )
        assert [int(kept.sum()) for kept in (whole, half, none)] == [30, 30, 30]
        assert int((half & none).sum()) >= 15, "the same draw, as far as it goes"
        assert int((half & whole).sum()) > int((none & whole).sum())
        assert not ForestRule(random_share=1.0).needs

    def test_of_some_edges_alone(self) -> None:
        among = torch.arange(60) % 3 == 0
        for share in (0.0, 0.5, 1.0):
            kept = ForestRule(random_share=share).choose(training_of(), 8, seed=0, among=among)
            assert int(kept.sum()) == 8
            assert not bool(kept[~among].any())

    def test_a_trial_is_a_short_training_from_the_start(self) -> None:
        """By hand: the edges of one rule, four epochs from Θ0, the mean of the last two validation scores."""
        training = training_of()
        training.run_epoch(Hooks())
        scores = try_rules(training, {"random": ForestRule(random_share=1.0)}, 20, epochs=4, seed=0)
        edges = Mask(ForestRule(random_share=1.0).choose(training, 20, seed=0))
        twin = training_of(masks=Masks(edges=edges, weights=training.masks.weights))
        for _ in range(4):
            twin.run_epoch(Hooks())
        assert scores == {"random": pytest.approx((twin.history[2].val + twin.history[3].val) / 2)}

    def test_the_best_on_trial_chooses_and_the_ticket_says_so(self) -> None:
        method = method_of("forest", 0.5, 0.5, edge_rule="auto", trial_epochs=3)
        found = find(GCN(12, 8, 3), toy_task(), method, seed=0, isolated=False, dense=False).ticket
        findings = found.config["findings"]
        trials = findings["edge_rule_trials"]
        assert list(trials) == ["forest", "half", "random", "degree"]
        best = max(trials, key=lambda name: trials[name])
        assert findings["edge_rule"] == (best if trials[best] > trials["half"] + 0.005 else "half")
        named = method_of("forest", 0.5, 0.5, edge_rule=findings["edge_rule"])
        same = find(GCN(12, 8, 3), toy_task(), named, seed=0, isolated=False, dense=False).ticket
        assert same.masks.edges == found.masks.edges
        assert "findings" not in same.config

    def test_options_of_before_stay_as_they_were(self) -> None:
        assert not {"random_share", "edge_rule", "trial_epochs"} & set(method_of("forest", 0.5, 0.5).options)
        assert method_of("forest", 0.5, 0.5, edge_rule="half").options["edge_rule"] == "half"

    @pytest.mark.parametrize("wrong", [{"edge_rule": "best"}, {"trial_epochs": 0}, {"random_share": 2.0}])
    def test_what_makes_no_sense_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            method_of("forest", 0.5, 0.5, **wrong)


def test_a_robust_search_starts_without_the_most_suspicious_edges() -> None:
    task, added = poisoned(120)
    method = forest(0.2, 0.5, robust=True)
    network = GCN(task.x.num_features, 8, 3)
    training = Training(network, task, method.recipe, seed=0)
    method.begin(training)
    suspicion, first = training.method_state[SUSPICION], training.masks.edges.kept
    gone = int((~first).sum())
    assert gone == min(round(float(suspicion.sum())), round(0.2 * task.graph.num_edges))
    assert suspicion[~first].min() >= suspicion[first].max()
    assert added[(~first).numpy()].mean() > 0.6
    best = train(training, method)
    assert best.masks.edges.count == task.graph.num_edges - round(0.2 * task.graph.num_edges)
    assert not bool((best.masks.edges.kept & ~first).any())  # what was gone did not return
    assert best.findings["suspects"] == round(float(suspicion.sum()))


def test_a_robust_search_that_may_remove_little_removes_the_worst() -> None:
    task, _ = poisoned(120)
    method = forest(0.01, 0.0, robust=True)
    training = Training(GCN(task.x.num_features, 8, 3), task, method.recipe, seed=0)
    method.begin(training)
    count = task.graph.num_edges - round(0.01 * task.graph.num_edges)
    assert training.masks.edges.count == count
    chosen = method.choose_forest(training, interval=5)
    assert chosen is not None
    assert torch.equal(chosen, training.masks.edges.kept)


def test_robust_is_an_option_only_where_it_is_chosen() -> None:
    assert "robust" not in forest(0.2, 0.5).options
    assert forest(0.2, 0.5, robust=True).options["robust"] is True
    assert forest(0.0, 0.5, robust=True).needs == ()


def test_the_rule_sees_trusted_edges_alone() -> None:
    training = after_stage_one(forest(0.4, 0.0))
    seen = torch.ones(60, dtype=torch.bool)
    seen[::7] = False
    outputs, support = network_outputs_and_support(training, seen=seen)
    assert support[~seen].tolist() == [0.0] * int((~seen).sum())
    pruned = training.task.graph.prune(Mask(seen))
    with torch.no_grad():
        torch.testing.assert_close(outputs, training.network.eval()(training.task.x, pruned, None, None))
    rule = ForestRule()
    chosen = rule.choose(training, 30, seed=0, trusted=seen)
    assert int(chosen.sum()) == 30
    assert not bool((chosen & ~seen).any())
