import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from fastglt import GCN, InputError, Ticket, Verdict, evaluate
from fastglt.fitting import restore_start
from fastglt.ticket import OtherFeaturesWarning
from fastglt.training import Training
from tests.toy_data import CLASSES, FEATURES, USER_MODELS, HandWritten, basic, quick_ticket, seeded, toy_data


@pytest.fixture(scope="module")
def user_ticket() -> Ticket:
    return quick_ticket(seeded(USER_MODELS["GraphSAGE"]), isolated=False)


def verdict(dense: list[float], ticket: list[float], margin: float = 0.01) -> Verdict:
    scores = {"dense_scores": tuple(dense), "ticket_scores": tuple(ticket)}
    return Verdict(seeds=tuple(range(len(dense))), margin=margin, **scores)


def test_non_inferiority_by_hand() -> None:
    # differences 0, 1 and 2 points, helped by 1: mean 2, standard error 1/sqrt(3), t = 3.464 with 2 degrees
    found = verdict([0.80, 0.80, 0.80], [0.80, 0.81, 0.82])
    assert found.p_value == pytest.approx(0.0371, abs=1e-4)


def test_a_clear_winner_and_a_clear_loser() -> None:
    won = verdict([0.80, 0.82, 0.81, 0.80], [0.81, 0.83, 0.81, 0.82])
    assert won.non_inferior
    assert won.plain_winning
    assert won.difference == pytest.approx(0.01)
    assert won.differences == pytest.approx((0.01, 0.01, 0.0, 0.02))
    lost = verdict([0.80, 0.82, 0.81, 0.80], [0.70, 0.71, 0.69, 0.70])
    assert not lost.non_inferior
    assert not lost.plain_winning


def test_the_two_rules_can_disagree() -> None:
    slightly_worse = verdict([0.800, 0.810, 0.820, 0.830], [0.799, 0.809, 0.819, 0.828])
    assert slightly_worse.non_inferior
    assert not slightly_worse.plain_winning
    noisy = verdict([0.80, 0.90, 0.70], [0.95, 0.70, 0.80])
    assert noisy.plain_winning
    assert not noisy.non_inferior


def test_equal_differences_need_no_division() -> None:
    assert verdict([0.5, 0.75], [0.5, 0.75]).p_value == 0.0
    assert verdict([0.5, 0.75], [0.25, 0.5]).p_value == 1.0
    assert verdict([0.5, 0.75], [0.5, 0.75], margin=0.0).p_value == 1.0


def test_one_seed_proves_nothing() -> None:
    single = verdict([0.8], [0.9])
    assert math.isnan(single.p_value)
    assert not single.non_inferior
    assert "one seed proves nothing" in str(single)


def test_what_people_read_is_in_per_cent_and_names_both_rules() -> None:
    assert str(verdict([0.80, 0.82, 0.81], [0.81, 0.82, 0.80])) == (
        "winning by the plain rule; not shown to be non-inferior (margin 1 points, p = 0.113): ticket "
        "81.00 ± 1.00 %, dense 81.00 ± 1.00 %, difference +0.00 points (90 % interval -1.69 to +1.69), n = 3 "
        "(test, alone from the same start)"
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seeds": (), "dense_scores": (), "ticket_scores": ()}, "one dense and one ticket score per seed"),
        ({"ticket_scores": (0.5, 0.5)}, r"per seed \(got \(1, 1, 2\)\)"),
        ({"margin": -0.1}, r"margin must be a fraction in \[0, 1\) \(got -0.1\)"),
        ({"margin": 1.0}, "margin must be a fraction"),
    ],
)
def test_a_verdict_checks_itself(fields: dict[str, Any], reason: str) -> None:
    given = {"seeds": (0,), "dense_scores": (0.5,), "ticket_scores": (0.5,)}
    with pytest.raises(InputError, match=reason):
        Verdict(**(given | fields))


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
    with pytest.raises(InputError, match="roc_auc needs two classes"):
        evaluate(by_auc, None, toy_data(), seeds=[0])
    assert evaluate(by_auc, None, toy_data(), seeds=[0], metric="accuracy").seeds == (0,)
