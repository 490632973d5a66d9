"""Hidden units: which weights are theirs, and that a network without them is a smaller network."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.masks import unflatten
from fastglt.models import GAT, GCN, GIN, Backbone, build
from fastglt.models.resgcn.network import ResGCN
from fastglt.models.units import Units
from tests.extending.sage import SAGE
from tests.helpers import house, randn, sparse_features

NODES, FEATURES, CLASSES = 7, 12, 3


def units_of(network: Backbone) -> Units:
    return network.units(sparse_features(NODES, FEATURES), house())


def kept(count: int, *places: int) -> Tensor:
    found = torch.zeros(count, dtype=torch.bool)
    found[list(places)] = True
    return found


def outputs(network: Backbone) -> Tensor:
    with torch.no_grad():
        found: Tensor = network.eval()(sparse_features(NODES, FEATURES), house(), None)
    return found


def stirred(network: Backbone) -> Backbone:
    """Numbers everywhere, so that biases and norms count."""
    with torch.no_grad():
        for seed, parameter in enumerate(network.parameters()):
            parameter.add_(0.3 * randn(*parameter.shape, seed=seed))
    return network


class TestByHand:
    def test_a_gcns_units_are_columns_and_rows(self) -> None:
        units = units_of(GCN(3, 2, 2))
        assert units.count == 2
        assert units.layer.tolist() == [0, 0]
        left = units.keep(kept(2, 1))
        assert left.tolist() == [False, True] * 3 + [False, False, True, True]

    def test_sums_into_and_out_of_them(self) -> None:
        units = units_of(GCN(3, 2, 2))
        into, out = units.both_sums(torch.arange(10.0))
        assert into.tolist() == [0 + 2 + 4, 1 + 3 + 5]
        assert out.tolist() == [6 + 7, 8 + 9]
        assert units.sums(torch.arange(10.0)).tolist() == [19, 26]
        assert units.sizes.tolist() == [5, 5]
        assert units.means(torch.arange(10.0)).tolist() == [19 / 5, 26 / 5]

    def test_what_leads_into_some(self) -> None:
        units = units_of(GCN(3, 2, 2))
        assert units.lead_into(kept(2, 0)).tolist() == [True, False] * 3 + [False] * 4
        assert units.touch(kept(2, 0)).tolist() == [True, False] * 3 + [True, True, False, False]

    def test_one_is_alive_with_a_single_weight(self) -> None:
        units = units_of(GCN(3, 2, 2))
        assert units.alive(kept(10, 8)).tolist() == [False, True]

    def test_a_residual_stream_has_one_set_of_channels(self) -> None:
        network = ResGCN(FEATURES, 4, CLASSES, num_layers=3)
        units = units_of(network)
        assert units.count == 4
        counts = {name: int(part.sum()) for name, part in split(units.keep(kept(4, 0, 2)), network).items()}
        assert counts == {
            "weight_encoder": FEATURES * 2,
            **{f"layers.{i}.weights.0": 2 * 2 for i in range(3)},
            "weight_readout": 2 * CLASSES,
        }

    def test_the_inner_units_of_an_mlp_are_units_too(self) -> None:
        units = units_of(ResGCN(FEATURES, 4, CLASSES, num_layers=2, mlp_layers=2))
        assert units.layer.bincount().tolist() == [4, 8, 8]

    def test_attention_vectors_go_along_if_they_are_pruned(self) -> None:
        network = GAT(FEATURES, 2, CLASSES, heads=2, prune_attention=True)
        left = split(units_of(network).keep(kept(4, 1)), network)
        assert left["layer1.attention_source"].tolist() == [[False, True], [False, False]]
        assert bool(left["layer2.attention_target"].all())


def split(vector: Tensor, network: Backbone) -> dict[str, Tensor]:
    return unflatten(vector, {name: network.get_parameter(name) for name in network.prunable})


def pruned(network: Backbone, units: Tensor) -> Backbone:
    """The network under the mask that keeps some units."""
    left = split(units_of(network).keep(units), network)
    with torch.no_grad():
        for name, part in left.items():
            network.get_parameter(name).mul_(part)
    return network


def sliced(network: Backbone, places: dict[int, Tensor], **changes: object) -> Backbone:
    """A network of other sizes with the numbers of this one; dimensions of a size keep some places."""
    small = build({**network.spec, **changes})
    state = {}
    for name, shape in ((name, value.shape) for name, value in small.state_dict().items()):
        value = network.state_dict()[name]
        for dim, size in enumerate(value.shape):
            value = value.index_select(dim, places[size]) if size in places else value
        state[name] = value.reshape(shape)
    small.load_state_dict(state)
    return small


def _gcn() -> tuple[Backbone, Tensor, Backbone]:
    network, units = stirred(GCN(FEATURES, 8, CLASSES)), kept(8, 1, 4, 6)
    return pruned(network, units), units, sliced(network, {8: units.nonzero().squeeze(1)}, hidden=3)


def _gin() -> tuple[Backbone, Tensor, Backbone]:
    network, units = stirred(GIN(FEATURES, 8, CLASSES)), kept(8, 0, 7)
    return pruned(network, units), units, sliced(network, {8: units.nonzero().squeeze(1)}, hidden=2)


def _gat() -> tuple[Backbone, Tensor, Backbone]:
    """Units 1 and 4 of each of two heads of five."""
    network, units = stirred(GAT(FEATURES, 5, CLASSES, heads=2)), kept(10, 1, 4, 6, 9)
    places = {10: units.nonzero().squeeze(1), 5: torch.tensor([1, 4])}
    return pruned(network, units), units, sliced(network, places, hidden=2)


def _gat_without_a_head() -> tuple[Backbone, Tensor, Backbone]:
    network, units = stirred(GAT(FEATURES, 5, CLASSES, heads=2)), kept(10, 5, 6, 7, 8, 9)
    places = {10: units.nonzero().squeeze(1), 2: torch.tensor([1])}
    return pruned(network, units), units, sliced(network, places, heads=1)


def _resgcn() -> tuple[Backbone, Tensor, Backbone]:
    network, units = stirred(ResGCN(FEATURES, 8, CLASSES, num_layers=3)), kept(8, 1, 4, 6)
    return pruned(network, units), units, sliced(network, {8: units.nonzero().squeeze(1)}, hidden=3)


class TestSmallerNetworks:
    @pytest.mark.parametrize("make", [_gcn, _gin, _gat, _gat_without_a_head, _resgcn])
    def test_outputs_are_those_of_the_smaller_network(
        self, make: Callable[[], tuple[Backbone, Tensor, Backbone]]
    ) -> None:
        masked, _, small = make()
        torch.testing.assert_close(outputs(masked), outputs(small))

    @pytest.mark.parametrize("make", [_gcn, _gin, _gat, _gat_without_a_head, _resgcn])
    def test_the_count_is_that_of_the_smaller_network(
        self, make: Callable[[], tuple[Backbone, Tensor, Backbone]]
    ) -> None:
        masked, units, small = make()
        assert int(units_of(masked).keep(units).sum()) == sum(
            shape.numel() for shape in small.weight_shapes.values()
        )


class TestRefusals:
    def test_a_layer_norm_looks_at_all_units(self) -> None:
        with pytest.raises(InputError, match=r"norm looks at all units .* LayerNorm\); a batch norm does not"):
            units_of(ResGCN(FEATURES, 4, CLASSES, num_layers=2, norm="layer"))

    def test_a_backbone_without_operations(self) -> None:
        with pytest.raises(InputError, match=r"operations do not tell what each weight joins .*units, and sage"):
            units_of(SAGE(FEATURES, 4, CLASSES))
