"""How the settings of two runs differ, in words."""

from typing import Any

import pytest

from fastglt.runs.differences import told

THERE: dict[str, Any] = {
    "dataset": "cora",
    "graph": "0" * 64,
    "features": "1" * 64,
    "labels_and_split": "2" * 64,
    "model": {"name": "gcn", "in_channels": 5, "hidden": 512, "out_channels": 3, "dropout": 0.5, "seed": 0},
    "seed": 0,
    "split_seed": 0,
    "method": "fastglt",
    "options": {"ramp": 0.8},
    "weight_sparsity": 0.9,
    "lr": 0.001,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"weight_sparsity": 0.95}, "--weight-sparsity 0.9 there, 0.95 here"),
        ({"seed": 1, "model": {**THERE["model"], "seed": 1}}, "--seed 0 there, 1 here"),
        ({"model": {**THERE["model"], "dropout": 0.2}}, "--model-option dropout 0.5 there, 0.2 here"),
        ({"options": {"ramp": 1.0}}, "--option ramp 0.8 there, 1.0 here"),
        ({"distill": 1.0}, "--distill not given there, 1.0 here"),
        ({"dataset": "x.npz", "graph": "3" * 64, "features": "4" * 64}, "--dataset cora there, x.npz here"),
        ({"features": "4" * 64}, "the features of cora are others there"),
        ({"split_seed": 1, "labels_and_split": "5" * 64}, "--split-seed 0 there, 1 here"),
        ({"code": "6" * 64}, "the method's code is another there"),
    ],
)
def test_every_difference_is_an_option_with_both_values(changes: dict[str, Any], expected: str) -> None:
    assert told(THERE, {**THERE, **changes}) == expected


def test_many_differences_are_counted() -> None:
    more = dict.fromkeys(("seed", "split_seed", "weight_sparsity", "lr", "method"), 9)
    found = told(THERE, {**THERE, **more, "dataset": "pubmed"})
    assert found.startswith("--dataset cora there, pubmed here; ")
    assert found.endswith("; and 2 more")
