"""Networks for pairs: what carries a message and what does not, names, specs, and users' models as encoders."""

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GraphSAGE

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask, unflatten
from fastglt.models import BACKBONES, Network, PyGNetwork, build_network, make
from fastglt.models.links import LinkNetwork, measured_width, with_decoder
from fastglt.models.operations import Linear
from fastglt.tasks import LinkPrediction
from fastglt.tickets.networks import named_network
from tests.helpers import both_ways, drop, randn

ONE, TWO = [(0, 1), (1, 2), (0, 2)], [(3, 4), (4, 5), (3, 5)]  # two triangles
ACROSS = torch.tensor([[2], [3]])  # what would join them


def network(name: str, features: int = 4) -> LinkNetwork:
    encoder = make(name, in_channels=features, hidden=6, out_channels=5, seed=1)
    return with_decoder(encoder, {"name": "mlp", "layers": 2}, width=5, seed=1).eval()


def matrices(network: LinkNetwork) -> dict[str, Tensor]:
    return {name: network.get_parameter(name) for name in network.prunable}


def held_back(part: str) -> LinkPrediction:
    """Two triangles; the edge across is to be predicted, and no part of the graph."""
    given = {f"{one}_{kind}_edge_index": ACROSS for one in ("val", "test") for kind in ("pos", "neg")}
    other = {"val": "test", "test": "val"}[part]
    given[f"{other}_pos_edge_index"] = torch.tensor([[0], [4]])
    tensors = {"x": randn(6, 4), "edge_index": both_ways([*ONE, *TWO]), **given}
    return LinkPrediction.from_tensors(tensors, metric="roc_auc")


@pytest.mark.parametrize("name", BACKBONES)
class TestMessages:
    PAIRS = torch.tensor([[0, 1], [1, 2], [0, 2]])  # of the first triangle

    def outputs(self, name: str, graph: Graph, x: Tensor, score: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            found: Tensor = network(name)(Features(x), graph, score, self.PAIRS)
        return found

    @pytest.mark.parametrize("part", ["val", "test"])
    def test_an_edge_to_predict_never_carries_one(self, name: str, part: str) -> None:
        """Whatever features the second triangle has, the first one's pairs have the same numbers, bit for bit."""
        task = held_back(part)
        x = task.x.dense.clone()
        before = self.outputs(name, task.graph, x)
        x[3:] = 100 * randn(3, 4, seed=5)
        assert torch.equal(self.outputs(name, task.graph, x), before)

    def test_a_pruned_edge_never_carries_one_and_stays_a_positive(self, name: str) -> None:
        edges = both_ways([*ONE, *TWO, (2, 3)])
        task = LinkPrediction.from_tensors(
            {
                "x": randn(6, 4),
                "edge_index": edges,
                **{
                    f"{one}_{kind}_edge_index": torch.tensor([[0], [5]])
                    for one in ("val", "test")
                    for kind in ("pos", "neg")
                },
            },
            metric="roc_auc",
        )
        bridge = task.edge_targets.tolist().index([2, 3])
        pruned = task.graph.prune(drop(7, bridge))
        x = task.x.dense.clone()
        before = self.outputs(name, pruned, x)
        whole = self.outputs(name, task.graph, x)
        x[3:] = 100 * randn(3, 4, seed=5)
        assert torch.equal(self.outputs(name, pruned, x), before)
        assert not torch.equal(self.outputs(name, task.graph, x), whole)  # the edge did carry some
        (step,) = task.steps(0)
        assert step.nodes is not None
        assert [2, 3] in step.nodes[: step.positives].tolist()


@pytest.mark.parametrize("name", BACKBONES)
def test_the_spec_gives_the_network_back(name: str) -> None:
    one = network(name)
    again = build_network(one.spec)
    assert again.spec == one.spec
    assert all(torch.equal(value, again.state_dict()[key]) for key, value in one.state_dict().items())
    other = one.redrawn(7)
    assert other.spec["seed"] == 7
    assert not torch.equal(other.decoder.learnt[0], one.decoder.learnt[0])


def test_its_matrices_are_the_encoders_and_the_decoders() -> None:
    one = network("gcn")
    assert one.prunable == (
        "encoder.layer1.weight",
        "encoder.layer2.weight",
        "decoder.weights.0",
        "decoder.weights.1",
    )
    assert one.feature_weights == frozenset({"encoder.layer1.weight"})
    linear = [part for part in one.operations if isinstance(part, Linear)]
    assert [part.weight for part in linear] == list(one.prunable)
    assert [(part.reads, part.writes, part.per_pair) for part in linear] == [
        ("features", "hidden", False),
        ("hidden", "rows", False),
        ("rows", "decoder1", True),
        ("decoder1", "link", True),
    ]


def test_a_dot_product_has_no_weights() -> None:
    encoder = make("gcn", in_channels=4, hidden=6, out_channels=5, seed=1)
    assert with_decoder(encoder, {"name": "dot"}, width=5, seed=0).prunable == (
        "encoder.layer1.weight",
        "encoder.layer2.weight",
    )


def test_a_users_model_is_an_encoder_under_its_own_names() -> None:
    torch.manual_seed(0)
    encoder = PyGNetwork(GraphSAGE(4, 8, num_layers=2, out_channels=3))
    x, graph = Features(randn(6, 4)), Graph.from_edge_index(both_ways([*ONE, *TWO]), 6)
    assert measured_width(encoder, x, graph) == 3
    one: Network = with_decoder(encoder, {"name": "mlp"}, width=3, seed=0)
    assert one.spec["link-decoder"] == {"name": "mlp", "hidden": 3, "layers": 3, "width": 3}
    public = set(one.public.state_dict())
    assert {one.public_name(name) for name in one.state_dict()} == public
    assert {one.public_name(one.private_name(name)) for name in public} == public
    assert "encoder.convs.0.lin_l.weight" in public
    pruned = graph.prune(Mask([1] * 5 + [0]))
    assert one(x, pruned, None, torch.tensor([[0, 5]])).shape == (1, 1)


def test_named_networks_have_rows_as_wide_as_hidden() -> None:
    found = named_network("gcn", held_back("val"), hidden=7, seed=0)
    assert isinstance(found, LinkNetwork)
    assert found.width == 7
    assert found.encoder.spec["out_channels"] == 7


def test_hidden_units_of_both_parts_are_pruned_as_one() -> None:
    """Without its weights nothing of a unit is left in any output, whatever its bias."""
    x, graph = Features(randn(6, 4)), Graph.from_edge_index(both_ways([*ONE, *TWO]), 6)
    units = network("gcn").units(x, graph)
    assert units.layer.bincount().tolist() == [6, 5, 5]  # hidden, rows, the decoder's own
    biases = ("encoder.layer1.bias", "encoder.layer2.bias", "decoder.biases.0")
    place = [(name, i) for name, width in zip(biases, (6, 5, 5), strict=True) for i in range(width)]
    for unit, (bias, i) in enumerate(place):
        one, kept = network("gcn"), torch.ones(units.count, dtype=torch.bool)
        kept[unit] = False
        with torch.no_grad():
            for name, mask in unflatten(units.keep(kept).float(), matrices(one)).items():
                one.get_parameter(name).mul_(mask)
            before = one(x, graph, None, ACROSS.T)
            one.get_parameter(bias)[i] = 7.0
            assert torch.equal(one(x, graph, None, ACROSS.T), before), bias


def test_a_users_model_has_no_units_with_a_decoder() -> None:
    encoder = PyGNetwork(GraphSAGE(4, 8, num_layers=2, out_channels=3))
    one = with_decoder(encoder, {"name": "mlp"}, width=3, seed=0)
    with pytest.raises(InputError, match="structure must be weights for a model of your own with a decoder"):
        one.units(Features(randn(6, 4)), Graph.from_edge_index(both_ways([*ONE, *TWO]), 6))
