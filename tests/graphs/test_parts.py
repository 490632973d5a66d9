import pytest
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.graphs.induced import induced
from fastglt.graphs.partition import METIS, RANDOM, Partition, divide
from fastglt.graphs.parts import Cutter
from tests.helpers import both_ways, house, randn


def random_graph(
    *, directed: bool = False, loops: bool = False, twice: bool = False, valued: bool = False
) -> Graph:
    ends = torch.randint(40, (2, 120), generator=torch.Generator().manual_seed(3))
    ends = torch.unique(ends[:, ends[0] != ends[1]], dim=1)
    index = ends if directed else torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1)
    if loops:
        index = torch.cat([index[:, :9], torch.tensor([[3, 7], [3, 7]]), index[:, 9:]], dim=1)
    if twice:
        index = torch.cat([index, index], dim=1)
    key = index.min(0).values * 40 + index.max(0).values
    attr = torch.stack([key.float(), key.float() + 1], 1) if valued else None
    return Graph.from_edge_index(index, 40, directed=directed, edge_attr=attr)


def same(one: Tensor | None, two: Tensor | None) -> bool:
    return (one is None and two is None) or (one is not None and two is not None and torch.equal(one, two))


class TestCut:
    @pytest.mark.parametrize(
        "kind",
        [{}, {"loops": True}, {"directed": True}, {"twice": True, "loops": True}, {"valued": True, "loops": True}],
    )
    def test_a_cut_is_the_induced_graph(self, kind: dict[str, bool]) -> None:
        graph = random_graph(**kind)
        nodes = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:25].sort().values
        part, inside = Cutter(graph).cut(nodes), torch.zeros(40, dtype=torch.bool)
        inside[nodes] = True
        wanted, edges = induced(graph, inside)
        assert torch.equal(part.edges, edges.nonzero().squeeze(1))
        for name in ("edges", "edge_attr"):
            assert same(getattr(part.graph, name), getattr(wanted, name))
        columns = [sorted(map(tuple, one.edge_index.T.tolist())) for one in (part.graph, wanted)]
        assert columns[0] == columns[1]
        assert torch.equal(part.graph.loops, wanted.loops)
        got, hop = (one.hops(None, depth=1)[0] for one in (part.graph, wanted))
        for name in ("entry_edge", "degree", "looped", "symmetric_norm", "mean_norm"):
            assert torch.equal(getattr(got, name), getattr(hop, name)), name
        assert torch.equal(got.csr.indices, hop.csr.indices)

    def test_a_part_under_a_mask_is_the_part_of_the_pruned_graph(self) -> None:
        graph = random_graph()
        kept = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(2)) > 0.4
        part = Cutter(graph).cut(torch.arange(5, 30))
        pruned, ids = part.pruned(kept)
        assert torch.equal(ids, part.edges[kept[part.edges]])
        assert torch.equal(graph.edges[:, ids] - 5, pruned.edges)

    def test_nodes_and_pairs_are_found_in_a_part(self) -> None:
        part = Cutter(house()).cut(torch.tensor([0, 2, 5]))
        assert part.numbers_of(torch.tensor([[5, 0], [2, 2]])).tolist() == [[2, 0], [1, 1]]
        assert part.holds(torch.tensor([0, 1, 6, 5])).tolist() == [True, False, False, True]

    def test_a_node_alone_is_a_part(self) -> None:
        part = Cutter(house()).cut(torch.tensor([6]))
        assert part.graph.num_edges == 0
        assert part.graph.hops(None, depth=1)[0].degree.tolist() == [1]


class TestPartition:
    def test_metis_finds_clusters_and_always_the_same(self) -> None:
        pairs = [(a, b) for block in range(3) for a in range(5 * block, 5 * block + 5) for b in range(5 * block, a)]
        graph = Graph.from_edge_index(both_ways([*pairs, (0, 5), (5, 10)]), num_nodes=15)
        parts = divide(graph, 3, METIS).parts(0)
        assert sorted(part.tolist() for part in parts) == [list(range(5 * i, 5 * i + 5)) for i in range(3)]
        assert all(map(torch.equal, parts, divide(graph, 3, METIS).parts(1)))

    def test_random_parts_are_drawn_anew_by_the_seed(self) -> None:
        partition = divide(house(), 3, RANDOM)
        first, again, other = (partition.parts(seed) for seed in (0, 0, 1))
        assert torch.cat(first).sort().values.tolist() == list(range(7))
        assert all(map(torch.equal, first, again))
        assert not all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(first, other, strict=True))

    @pytest.mark.parametrize(("parts", "shares"), [(1, 1), (2, 1), (2, 2), (4, 3), (5, 2)])
    def test_every_part_is_in_one_step_of_an_epoch(self, parts: int, shares: int) -> None:
        partition = Partition(num_nodes=20, count=5, labels=torch.arange(20) % 5)
        steps = partition.steps(3, parts=parts, shares=shares)
        assert sorted(number for step in steps for numbers, _ in step for number in numbers) == list(range(5))
        assert torch.cat([nodes for step in steps for _, nodes in step]).sort().values.tolist() == list(range(20))
        assert max(map(len, steps)) <= shares

    def test_the_order_of_parts_is_drawn_by_the_seed(self) -> None:
        partition = Partition(num_nodes=20, count=10, labels=torch.arange(20) % 10)
        orders = [
            [group[0] for step in partition.steps(seed, parts=1, shares=1) for group in step] for seed in (0, 0, 1)
        ]
        assert orders[0] == orders[1] != orders[2]

    def test_more_parts_than_nodes_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"parts must not exceed the graph's 7 nodes \(got 8\)"):
            divide(house(), 8, RANDOM)

    def test_metis_without_its_package_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
        with pytest.raises(InputError, match=r"partition must be random .* pip install 'fastglt\[metis\]'"):
            divide(house(), 2, METIS)

    def test_arrows_count_both_ways_for_clusters(self) -> None:
        assert len(divide(house(directed=True), 2, METIS).parts(0)) == 2


def test_features_in_strips_are_the_features() -> None:
    from fastglt.graphs.features import Features
    from tests.helpers import sparse_features

    for features in (Features(randn(9, 4)), sparse_features(9, 40)):
        weight = randn(features.num_features, 3)
        rows = torch.cat([features.strip(0, 4) @ weight, features.strip(4, 9) @ weight])
        assert torch.allclose(rows, features @ weight)
