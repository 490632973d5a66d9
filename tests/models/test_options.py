"""A backbone's options: what its `__init__` takes beside its shape and seed."""

from typing import Any

import pytest

from fastglt import GAT, GCN, GIN, InputError
from fastglt.models import BACKBONES
from fastglt.models.options import options_of, read_options


def test_options_are_what_is_left_of_the_arguments() -> None:
    assert [list(options_of(kind)) for kind in (GCN, GIN, GAT)] == [
        ["dropout"],
        ["dropout", "depth", "aggregation"],
        ["dropout", "heads", "slope", "prune_attention"],
    ]
    assert options_of(GAT)["heads"].to_json() == {
        "name": "heads",
        "default": 8,
        "takes": "a whole number",
        "about": "of the first layer, each with `hidden` units",
    }


def test_every_option_of_ours_is_explained_and_can_be_written() -> None:
    for backbone in BACKBONES.values():
        for option in options_of(backbone).values():
            assert option.about, f"{backbone.name}'s {option.name} has no comment beside it"
            assert option.read(str(option.default)) == option.default


def test_values_have_the_type_of_their_argument() -> None:
    texts = {"heads": "2", "slope": "1e-2", "prune_attention": "yes"}
    found: dict[str, Any] = read_options(GAT, texts)
    assert found == {"heads": 2, "slope": 0.01, "prune_attention": True}
    with pytest.raises(InputError, match=r"option 'heads' of model 'gat' must be a whole number \(got 'two'\)"):
        read_options(GAT, {"heads": "two"})
    with pytest.raises(InputError, match="model 'gat' has no option 'head'; it takes dropout, heads, prune"):
        read_options(GAT, {"head": "2"})


def test_a_network_is_described_by_what_is_not_as_usual() -> None:
    assert GIN(3, 2, 2).described == "gin"
    assert GIN(3, 2, 2, depth=3, aggregation="sum").described == "gin with depth 3, aggregation sum"
