"""What masks have done to a graph and to a network, worked out by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastglt.analysis.effects import Homophily, Matrix, Units, describe_graph, describe_weights
from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models import GAT, GCN, GIN
from tests.helpers import both_ways, columns, drop, house

# Edges 01, 02, 03, 04, 12, 34, 45; node 6 is alone, its label unknown; edges 03 and 04 join two classes.
LABELS = torch.tensor([0, 0, 0, 1, 1, 1, -1])


class TestGraph:
    def test_undirected(self) -> None:
        found = describe_graph(house(), drop(7, 2, 3, 6), LABELS)  # without 03, 04 and 45
        assert (found.nodes, found.edges_before, found.edges_after) == (7, 7, 4)
        assert (found.components_before, found.largest_before) == (2, 6)
        assert (found.components_after, found.largest_after) == (4, 3)  # 012, 34, 5, 6
        assert (found.isolated_before, found.isolated_after, found.newly_isolated) == (1, 2, 1)
        assert found.degree_before.counts == (1, 1, 4, 1)  # degrees 4 2 2 2 3 1 0 in bins from 0, 1, 2, 4
        assert found.degree_after.counts == (2, 2, 3, 0)  # degrees 2 2 2 1 1 0 0
        assert found.degree_before.mean == pytest.approx(14 / 7)
        assert found.degree_after.mean == pytest.approx(8 / 7)
        assert found.homophily == Homophily(whole=5 / 7, kept=1.0, pruned=1 / 3)

    def test_directed(self) -> None:
        """Arrows 01, 03, 10, 12, 20, 40, 54; without 40, nodes 4 and 5 are on their own."""
        found = describe_graph(house(directed=True), drop(7, 5), LABELS)
        assert (found.components_before, found.components_after) == (2, 3)
        assert (found.largest_before, found.largest_after) == (6, 4)
        assert found.degree_before.quantiles["max"] == 5  # node 0: three in, two out
        assert found.degree_after.quantiles["max"] == 4
        assert found.homophily == Homophily(whole=5 / 7, kept=5 / 6, pruned=0.0)

    def test_nothing_pruned(self) -> None:
        found = describe_graph(house(), Mask.full([7]), LABELS)
        assert found.degree_before == found.degree_after
        assert (found.components_before, found.newly_isolated) == (found.components_after, 0)
        assert found.homophily == Homophily(whole=5 / 7, kept=5 / 7, pruned=None)

    def test_everything_pruned(self) -> None:
        found = describe_graph(house(), Mask(torch.zeros(7)), LABELS)
        assert (found.edges_after, found.components_after, found.largest_after) == (0, 7, 1)
        assert (found.isolated_after, found.newly_isolated) == (7, 6)
        assert found.homophily == Homophily(whole=5 / 7, kept=None, pruned=5 / 7)

    def test_without_labels(self) -> None:
        assert describe_graph(house(), Mask.full([7])).homophily is None
        unknown = describe_graph(house(), Mask.full([7]), torch.full((7,), -1)).homophily
        assert unknown == Homophily(whole=None, kept=None, pruned=None)

    def test_an_edge_with_an_unknown_end_is_left_out(self) -> None:
        labels = LABELS.clone()
        labels[4] = -1  # edges 04, 34 and 45 are unknown
        assert describe_graph(house(), Mask.full([7]), labels).homophily == Homophily(
            whole=3 / 4, kept=3 / 4, pruned=None
        )

    def test_loops_alone_are_no_neighbours(self) -> None:
        graph = Graph.from_edge_index(columns([(0, 0), (1, 1)]), num_nodes=2)
        found = describe_graph(graph, Mask(torch.empty(0)), torch.tensor([0, 0]))
        assert (found.edges_before, found.components_before, found.isolated_before) == (0, 2, 2)
        assert found.homophily == Homophily(whole=None, kept=None, pruned=None)

    def test_labels_must_fit(self) -> None:
        with pytest.raises(InputError, match=r"one for each of 7 nodes \(got \(3,\)\)"):
            describe_graph(house(), Mask.full([7]), torch.zeros(3))

    @given(st.lists(st.booleans(), min_size=12, max_size=12), st.lists(st.integers(-1, 2), min_size=6, max_size=6))
    def test_parts_make_the_whole(self, kept: list[bool], labels: list[int]) -> None:
        pairs = [(i, (i + step) % 6) for step in (1, 2) for i in range(6)]
        graph = Graph.from_edge_index(both_ways(pairs), num_nodes=6)
        mask, y = Mask(torch.tensor(kept)), torch.tensor(labels)
        found = describe_graph(graph, mask, y)
        assert found.degree_after.mean == pytest.approx(2 * mask.count / 6)
        assert found.components_after >= found.components_before == 1
        assert found.largest_after <= found.largest_before == 6
        assert sum(found.degree_after.counts) == 6
        assert found.degree_after.counts[0] == found.isolated_after
        assert found.homophily is not None
        known = (y[graph.edges] >= 0).all(0)
        shares = ((found.homophily.kept, mask.kept), (found.homophily.pruned, ~mask.kept))
        same = sum((share or 0) * int((known & part).sum()) for share, part in shares)
        assert same == pytest.approx((found.homophily.whole or 0) * int(known.sum()))


class TestWeights:
    def test_gcn(self) -> None:
        # Feature 1 is unused; hidden unit 2 is unreached, units 1 and 2 are unused; class 1 is unreached.
        first = Mask([[1, 0, 0], [0, 0, 0], [1, 1, 0]])  # type: ignore[list-item]
        second = Mask([[1, 0], [0, 0], [0, 0]])  # type: ignore[list-item]
        masks = {"layer1.weight": first, "layer2.weight": second}
        found = describe_weights(masks, GCN(3, 3, 2).operations)
        assert found.matrices == (
            Matrix(name="layer1.weight", shape=(3, 3), kept=3, empty_rows=1, empty_columns=1),
            Matrix(name="layer2.weight", shape=(3, 2), kept=1, empty_rows=2, empty_columns=1),
        )
        assert [matrix.sparsity for matrix in found.matrices] == [6 / 9, 5 / 6]
        assert found.units == (
            Units(name="features", size=3, unreached=None, unused=1, dead=1),
            Units(name="hidden", size=3, unreached=1, unused=2, dead=2),
            Units(name="classes", size=2, unreached=1, unused=None, dead=1),
        )

    def test_a_unit_that_either_way_uses_is_used(self) -> None:
        """GIN's hidden units go to layer 2 and to the read-out."""
        network = GIN(2, 2, 1)
        masks = {name: Mask.full(shape) for name, shape in network.weight_shapes.items()}
        masks["layer2.weight"] = Mask([[0], [0]])  # type: ignore[list-item]
        masks["weight_readout"] = Mask([[1], [0]])  # type: ignore[list-item]
        units = {units.name: units for units in describe_weights(masks, network.operations).units}
        assert units["hidden"] == Units(name="hidden", size=2, unreached=0, unused=1, dead=1)
        assert units["classes"].unreached == 0

    def test_deeper_gin_has_units_between(self) -> None:
        network = GIN(4, 3, 2, depth=2)
        masks = {name: Mask.full(shape) for name, shape in network.weight_shapes.items()}
        masks["layer1.weights.0"] = Mask(torch.tensor([[0, 0, 0], [1, 0, 1], [1, 0, 1]]))
        units = {
            units.name: (units.size, units.dead) for units in describe_weights(masks, network.operations).units
        }
        assert units == {
            "features": (4, 0),
            "layer1.0": (3, 1),
            "hidden": (3, 1),
            "layer2.0": (2, 0),
            "classes": (2, 0),
        }

    def test_heads_are_units_too(self) -> None:
        network = GAT(2, 3, 2, heads=4, prune_attention=True)
        masks = {name: Mask.full(shape) for name, shape in network.weight_shapes.items()}
        found = describe_weights(masks, network.operations)
        assert {units.name: units.size for units in found.units} == {"features": 2, "hidden": 12, "classes": 2}
        assert "layer1.attention_source" in [matrix.name for matrix in found.matrices]

    def test_a_users_matrices_alone(self) -> None:
        found = describe_weights({"w": Mask(torch.zeros(2, 3)), "deep": Mask.full([2, 2, 2])})
        assert found.units == ()
        assert [matrix.empty_rows for matrix in found.matrices] == [2, 0]
        assert [matrix.empty_columns for matrix in found.matrices] == [3, 0]
