"""Trainings, paired by seed, from the same start."""

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from fastglt import GCN, InputError, Ticket, evaluate, find_ticket
from fastglt.judge.evaluate import Contest, seeds_matter
from fastglt.judge.rounds import Ledger
from fastglt.methods import METHODS, Budget
from fastglt.tasks import NodeClassification
from fastglt.tickets.networks import fresh_start, restore_start
from fastglt.tickets.phases import PhaseResult, teacher_of, train_fixed
from fastglt.tickets.ticket import OtherFeaturesWarning
from fastglt.training.loop import Training
from tests.toy_data import (
    CLASSES,
    FEATURES,
    QUICK,
    USER_MODELS,
    HandWritten,
    TakesData,
    basic,
    quick_ticket,
    seeded,
    toy_data,
)


@pytest.fixture(scope="module")
def user_ticket() -> Ticket:
    return quick_ticket(seeded(USER_MODELS["GraphSAGE"]), isolated=False)


def contest(ticket: Ticket, model: Any = None, **options: Any) -> Contest:
    return Contest.prepare(ticket, model, NodeClassification.from_data(toy_data()), **options)


def test_dense_and_ticket_are_paired_by_seed(ticket: Ticket) -> None:
    started: dict[str, dict[str, torch.Tensor]] = {}

    def progress(phase: str, training: Training, epochs: int) -> None:
        if training.epoch == 1:
            started[phase] = {
                "seed": torch.tensor(training.seed),
                "kept": torch.tensor(training.masks.weights_kept),
            }

    several = evaluate(ticket, None, toy_data(), seeds=[5, 3], progress=progress)
    phases = ["dense, seed 5", "ticket, seed 5", "dense, seed 3", "ticket, seed 3"]
    assert list(started) == phases
    assert [int(started[phase]["seed"]) for phase in phases] == [5, 5, 3, 3]
    assert [int(started[phase]["kept"]) for phase in phases] == [72, 36, 72, 36]
    assert several.seeds == (5, 3)
    for place, seed in enumerate((5, 3)):
        alone = evaluate(ticket, None, toy_data(), seeds=[seed])
        assert alone.dense_scores == several.dense_scores[place : place + 1]
        assert alone.ticket_scores == several.ticket_scores[place : place + 1]


@pytest.mark.parametrize("name", USER_MODELS)
def test_users_models_are_judged_from_the_tickets_start(name: str) -> None:
    model = seeded(USER_MODELS[name])
    found = quick_ticket(model, isolated=True, seed=1)
    same = evaluate(found, model, toy_data(), seeds=[1])
    assert same.ticket_scores == (found.scores["isolated_test"],)
    others_weights = seeded(USER_MODELS[name], seed=7)
    assert evaluate(found, others_weights, toy_data(), seeds=[1]) == same


def test_the_start_has_the_initial_weights(user_ticket: Ticket) -> None:
    network, masks = restore_start(user_ticket, seeded(USER_MODELS["GraphSAGE"], seed=8))
    start = {name.removeprefix("module."): value for name, value in network.state_dict().items()}
    assert all(torch.equal(start[name], value) for name, value in user_ticket.initial.items())
    assert set(masks.weights) == set(network.prunable)


@pytest.mark.parametrize("model", [None, "gcn", GCN(FEATURES, 8, CLASSES), GCN(FEATURES, 8, CLASSES, seed=5)])
def test_a_backbones_ticket_needs_no_model(ticket: Ticket, model: Any) -> None:
    assert len(evaluate(ticket, model, toy_data(), seeds=[0]).seeds) == 1


@pytest.mark.parametrize(
    ("model", "got"),
    [("gat", "'gat'"), (GCN(FEATURES, 9, CLASSES), "GCN"), (nn.Linear(2, 2), "Linear"), (basic(pyg.GCN), "GCN")],
)
def test_a_backbones_ticket_refuses_another_model(ticket: Ticket, model: Any, got: str) -> None:
    with pytest.raises(InputError, match=rf"belongs to fastglt's own gcn; .*\(got {got}\)"):
        evaluate(ticket, model, toy_data(), seeds=[0])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (None, r"belongs to a user's model, .*GraphSAGE; pass that model \(got none\)"),
        ("gcn", r"\(got 'gcn'\)"),
        (GCN(FEATURES, 8, CLASSES), r"\(got GCN\)"),
        (basic(pyg.GCN), r"must be the one the ticket was found with, .*GraphSAGE \(got GCN\)"),
        (seeded(HandWritten), r"\(got HandWritten\)"),
        (pyg.GraphSAGE(FEATURES, 9, 2, CLASSES), "found with, .*size mismatch"),
        (pyg.GraphSAGE(FEATURES, 8, 1, CLASSES), "found with, .*prunable must name parameters"),
    ],
)
def test_a_users_ticket_refuses_another_model(user_ticket: Ticket, model: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        evaluate(user_ticket, model, toy_data(), seeds=[0])


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_must_differ_and_be_there(ticket: Ticket, seeds: list[int]) -> None:
    with pytest.raises(InputError, match="at least one seed, and none twice"):
        evaluate(ticket, None, toy_data(), seeds=seeds)


@pytest.mark.parametrize("seeds", ["01", [0.5, 2], [-1, 2], [2**63]])
def test_seeds_are_whole_numbers(ticket: Ticket, seeds: Any) -> None:
    with pytest.raises(InputError, match="seeds must"):
        evaluate(ticket, None, toy_data(), seeds=seeds)


def test_seeds_may_be_numpys(ticket: Ticket) -> None:
    verdict = evaluate(ticket, None, toy_data(), seeds=np.arange(2))
    assert json.loads(json.dumps(verdict.as_dict()))["seeds"] == [0, 1]


def test_another_graph_or_other_features(ticket: Ticket) -> None:
    loops = toy_data(loops=True)
    with pytest.raises(InputError, match="another graph"):
        evaluate(ticket, None, loops, seeds=[0])
    assert evaluate(ticket, None, loops, seeds=[0], other_graph=True).seeds == (0,)
    wide = toy_data()
    wide.x = wide.x.repeat(1, 2)
    with pytest.warns(OtherFeaturesWarning), pytest.raises(InputError, match=r"must take 12 features \(got 6\)"):
        evaluate(ticket, None, wide, seeds=[0])


def test_the_metric_is_the_tickets(ticket: Ticket) -> None:
    by_auc = replace(ticket, config={**ticket.config, "metric": "roc_auc"})
    data = toy_data()
    data.y = torch.where(data.val_mask, 1, data.y)
    with pytest.raises(InputError, match=r"roc_auc needs .* among the val nodes"):
        evaluate(by_auc, None, data, seeds=[0])
    assert evaluate(by_auc, None, toy_data(), seeds=[0], metric="accuracy").seeds == (0,)


@pytest.mark.parametrize("rule", [{"margin": -1}, {"level": 0.7}])
def test_a_rule_is_refused_before_anything_is_trained(ticket: Ticket, rule: dict[str, Any]) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("trained")

    with pytest.raises(InputError, match="must lie in"):
        evaluate(ticket, None, toy_data(), seeds=[0], progress=never, **rule)


@pytest.mark.parametrize("method", METHODS)
def test_the_searchs_weights_score_as_the_search_said(method: str) -> None:
    options: dict[str, Any] = {"round_epochs": 2} if method in ("ugs", "wdglt", "ace") else {}
    found = find_ticket(
        "gcn",
        toy_data(),
        graph_sparsity=0.3,
        weight_sparsity=0.5,
        method=method,
        hidden=8,
        budget=QUICK,
        isolated=False,
        **options,
    )
    assert contest(found).search_scores() == found.scores


@pytest.mark.parametrize("name", USER_MODELS)
def test_so_do_those_of_users_models(name: str) -> None:
    model = seeded(USER_MODELS[name])
    found = quick_ticket(model, isolated=False)
    assert found.soft_edge_mask is not None
    assert contest(found, model).search_scores() == found.scores


def test_the_edges_scores_are_not_idle(ticket: Ticket) -> None:
    assert ticket.soft_edge_mask is not None
    upside_down = replace(ticket, soft_edge_mask=-3 * ticket.soft_edge_mask)
    found = contest(upside_down).search_scores()
    assert found["search_val"] != ticket.scores["search_val"]
    assert found["search_unweighted_val"] == ticket.scores["search_unweighted_val"]
    assert (
        contest(replace(ticket, soft_edge_mask=None)).search_scores()["search_test"]
        == found["search_unweighted_test"]
    )


class Remembers(Ledger):
    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def recall(self, settings: dict[str, Any]) -> float | None:
        return self.known.get(str(sorted(settings.items())))

    def keep(self, settings: dict[str, Any], result: PhaseResult) -> None:
        self.known[str(sorted(settings.items()))] = result.best.scores.test


def trained(contest: Contest, seeds: list[int], ledger: Ledger) -> tuple[Any, list[str]]:
    phases: list[str] = []

    def progress(phase: str, training: Training, epochs: int) -> None:
        if training.epoch == epochs:
            phases.append(phase)

    return contest.verdict(seeds, ledger=ledger, progress=progress), phases


def test_what_is_remembered_is_not_trained_again(ticket: Ticket) -> None:
    ledger = Remembers()
    first, phases = trained(contest(ticket), [0, 1], ledger)
    assert phases == ["dense, seed 0", "ticket, seed 0", "dense, seed 1", "ticket, seed 1"]
    assert len(ledger.known) == 4
    assert trained(contest(ticket), [0, 1], ledger) == (first, [])
    assert trained(contest(ticket), [1, 2], ledger)[1] == ["dense, seed 2", "ticket, seed 2"]


def test_tickets_with_one_start_share_their_dense_twins(ticket: Ticket) -> None:
    ledger = Remembers()
    trained(contest(ticket), [0], ledger)
    sparser = quick_ticket(isolated=False, weight_sparsity=0.75)
    assert trained(contest(sparser), [0], ledger)[1] == ["ticket, seed 0"]
    longer = replace(QUICK, denoise_epochs=5)
    for other in (quick_ticket(isolated=False, budget=longer), quick_ticket(isolated=False, seed=1)):
        assert trained(contest(other), [0], ledger)[1] == ["dense, seed 0", "ticket, seed 0"]
    assert trained(contest(ticket, fresh_init=True), [0], ledger)[1] == ["dense, seed 0", "ticket, seed 0"]


def starts(ticket: Ticket, model: Any, seeds: list[int], **options: Any) -> list[str]:
    """The digest of the initial weights of each training."""
    found: list[str] = []

    class Looks(Ledger):
        def recall(self, settings: dict[str, Any]) -> float | None:
            found.append(settings["initial"])
            return None

    contest(ticket, model, **options).verdict(seeds, ledger=Looks())
    return found


def test_fresh_starts_are_paired_and_new_for_each_seed(ticket: Ticket) -> None:
    own = starts(ticket, None, [0, 1])
    assert len(set(own)) == 1
    fresh = starts(ticket, None, [0, 1], fresh_init=True)
    assert (fresh[0], fresh[2]) == (fresh[1], fresh[3])
    assert len({*fresh, *own}) == 3, "even with the search's own seed"
    assert starts(ticket, None, [0, 1], fresh_init=True) == fresh


def test_a_users_model_draws_a_fresh_start_itself(user_ticket: Ticket) -> None:
    model = seeded(USER_MODELS["GraphSAGE"], seed=4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    fresh = starts(user_ticket, model, [0, 1], fresh_init=True)
    assert torch.equal(torch.rand(1), expected), "the caller's random numbers go on"
    assert len(set(fresh)) == 2
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert evaluate(user_ticket, model, toy_data(), seeds=[3], fresh_init=True) == evaluate(
        user_ticket, seeded(USER_MODELS["GraphSAGE"], seed=5), toy_data(), seeds=[3], fresh_init=True
    )


def test_whatever_a_fresh_start_draws_from_the_seed_decides() -> None:
    class DrawsElsewhere(HandWritten):
        def reset_parameters(self) -> None:
            drawn = np.random.rand(*self.weight.shape) + random.random()  # noqa: NPY002
            self.weight = torch.nn.Parameter(torch.from_numpy(drawn).float())

    model, data = seeded(DrawsElsewhere), toy_data()
    ticket = quick_ticket(model, data)
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    one, two = (evaluate(ticket, model, data, seeds=[0, 1], fresh_init=True) for _ in range(2))
    assert one == two
    assert random.getstate() == states[0]
    np.testing.assert_equal(np.random.get_state(), states[1])  # noqa: NPY002


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (TakesData, r"fresh_init needs a model with reset_parameters\(\) \(got TakesData, without\)"),
        (HandWritten, r"must draw every weight matrix anew \(got 'weight' unchanged\)"),
    ],
)
def test_a_model_that_cannot_start_afresh_is_refused(build: Any, reason: str) -> None:
    model = seeded(build)
    found = quick_ticket(model, isolated=False)
    with pytest.raises(InputError, match=reason):
        evaluate(found, model, toy_data(), seeds=[0], fresh_init=True)


def test_a_fresh_backbone_has_the_same_shape() -> None:
    network = GCN(FEATURES, 8, CLASSES, dropout=0.25, seed=3)
    fresh = fresh_start(network, 3)
    assert {**fresh.spec, "seed": 3} == network.spec
    assert not torch.equal(fresh.get_parameter("layer1.weight"), network.get_parameter("layer1.weight"))


class TestDistilled:
    @pytest.fixture
    def ticket(self) -> Ticket:
        return quick_ticket(distill=2.0)

    def test_three_sides_and_two_verdicts(self, ticket: Ticket) -> None:
        first, phases = trained(contest(ticket), [0], Ledger())
        assert phases == ["dense, seed 0", "ticket, seed 0", "dense distilled, seed 0"]
        assert first.dense_scores == (ticket.scores["teacher_test"],)
        assert first.ticket_scores == (ticket.scores["isolated_test"],)
        second = first.distilled
        assert second is not None
        assert (second.seeds, second.ticket_scores) == (first.seeds, first.ticket_scores)
        assert (first.against, second.against, second.distilled) == ("dense", "dense_distilled", None)

    def test_the_second_opponent_is_a_dense_network_taught_in_the_same_way(self, ticket: Ticket) -> None:
        task, budget = NodeClassification.from_data(toy_data()), Budget(**ticket.config["budget"])
        network, _ = restore_start(ticket, None)
        for seed in (0, 3):
            dense = train_fixed("dense", network, task, budget, seed=seed)
            teacher = teacher_of(dense.best, network, task, budget, seed=seed)
            taught = train_fixed("taught", network, task, budget, seed=seed, teacher=teacher)
            verdict = evaluate(ticket, None, toy_data(), seeds=[seed])
            assert verdict.distilled is not None
            assert verdict.distilled.dense_scores == (taught.best.scores.test,)
            assert verdict.dense_scores == (dense.best.scores.test,)

    def test_the_plain_side_is_shared_with_plain_tickets_and_nothing_else(self, ticket: Ticket) -> None:
        ledger = Remembers()
        trained(contest(quick_ticket(isolated=False)), [0], ledger)
        again, phases = trained(contest(ticket), [0], ledger)
        assert phases == ["teacher, seed 0", "ticket, seed 0", "dense distilled, seed 0"]  # only its score is known
        assert len(ledger.known) == 4
        assert trained(contest(ticket), [0], ledger) == (again, [])
        assert again == evaluate(ticket, None, toy_data(), seeds=[0])

    def test_fresh_starts_have_teachers_of_their_own(self, ticket: Ticket) -> None:
        fresh = starts(ticket, None, [0, 1], fresh_init=True)
        assert (len(fresh), len(set(fresh))) == (6, 2)


def test_seeds_are_several() -> None:
    with pytest.raises(InputError, match=r"seeds must be several numbers, as in range\(10\) \(got 3\)"):
        evaluate(quick_ticket("gcn", isolated=False), None, toy_data(), seeds=3)  # type: ignore[arg-type]


class TestIdenticalTrainings:
    """A model that draws no random numbers is trained in one and the same way by every seed."""

    def test_they_are_found_out_and_decide_nothing(self, user_ticket: Ticket) -> None:
        model, trained = seeded(USER_MODELS["GraphSAGE"]), set[str]()
        verdict = evaluate(
            user_ticket, model, toy_data(), seeds=range(4), progress=lambda phase, *_: trained.add(phase)
        )
        assert trained == {"dense, seed 0", "ticket, seed 0"}  # the others would be the same
        assert (verdict.n, verdict.identical, verdict.outcome, verdict.non_inferior) == (
            4,
            True,
            "undecided",
            False,
        )
        assert "4 seeds gave one and the same training" in verdict.sentence
        assert "fresh_init" in str(verdict)
        assert verdict.as_dict()["identical_trainings"] is True
        assert verdict.as_dict()["p_value"] is None

    def test_fresh_starts_differ(self, user_ticket: Ticket) -> None:
        model = seeded(USER_MODELS["GraphSAGE"])
        verdict = evaluate(user_ticket, model, toy_data(), seeds=range(2), fresh_init=True)
        assert not verdict.identical
        assert "identical_trainings" not in verdict.as_dict()

    @pytest.mark.parametrize(("dropout", "matter"), [(0.0, False), (0.5, True)])
    def test_dropout_tells_seeds_apart(self, dropout: float, matter: bool) -> None:
        task = NodeClassification.from_data(toy_data())
        assert seeds_matter(GCN(FEATURES, 8, CLASSES, dropout=dropout), task) is matter

    def test_one_seed_is_one_training(self, user_ticket: Ticket) -> None:
        assert not evaluate(user_ticket, seeded(USER_MODELS["GraphSAGE"]), toy_data(), seeds=[0]).identical
