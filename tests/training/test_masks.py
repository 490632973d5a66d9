import pytest
import torch

from fastglt import InputError
from fastglt.masks import Mask, Masks
from fastglt.models import GCN
from fastglt.training.hooks import Hooks
from tests.helpers import drop, training_of
from tests.training.trainings import WIDTHS, some_masks


class TestMasks:
    def test_pruned_weights_and_their_moments_stay_exactly_zero(self) -> None:
        masks = some_masks()
        training = training_of(masks=masks)
        for _ in range(5):
            training.run_epoch(Hooks())
        for name, mask in masks.weights.items():
            weight = training.weights[name].detach()
            assert torch.equal(weight != 0, mask.kept)
            for moment in ("exp_avg", "exp_avg_sq"):
                assert torch.equal(training.optimizer.state[training.weights[name]][moment] != 0, mask.kept)

    def test_a_masked_network_trains_like_one_built_small(self) -> None:
        """Without hidden units 3–7, a network of eight is a network of three."""
        big, small = GCN(12, 8, 3, dropout=0.0), GCN(12, 3, 3, dropout=0.0)
        with torch.no_grad():
            small.layer1.weight.copy_(big.layer1.weight[:, :3])
            small.layer2.weight.copy_(big.layer2.weight[:3])
        columns, rows = torch.zeros(12, 8), torch.zeros(8, 3)
        columns[:, :3], rows[:3] = 1, 1
        weights = {"layer1.weight": Mask(columns), "layer2.weight": Mask(rows)}
        masked = training_of(network=big, masks=Masks(edges=drop(60, 3), weights=weights))
        shapes = {"layer1.weight": (12, 3), "layer2.weight": (3, 3)}
        full = Masks.full(60, shapes)
        plain = training_of(network=small, masks=Masks(edges=drop(60, 3), weights=full.weights))
        for _ in range(10):
            masked.run_epoch(Hooks())
            plain.run_epoch(Hooks())
        torch.testing.assert_close(masked.outputs(None), plain.outputs(None), rtol=1e-4, atol=1e-5)

    def test_a_mask_of_another_shape_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([60]), weights={"layer1.weight": Mask.full([8, 12])})
        with pytest.raises(InputError, match=r"'layer1.weight' must have its shape \(12, 8\) \(got \(8, 12\)\)"):
            training_of(masks=masks)

    def test_a_mask_of_too_few_edges_is_refused(self) -> None:
        masks = Masks(edges=Mask.full([59]), weights={})
        with pytest.raises(InputError, match=r"each of 60 elements \(got shape \(59,\)\)"):
            training_of(masks=masks)

    def test_revising_notes_what_went_and_what_returned(self) -> None:
        training = training_of(masks=some_masks())
        training.run_epoch(Hooks())
        first = torch.zeros(12, 8)
        first[0] = 1
        weights = {"layer1.weight": Mask(first), "layer2.weight": Mask.full([8, 3])}
        old = some_masks().weights
        kept_in_row = int(old["layer1.weight"].kept[0].sum())
        training.revise(Masks(edges=drop(60, 0, 1), weights=weights))
        record = training.history[-1]
        assert (record.edges_dropped, record.edges_grown) == (1, 4)
        assert record.weights_dropped == old["layer1.weight"].count - kept_in_row
        assert record.weights_grown == 8 - kept_in_row + 24 - old["layer2.weight"].count

    def test_the_graph_is_built_anew_only_if_its_edges_change(self) -> None:
        training = training_of(masks=some_masks())
        before = training.graph
        assert before is not training.task.graph
        training.apply(Masks(edges=drop(60, 0, 7, 20, 21, 59), weights=Masks.full(60, WIDTHS).weights))
        assert training.graph is before
        training.apply(Masks(edges=drop(60, 0, 7, 20, 21, 58), weights=training.masks.weights))
        assert training.graph is not before
        assert training.graph.num_edges == 55
        training.apply(Masks.full(60, WIDTHS))
        assert training.graph is training.task.graph
