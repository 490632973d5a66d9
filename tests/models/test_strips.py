"""Layer by layer in strips, every backbone gives what it gives on the whole graph at once."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.strips import Strips
from fastglt.masks import Mask
from fastglt.models import PyGNetwork, make
from fastglt.models.decoders import make_decoder
from fastglt.models.links import LinkNetwork
from fastglt.models.strips import InStrips, runs_in_strips
from fastglt.system import scratch
from tests.helpers import randn, sparse_features
from tests.toy_data import HandWritten, seeded

BACKBONES: list[tuple[str, dict[str, Any]]] = [
    ("gcn", {}),
    ("gin", {}),
    ("gin", {"depth": 2, "aggregation": "sum"}),
    ("gat", {"heads": 2}),
    ("resgcn", {"num_layers": 3}),
    ("resgcn", {"num_layers": 2, "mlp_layers": 2, "norm": "layer", "learn_temperature": True, "self_loops": False}),
    ("resgcn", {"num_layers": 2, "edge_channels": 2}),
]


def graph(*, directed: bool) -> Graph:
    ends = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(0))
    index = ends if directed else torch.cat([ends, ends.flip(0)], dim=1)
    index = torch.unique(index, dim=1)
    attr = torch.stack([index.sum(0).sin(), index.sum(0).cos()], 1)
    return Graph.from_edge_index(index, 60, directed=directed, edge_attr=attr)


def kept_edges(whole: Graph) -> Tensor:
    return torch.rand(whole.num_edges, generator=torch.Generator().manual_seed(1)) > 0.3


@pytest.mark.parametrize(("name", "options"), BACKBONES)
@pytest.mark.parametrize("directed", [False, True])
def test_strips_equal_the_whole_graph(name: str, options: dict[str, Any], directed: bool) -> None:
    whole, x = graph(directed=directed), Features(randn(60, 12))
    network = make(name, in_channels=12, hidden=8, out_channels=4, seed=0, **options).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * randn(*parameter.shape))
    kept, soft = kept_edges(whole), randn(whole.num_edges, seed=2)
    pruned, nodes = whole.prune(Mask(kept)), torch.tensor([3, 50, 17])
    with torch.no_grad():
        for mask, score in ((None, None), (kept, None), (None, soft), (kept, soft)):
            given = score if score is None or mask is None else score[mask]
            wanted = network(x, whole if mask is None else pruned, given, nodes)
            found = InStrips(network)(x, Strips(whole, mask, entries=40), score, nodes)
            torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), BACKBONES)
@pytest.mark.parametrize("directed", [False, True])
def test_what_nodes_send_may_be_in_a_file(
    name: str, options: dict[str, Any], directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A strip then takes the rows of its own senders, a few bytes of the file at a time; no bit changes."""
    whole, x, soft = graph(directed=directed), Features(randn(60, 12)), randn(150, seed=2)
    network = make(name, in_channels=12, hidden=8, out_channels=4, seed=0, **options).eval()
    strips, score = Strips(whole, kept_edges(whole), entries=40), soft[: whole.num_edges]
    with torch.no_grad():
        wanted = InStrips(network)(x, strips, score, None)
        monkeypatch.setattr(scratch, "MAPPED", 100)
        monkeypatch.setattr(Strips, "table", in_a_file)
        assert torch.equal(InStrips(network)(x, strips, score, None), wanted)


def in_a_file(strips: Strips, like: Tensor, rows: int) -> Tensor:
    table = scratch.scratch_table((rows, *like.shape[1:]), like.dtype, large=1)
    assert scratch.in_file(table)
    return table


def test_strips_of_sparse_features_and_pairs() -> None:
    whole, x = graph(directed=False), sparse_features(60, 90)
    encoder = make("gcn", in_channels=90, hidden=8, out_channels=8, seed=0)
    network = LinkNetwork(encoder, make_decoder("mlp", width=8, seed=0, hidden=None, layers=2)).eval()
    pairs = torch.tensor([[0, 5], [7, 9]])
    with torch.no_grad():
        for targets in (None, pairs):
            found = InStrips(network)(x, Strips(whole, entries=50), None, targets)
            torch.testing.assert_close(found, network(x, whole, None, targets))


def test_strips_hold_no_more_messages_than_they_may() -> None:
    strips = Strips(graph(directed=False), entries=30)
    assert [stop for _, stop in strips.bounds[:-1]] == [start for start, _ in strips.bounds[1:]]
    sizes = [strips.hop(*bounds).csr.num_entries for bounds in strips.bounds]
    assert max(sizes) <= 30
    assert sum(sizes) == strips.degree.sum()


def test_a_users_model_is_evaluated_whole() -> None:
    assert not runs_in_strips(PyGNetwork(seeded(HandWritten)))
    assert runs_in_strips(make("gcn", in_channels=2, hidden=2, out_channels=2, seed=0))
