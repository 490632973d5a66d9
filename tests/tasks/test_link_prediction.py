"""Link prediction: what is learnt from, what is held back, and how it is scored."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, kl_divergence
from torch.nn.functional import binary_cross_entropy

from fastglt import InputError
from fastglt.tasks import LinkPrediction, lookup, make_task
from fastglt.tasks.link_inputs import LeakWarning
from fastglt.tasks.metrics import HITS, hits_at, pair_roc_auc
from fastglt.tasks.options import options_of, read_options
from tests.tasks.links import NODES, link_data, link_task, link_tensors
from tests.tasks.test_pairs import as_set


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers).unsqueeze(1)


class TestHits:
    """By hand, and as OGB's evaluator writes it: positives above the K-th best negative."""

    LABELS = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0])
    OUTPUTS = column(5.0, 3.0, 2.0, -1.0, 4.0, 3.0, 0.0, -2.0)

    @pytest.mark.parametrize(("most", "share"), [(1, 0.25), (2, 0.25), (3, 0.75), (4, 1.0)])
    def test_ties_with_the_last_negative_that_counts_are_misses(self, most: int, share: float) -> None:
        assert hits_at(most)(self.OUTPUTS, self.LABELS) == share

    def test_fewer_negatives_than_counted_make_every_positive_a_hit(self) -> None:
        assert hits_at(5)(self.OUTPUTS, self.LABELS) == 1.0

    def test_without_positives_there_is_no_score(self) -> None:
        assert math.isnan(hits_at(1)(column(1.0), torch.tensor([0])))

    def test_auc_is_the_share_of_pairs_in_order(self) -> None:
        wins = [[a > b, a == b] for a in (5, 3, 2, -1) for b in (4, 3, 0, -2)]
        expected = sum(win + 0.5 * tie for win, tie in wins) / 16
        assert pair_roc_auc(self.OUTPUTS, self.LABELS) == pytest.approx(expected)


class TestParts:
    def test_the_graph_has_the_training_edges_alone(self) -> None:
        task = link_task()
        every, held = as_set(link_tensors()["edge_index"].T), as_set(torch.cat([task.val, task.test]))
        assert as_set(task.edge_targets) == every - held
        assert (len(task.edge_targets), len(task.val), len(task.test)) == (153, 9, 18)
        assert not (as_set(torch.cat([task.val_negatives, task.test_negatives])) & every)

    def test_data_and_tensors_give_the_same_task(self) -> None:
        one, two = link_task(split_seed=3), LinkPrediction.from_data(link_data(), split_seed=3)
        assert one.digests == two.digests
        assert one.digests != link_task().digests
        assert (one.options, link_task().options) == ({"split_seed": 3}, {})

    def test_message_data_is_what_the_graph_is_made_of(self) -> None:
        data = link_data()
        seen = LinkPrediction.message_data(data, split_seed=1)
        assert as_set(seen.edge_index.T) == as_set(link_task(split_seed=1).edge_targets)
        assert data.num_edges == 360

    def test_a_given_split_is_taken_as_it_is_and_hidden_from_models(self) -> None:
        pairs = torch.tensor([[0, 1], [11, 12]])
        names = ("val_pos", "val_neg", "test_pos", "test_neg")
        given = {f"{name}_edge_index": pairs for name in names}
        task = LinkPrediction.from_data(link_data(**given), metric="roc_auc")
        assert task.graph.num_edges == 180
        assert task.val.tolist() == [[0, 11], [1, 12]]
        assert set(LinkPrediction.message_data(link_data(**given)).to_dict()) == {"x", "edge_index"}

    def test_a_directed_graph_loses_both_arrows_of_a_pair(self) -> None:
        arrows = torch.cat([link_tensors()["edge_index"], torch.tensor([[0, 15], [39, 25]])], 1)
        task = LinkPrediction.from_tensors({**link_tensors(), "edge_index": arrows})
        assert task.graph.directed
        assert not as_set(task.edge_targets) & as_set(torch.cat([task.val, task.test]))
        told = LinkPrediction.from_tensors(link_tensors(), directed=True)
        assert told.graph.directed, "though each of its edges goes both ways"
        assert told.graph.num_edges == 2 * link_task().graph.num_edges

    @pytest.mark.parametrize(
        ("more", "reason"),
        [
            ({"val_pos_edge_index": torch.tensor([[0, 41], [1, 2]])}, "must lie in 0 … 39"),
            ({"val_pos_edge_index": torch.tensor([[0, 1, 2]])}, r"int64 tensor of shape \[2, pairs\]"),
            ({"val_pos_edge_index": torch.zeros(2, 0).long()}, "needs validation links"),
            ({"val_pos_edge_index": torch.tensor([[0], [1]])}, r"hits@50 needs 50 val pairs .* \(got 0\)"),
            ({"test_pos_edge_index": torch.tensor([[0], [1]])}, "must come with data.val_pos_edge_index"),
            ({"edge_index": torch.zeros(2, 0).long()}, r"\(got 0 edges\)"),
        ],
    )
    def test_what_cannot_be_learnt_is_refused(self, more: dict[str, Tensor], reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            LinkPrediction.from_tensors({**link_tensors(), **more})


def test_a_split_whose_links_carry_messages_is_told() -> None:
    """All of them: some may be edges already, as in a collaboration graph."""
    edges, others = torch.tensor([[0, 11], [1, 12]]), torch.tensor([[0, 11], [15, 39]])
    given = {f"{name}_edge_index": others for name in ("val_pos", "val_neg", "test_neg")}
    with pytest.warns(LeakWarning, match="every one of 2 test links is an edge of the graph"):
        LinkPrediction.from_data(link_data(**given, test_pos_edge_index=edges), metric="roc_auc")
    some = torch.cat([edges, others], 1)
    LinkPrediction.from_data(link_data(**given, test_pos_edge_index=some), metric="roc_auc")


class TestSteps:
    def test_one_step_has_every_edge_and_as_many_others(self) -> None:
        task = link_task()
        (step,) = task.steps(0)
        assert step.nodes is not None
        assert torch.equal(step.nodes[:153], task.edge_targets)
        assert (step.positives, len(step.nodes)) == (153, 306)
        assert not as_set(step.nodes[153:]) & as_set(task.edge_targets)

    def test_negatives_are_the_epochs_own(self) -> None:
        task = link_task()
        one, again, other = (task.steps(seed)[0].nodes for seed in (0, 0, 1))
        assert one is not None
        assert again is not None
        assert other is not None
        assert torch.equal(one, again)
        assert not torch.equal(one[153:], other[153:])

    def test_batches_cover_every_edge_once(self) -> None:
        task = link_task(batch=50)
        steps = task.steps(0)
        assert [step.positives for step in steps] == [50, 50, 50, 3]
        positives = torch.cat([step.nodes[: step.positives] for step in steps if step.nodes is not None])
        assert len(positives) == 153
        assert as_set(positives) == as_set(task.edge_targets)

    def test_the_loss_is_the_mean_cross_entropy(self) -> None:
        task, outputs = link_task(), torch.linspace(-2, 2, 306).unsqueeze(1)
        labels = torch.cat([torch.ones(153), torch.zeros(153)])
        expected = binary_cross_entropy(outputs.squeeze(1).sigmoid(), labels)
        torch.testing.assert_close(task.loss(outputs, task.steps(0)[0]), expected)


def test_evaluation_looks_at_each_part_in_its_place() -> None:
    """A network that knows the cliques is perfect; one that ranks a few negatives first is not."""
    task = link_task(metric="hits@10")

    def knows(pairs: Tensor | None) -> Tensor:
        assert pairs is not None
        return (pairs[:, :1] // 10 == pairs[:, 1:] // 10).float()

    found = task.evaluate(knows)
    assert (found.val, found.test) == (1.0, 1.0)
    turned = task.evaluate(lambda pairs: -knows(pairs))
    assert (turned.val, turned.test) == (0.0, 0.0)
    assert turned.val_loss > found.val_loss


def test_the_divergence_is_that_of_two_coins() -> None:
    student, teacher = torch.randn(50, 1), torch.randn(50, 1)
    expected = kl_divergence(Bernoulli(logits=teacher), Bernoulli(logits=student)).mean()
    torch.testing.assert_close(link_task().divergence(student, teacher), expected)


def test_views_for_methods() -> None:
    task, outputs = link_task(), column(2.0, -1.0)
    assert task.groups(outputs).tolist() == [1, 0]
    torch.testing.assert_close(task.distribution(outputs).sum(1), torch.ones(2))
    expected = torch.log(torch.sigmoid(torch.tensor(2.0))) + torch.log(torch.sigmoid(torch.tensor(1.0)))
    torch.testing.assert_close(task.certainty(outputs), expected)
    strength, predicted = task.agreement(outputs)
    torch.testing.assert_close(strength, torch.tensor([2.0, -1.0]).sigmoid())
    assert predicted.tolist() == [True, False]


def test_the_overview_is_half_edges_half_others_and_always_the_same() -> None:
    task = link_task()
    edges, others = task.overview[:153], task.overview[153:]
    assert as_set(edges) == as_set(task.edge_targets)
    assert len(others) == 153
    assert not as_set(others) & as_set(task.edge_targets)
    assert torch.equal(link_task().overview, task.overview)


class TestOptions:
    def test_they_are_read_in_their_types(self) -> None:
        texts = {"decoding": "dot", "batch": "64", "decoder_hidden": "none"}
        assert read_options(lookup("link"), texts) == {"decoding": "dot", "batch": 64, "decoder_hidden": None}
        assert options_of(LinkPrediction)["batch"].about.startswith("positives of a step")

    @pytest.mark.parametrize(
        ("task", "options", "reason"),
        [
            ("link", {"depth": 3}, "task 'link' has no option 'depth'"),
            ("link", {"batch": 0}, "batch must be at least 1"),
            ("link", {"batch": 1.5}, "batch must be a whole number"),
            ("link", {"decoder_hidden": 2.5}, "decoder_hidden must be a whole number"),
            ("node-classification", {"batch": 3}, "has no option 'batch'; it takes none"),
        ],
    )
    def test_wrong_ones_are_refused(self, task: str, options: dict[str, Any], reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            make_task(task, link_data(), options=options)


def test_metrics_are_named_as_ogb_names_them() -> None:
    assert [HITS[most].title for most in (10, 20, 50, 100)] == ["Hits@10", "Hits@20", "Hits@50", "Hits@100"]
    assert link_task().facts()["val_negatives"] == 180
    assert link_task().sizes()["test"] == "18 links among 180 other pairs"
    assert link_task().graph.num_nodes == NODES
