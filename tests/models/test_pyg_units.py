"""The hidden units of users' models, found by trying; what cannot be told apart is refused."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt import InputError
from fastglt.masks import unflatten
from fastglt.models import PyGNetwork
from fastglt.models.units import Units
from tests.helpers import house, randn, sparse_features
from tests.toy_data import seeded

FEATURES, HIDDEN, CLASSES = 12, 6, 3


class Residual(nn.Module):
    """Two convolutions that add to a stream which a third one reads."""

    def __init__(self, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.first = pyg.GCNConv(FEATURES, HIDDEN)
        self.second = pyg.GCNConv(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, CLASSES)
        self.norm = norm

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        h = h + self.second(h, edge_index).relu()
        return self.last(h if self.norm is None else self.norm(h))  # type: ignore[no-any-return]


def network_of(model: nn.Module) -> PyGNetwork:
    with torch.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.add_(0.3 * randn(*parameter.shape, seed=seed))
    return PyGNetwork(model)


def found(network: PyGNetwork) -> Units:
    return network.units(sparse_features(7, FEATURES), house())


MODELS = {
    "gcn": lambda: pyg.GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES),
    "gcn with batch norm": lambda: pyg.GCN(FEATURES, HIDDEN, num_layers=3, out_channels=CLASSES, norm="batch_norm"),
    "sage": lambda: pyg.GraphSAGE(FEATURES, HIDDEN, num_layers=3, out_channels=CLASSES),
    "gin": lambda: pyg.GIN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES),
    "layers concatenated": lambda: pyg.GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES, jk="cat"),
    "residual": Residual,
}


class TestFound:
    @pytest.mark.parametrize("name", MODELS)
    def test_nobody_reads_what_pruned_units_hold(self, name: str) -> None:
        """With every other unit's weights gone, whatever writes those units may write anything."""
        network = network_of(seeded(MODELS[name]))
        units = found(network)
        kept = torch.arange(units.count) % 2 == 0
        left = unflatten(units.keep(kept), {name: network.get_parameter(name) for name in network.prunable})
        into = unflatten(units.lead_into(~kept), {name: network.get_parameter(name) for name in network.prunable})
        x, graph = sparse_features(7, FEATURES), house()
        with torch.no_grad():
            for weight, part in left.items():
                network.get_parameter(weight).mul_(part)
            before = network.eval()(x, graph)
            for weight, part in into.items():
                network.get_parameter(weight).add_(randn(*part.shape, seed=7) * part)
            torch.testing.assert_close(network(x, graph), before)
        assert any(bool(part.any()) for part in into.values())

    def test_a_stream_is_one_set_of_units(self) -> None:
        units = found(network_of(seeded(Residual)))
        assert units.layer.bincount().tolist() == [HIDDEN]
        assert (
            units.sizes.tolist() == [FEATURES + 2 * HIDDEN + CLASSES] * HIDDEN
        )  # a channel reads and writes itself

    def test_a_concatenation_has_a_place_for_each_layer(self) -> None:
        network = network_of(seeded(MODELS["layers concatenated"]))
        units = found(network)
        assert units.layer.bincount().tolist() == [HIDDEN, HIDDEN]
        assert units.ends["module.lin.weight"].columns.tolist() == list(range(2 * HIDDEN))  # type: ignore[union-attr]

    def test_a_unit_with_a_weight_that_stays_is_none(self) -> None:
        model = seeded(lambda: pyg.GCN(FEATURES, HIDDEN, num_layers=3, out_channels=CLASSES))
        network = PyGNetwork(model, prunable=["convs.0.lin.weight", "convs.1.lin.weight"])
        assert found(network).count == HIDDEN


class TestRefused:
    def test_attention_looks_at_a_whole_head(self) -> None:
        model = seeded(lambda: pyg.GAT(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES))
        with pytest.raises(InputError, match=r"cannot be told apart .*reaches several columns"):
            found(PyGNetwork(model))

    def test_a_layer_norm_mixes_units(self) -> None:
        with pytest.raises(InputError, match=r"reaches several columns of 'last\.weight'"):
            found(network_of(seeded(lambda: Residual(nn.LayerNorm(HIDDEN)))))

    def test_a_weight_of_no_linear_layer(self) -> None:
        model = seeded(
            lambda: pyg.Sequential("x, edge_index", [(pyg.GatedGraphConv(FEATURES, 1), "x, edge_index -> x")])
        )
        with pytest.raises(InputError, match="is no weight of a linear layer"):
            found(PyGNetwork(model))

    def test_a_model_without_hidden_units(self) -> None:
        with pytest.raises(InputError, match="no unit has prunable weights alone into it and out of it"):
            found(PyGNetwork(seeded(lambda: pyg.SGConv(FEATURES, CLASSES))))
