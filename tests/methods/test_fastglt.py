from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask, Masks, flatten, unflatten
from fastglt.methods import Budget, FastGLT
from fastglt.models import GCN
from fastglt.tasks import NodeClassification
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, GRID, both_ways, counts, method_of, randn, training_of
from tests.toy_data import USER_MODELS, quick_ticket


def fastglt(graph: float, weight: float, *, budget: Budget = BUDGET, **options: Any) -> FastGLT:
    method = method_of("fastglt", graph, weight, budget=budget, **options)
    assert isinstance(method, FastGLT)
    return method


class TestTargets:
    @pytest.mark.parametrize(("sparsities", "kept"), GRID)
    @pytest.mark.parametrize("options", [{"ramp": 1.0}, {"start": "random"}, {"edge_score": "similarity"}])
    def test_the_ticket_has_exactly_the_target_counts(
        self, sparsities: tuple[float, float], kept: tuple[int, int], options: dict[str, Any]
    ) -> None:
        training = training_of()
        best = train(training, fastglt(*sparsities, **options))
        assert counts(best.masks) == kept
        assert counts(training.masks) == kept
        for name, mask in best.masks.weights.items():
            assert bool((best.state[name][~mask.kept] == 0).all())

    @pytest.mark.parametrize("options", [{}, {"ramp": 1.0}])
    def test_the_best_epoch_is_the_best_of_those_at_the_target(self, options: dict[str, Any]) -> None:
        training = training_of()
        best = train(training, fastglt(0.5, 0.95, **options))
        eligible = [
            record
            for record in training.history
            if record.stage != "oneshot" and (record.graph_sparsity, record.weight_sparsity) == (0.5, 0.95)
        ]
        winner = max(eligible, key=lambda record: (record.val, -record.val_loss, -record.epoch))
        assert best.epoch == winner.epoch
        assert (best.scores.val, best.scores.val_loss) == (winner.val, winner.val_loss)

    def test_the_default_ramp_trains_the_last_fifth_at_the_target(self) -> None:
        training = training_of()
        train(training, fastglt(0.5, 0.95))
        # 60 edges: Ψ leaves 30.26 → 30 at once; 120 weights: 112.87 → 113 of 114 gone until epoch 4 + 16
        at_target = [record.weight_sparsity == 0.95 for record in training.history]
        assert at_target[-4:] == [True] * 4
        assert not any(at_target[:12])

    def test_the_papers_ramp_reaches_the_target_only_after_the_last_epoch(self) -> None:
        training = training_of(network=GCN(12, 30, 3))  # 450 weights: 423.2 gone at once, 427.5 in the end
        best = train(training, fastglt(0.5, 0.95, ramp=1.0))
        *before, final = training.history
        assert all(record.weight_sparsity < 0.95 for record in before)
        assert (final.stage, final.epoch, before[-1].epoch) == ("final", 24, 24)
        assert best.epoch == 24
        assert best.masks.weights_kept == 450 - 428  # 427.5 rounds half to even


def changes(before: Mask, after: Mask) -> tuple[int, int]:
    """How many elements went and how many came."""
    return int((before.kept & ~after.kept).sum()), int((after.kept & ~before.kept).sum())


class TestHistory:
    def test_stages_have_names(self) -> None:
        training = training_of()
        train(training, fastglt(0.3, 0.5))
        assert [record.stage for record in training.history] == ["oneshot"] * 4 + ["denoise"] * 20

    def test_a_random_start_warms_up(self) -> None:
        training = training_of()
        train(training, fastglt(0.3, 0.5, start="random"))
        assert [record.stage for record in training.history] == ["warm-up"] * 4 + ["denoise"] * 20
        assert training.history[0].weight_sparsity == pytest.approx(59 / 120)  # Ψ(0.5)·120 = 59.48

    def test_swaps_are_noted_where_they_happen(self) -> None:
        training, seen = training_of(), [training_of().masks]
        train(training, fastglt(0.3, 0.5), lambda state: seen.append(state.masks))
        for record, before, after in zip(training.history, seen[:-1], seen[1:], strict=True):
            assert (record.edges_dropped, record.edges_grown) == changes(before.edges, after.edges)
            pairs = [(before.weights[name], after.weights[name]) for name in before.weights]
            gone, came = zip(*(changes(*pair) for pair in pairs), strict=True)
            assert (record.weights_dropped, record.weights_grown) == (sum(gone), sum(came))

    def test_swaps_follow_the_schedule(self) -> None:
        training = training_of()
        train(training, fastglt(0.5, 0.0))
        swaps = {
            record.epoch: (record.edges_dropped, record.edges_grown)
            for record in training.history
            if record.edges_dropped
        }
        # 30 of 60 edges go at once (Ψ(0.5)·60 = 29.7); then 0.3·(1 − μ/5) of 30 are swapped: 7.2, 5.4, 3.6, 1.8
        assert swaps == {4: (30, 0), 8: (7, 7), 12: (5, 5), 16: (3, 3), 20: (1, 1)}


class TestOneShotStage:
    def at_the_cut(self, method: FastGLT) -> tuple[Training, dict[str, Tensor], Tensor | None, dict[str, Tensor]]:
        """A training after the last one-shot epoch's cut, with the weights and scores of just before."""
        training = training_of()
        method.begin(training)
        for _ in range(method.budget.oneshot_epochs - 1):
            training.run_epoch(method)
            method.after_epoch(training)
        training.run_epoch(method)
        assert training.best is not None
        best, weights = training.best, {name: w.detach().clone() for name, w in training.weights.items()}
        method.after_epoch(training)
        return training, weights, best.soft_edge_mask, best.soft_weight_masks

    def test_the_smallest_soft_masks_of_the_best_epoch_go(self) -> None:
        training, _, soft_edge_mask, soft_weight_masks = self.at_the_cut(fastglt(0.5, 0.9))
        assert soft_edge_mask is not None
        kept_weights = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        for score, kept in (
            (soft_edge_mask, training.masks.edges.kept),
            (flatten(soft_weight_masks), kept_weights),
        ):
            assert float(score.abs()[kept].min()) >= float(score.abs()[~kept].max())
        # Ψ(0.5) = 0.4956 of 60 and Ψ(0.9) = 0.8912 of 120
        assert counts(training.masks) == (60 - 30, 120 - 107)

    def test_the_kept_weights_go_on_as_they_are(self) -> None:
        training, before, _, _ = self.at_the_cut(fastglt(0.5, 0.9))
        for name, mask in training.masks.weights.items():
            assert torch.equal(training.weights[name].detach(), before[name] * mask.kept)
        assert training.soft_weight_masks == {}
        assert training.soft_edge_mask is not None
        assert not training.optimizer.state

    def test_a_mask_with_target_zero_is_not_trained(self) -> None:
        training = training_of()
        fastglt(0.0, 0.5).begin(training)
        assert training.soft_edge_mask is None
        assert set(training.soft_weight_masks) == {"layer1.weight", "layer2.weight"}
        training = training_of()
        fastglt(0.5, 0.0).begin(training)
        assert training.soft_edge_mask is not None
        assert training.soft_weight_masks == {}


# Eight edges, in order 0–1, 0–2, 0–3, 0–4, 1–2, 3–4, 3–5, 4–5, and a network of eight weights.
EDGES = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4), (3, 5), (4, 5)]


def kept_of(*indices: int) -> Tensor:
    kept = torch.zeros(8, dtype=torch.bool)
    kept[list(indices)] = True
    return kept


def by_hand(edges: Sequence[int] = (0, 1, 6, 7), x: Tensor | None = None) -> Training:
    """In the denoising stage, with half of the edges and of the weights, all numbers chosen."""
    nodes = torch.arange(6)
    task = NodeClassification(
        graph=Graph.from_edge_index(both_ways(EDGES), num_nodes=6),
        x=Features(randn(6, 2) if x is None else x),
        y=nodes % 2,
        train=nodes[:2],
        val=nodes[2:4],
        test=nodes[4:],
    )
    training = Training(GCN(2, 2, 2), task, BUDGET.recipe, seed=0)
    training.begin_stage("denoise", soft_edges=True, sum_gradients=True, target=(4, 4))
    weights = unflatten(kept_of(0, 1, 4, 5), training.weights)
    training.apply(Masks(edges=Mask(kept_of(*edges)), weights={n: Mask(w) for n, w in weights.items()}))
    score = torch.tensor([0.9, -0.1, 7.0, 7.0, 7.0, 7.0, 0.2, -0.5])  # of 0 1 6 7: noisy 1, then 6
    values = torch.tensor([0.5, -0.05, 0.0, 0.0, 0.3, -0.9, 0.0, 0.0])  # noisy: 1, then 4
    gradients = torch.tensor([9.0, 9.0, 0.1, 0.4, 9.0, 9.0, 0.2, 0.3])  # potential: 3, then 7; the 9s are kept
    assert training.soft_edge_mask is not None
    with torch.no_grad():
        training.soft_edge_mask.copy_(score)
        for name, part in unflatten(values, training.weights).items():
            training.weights[name].copy_(part)
        for name, part in unflatten(gradients, training.weights).items():
            training.gradient_sum[name].copy_(part)
    return training


class TestDenoise:
    # After interval 1 of 5: 0.7·(4/5)·4 = 2.24, so 2 edges and 2 weights are swapped; the counts stay at 4 of 8.

    def denoised(self, edges: Sequence[int] = (0, 1, 6, 7), **options: Any) -> Training:
        training = by_hand(edges)
        fastglt(0.5, 0.5, swap_fraction=0.7, **options).denoise(training, interval=1)
        return training

    def test_small_scores_go_and_low_degrees_return(self) -> None:
        # Kept: 0–1, 0–2, 3–5, 4–5, so degrees 2 1 1 1 1 2. Pruned: 0–3 and 0–4 have 1.5, 1–2 and 3–4 have 1.
        assert torch.equal(self.denoised().masks.edges.kept, kept_of(0, 7, 4, 5))

    def test_degrees_are_those_of_the_sparse_graph(self) -> None:
        # Kept: 0–1, 0–2, 0–3, 0–4, so 3–5 and 4–5 have 0.5, 1–2 and 3–4 have 1; on the whole graph 1–2 is lowest.
        assert torch.equal(self.denoised(edges=(0, 1, 2, 3)).masks.edges.kept, kept_of(2, 3, 6, 7))

    def test_similarity_chooses_otherwise(self) -> None:
        # The neighbours' d^-1/2 average 1 at 0 and 5, 1/√2 elsewhere: 0–3 and 0–4 have 1/√2, the others 1/2.
        assert torch.equal(self.denoised(edge_score="similarity").masks.edges.kept, kept_of(0, 7, 2, 3))

    def test_a_regrown_edge_starts_at_the_mean_of_the_kept_scores(self) -> None:
        training = self.denoised()
        assert training.soft_edge_mask is not None
        expected = [0.9, -0.1, 7, 7, 0.125, 0.125, 0.2, -0.5]  # (0.9 − 0.1 + 0.2 − 0.5) / 4
        assert training.soft_edge_mask.tolist() == pytest.approx(expected)

    def test_small_weights_go_and_large_gradients_return(self) -> None:
        training = self.denoised()
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert torch.equal(kept, kept_of(0, 5, 3, 7))

    def test_weights_of_a_faint_feature_have_little_effect(self) -> None:
        # The first feature has a fifth of the mean norm: its 0.5 and 0.05 count 0.1 and 0.01 beside 0.3 and 0.9.
        training = by_hand(x=torch.tensor([[1.0, 9.0]]).repeat(6, 1))
        fastglt(0.5, 0.5, swap_fraction=0.7, weight_score="effect").denoise(training, interval=1)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert torch.equal(kept, kept_of(4, 5, 3, 7))

    def test_a_regrown_weight_starts_at_zero(self) -> None:
        values = flatten(self.denoised().weights).detach()
        assert torch.equal(values, torch.tensor([0.5, 0, 0, 0, 0, -0.9, 0, 0]))

    def test_gradients_are_summed_anew(self) -> None:
        assert bool((flatten(self.denoised().gradient_sum) == 0).all())

    def test_the_last_interval_only_drops(self) -> None:
        training = by_hand()
        fastglt(0.5, 0.75, swap_fraction=0.7).denoise(training, interval=5)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert torch.equal(kept, kept_of(0, 5))
        assert torch.equal(training.masks.edges.kept, kept_of(0, 1, 6, 7))

    def test_swapping_nothing_changes_nothing(self) -> None:
        training = by_hand()
        fastglt(0.5, 0.5, swap_fraction=0.0).denoise(training, interval=1)
        assert torch.equal(training.masks.edges.kept, kept_of(0, 1, 6, 7))


def test_what_returns_in_a_real_run_starts_afresh() -> None:
    """Weights at zero with no Adam moments, edges at the mean of those kept before, also without moments."""
    training = training_of()
    before = [training.masks]
    regrown = {"edges": 0, "weights": 0}

    def check(state: Training) -> None:
        old, new = before[-1], state.masks
        before.append(new)
        for name, mask in new.weights.items():
            back = mask.kept & ~old.weights[name].kept
            regrown["weights"] += int(back.sum())
            assert bool((state.weights[name][back] == 0).all())
            for moment in moments(state, state.weights[name]):
                assert bool((moment[back | ~mask.kept] == 0).all())
        back = new.edges.kept & ~old.edges.kept
        regrown["edges"] += int(back.sum())
        if bool(back.any()):
            assert state.soft_edge_mask is not None
            assert bool((state.soft_edge_mask[back] == state.soft_edge_mask[old.edges.kept].mean()).all())
            for moment in moments(state, state.soft_edge_mask):
                assert bool((moment[back | ~new.edges.kept] == 0).all())

    train(training, fastglt(0.5, 0.8), check)
    assert min(regrown.values()) > 5


def moments(training: Training, parameter: Tensor) -> list[Tensor]:
    state = training.optimizer.state.get(parameter, {})
    return [state[key] for key in ("exp_avg", "exp_avg_sq") if key in state]


class TestOptions:
    @pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
    def test_effect_is_known_of_every_backbone(self, model: str) -> None:
        by_size, by_effect = (
            quick_ticket(model, method="forest", weight_score=score, budget=BUDGET) for score in ("size", "effect")
        )
        assert by_effect.masks.weights_kept == by_size.masks.weights_kept
        assert by_effect.masks.weights != by_size.masks.weights
        assert by_effect.config["options"]["weight_score"] == "effect"

    def test_of_a_users_model_it_is_not(self) -> None:
        seen: list[str] = []
        with pytest.raises(InputError, match=r"weight_score must be size for a model of your own \(got effect\)"):
            quick_ticket(
                USER_MODELS["GCN"](),
                weight_score="effect",
                distill=1.0,
                progress=lambda phase, *_: seen.append(phase),
            )
        assert seen == [], "before the teacher is trained"
        assert quick_ticket(USER_MODELS["GCN"](), weight_score="effect", weight_sparsity=0.0).graph_sparsity == 0.3

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"start": "rand"}, r"unknown start \(got 'rand'\); did you mean 'random'\? Known: oneshot, random"),
            ({"edge_score": "degre"}, r"unknown edge score \(got 'degre'\); did you mean 'degree'\?"),
            ({"weight_score": "effects"}, r"unknown weight score \(got 'effects'\); did you mean 'effect'\?"),
            ({"swap_fraction": 2.0}, r"swap_fraction must lie in \[0, 1\] \(got 2.0\)"),
            ({"decay": -1.0}, r"decay must be positive \(got -1.0\)"),
            ({"ramp": 0.0}, r"ramp must lie in \(0, 1\] \(got 0.0\)"),
            (
                {"tau": 0.3},
                r"method 'fastglt' has no option 'tau'; it takes decay, edge_score, ramp, start, swap",
            ),
        ],
    )
    def test_wrong_options_are_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            fastglt(0.1, 0.1, **options)

    def test_options_are_told_without_targets_and_budget(self) -> None:
        assert fastglt(0.1, 0.1).options == {
            "start": "oneshot",
            "swap_fraction": 0.3,
            "decay": 1.0,
            "edge_score": "degree",
            "ramp": 0.8,
        }
