"""`fastglt extreme`, end to end on a tiny graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import SHORT, TINY, Cli

GRID = ("--graph-sparsity", "0", "--weight-sparsity", "0.5,0.98", "--seeds", "0,1", "--fresh-seeds", "5,6")
COMMAND = ("extreme", "--dataset", TINY, "--methods", "random", "--jobs", "2", *SHORT)


def test_the_grid_is_tried_on_validation_and_confirmed_on_fresh_seeds(cli: Cli, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    found = cli(*COMMAND, *GRID, "--margin", "0.3", "--out", out, "--json").document
    assert found["seeds"] == [0, 1]
    assert found["fresh_seeds"] == [5, 6]
    assert [(answer["method"], answer["rule"], answer["score"]) for answer in found["answers"]] == [
        (method, rule, score)
        for method in ("random",)
        for rule in ("plain", "non-inferior")
        for score in ("search", "isolated")
    ]
    for answer in found["answers"]:
        check(answer, [point for point in found["curve"] if point["method"] == answer["method"]])
    again = cli(*COMMAND, *GRID, "--margin", "0.3", "--out", out, "--json")
    assert again.document == found
    assert "at a time" not in again.err  # nothing ran
    elsewhere = cli(*COMMAND, *GRID, "--margin", "0.3", "--out", str(tmp_path / "other"), "--json")
    assert elsewhere.document["answers"] == found["answers"]
    assert "reused from the store" in elsewhere.err
    assert "at a time" not in elsewhere.err
    text = cli(*COMMAND, *GRID, "--rule", "plain", "--score", "isolated", "--out", out).out
    assert "random · retrained, validation scores in %" in text
    assert "●" in text
    assert "non-inferior" not in text
    assert "search," not in text


def check(answer: dict[str, Any], curve: list[dict[str, Any]]) -> None:
    """The answer is the last point before the first that loses on validation."""
    key = {"plain": "plain_winning", "non-inferior": "non_inferior"}[answer["rule"]]
    won = [point[f"{answer['score']}_val"][key] for point in curve]
    first_loss = won.index(False) if False in won else len(won)
    last = curve[first_loss - 1]["weight_sparsity"] if first_loss else None
    assert answer["weight_sparsity"] == last
    if last is not None:
        fresh = answer["confirmation_on_test"]
        assert (fresh["n"], fresh["seeds"]) == (2, [5, 6])
        assert answer["confirmed"] == fresh[key]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--weight-sparsity", "0.5", "--graph-sparsity", "0.2"), "edges or weights must vary"),
        (("--weight-sparsity", "bisect", "--graph-sparsity", "bisect"), "only one of edges and weights"),
        (("--weight-sparsity", "much"), "weight_sparsity must be a number"),
        (("--rule", "best"), "unknown rule (got 'best')"),
        (("--score", "train"), "unknown score (got 'train')"),
        (("--seeds", "0"), "the non-inferior rule needs at least 2 seeds (got 1)"),
        (("--seeds", "0-2", "--fresh-seeds", "2-4"), "must not be among those that chose (got [2] in both)"),
        (("--margin", "2"), "margin"),
        (("--level", "0"), "level"),
        (("--checkpoint-every", "-1"), "checkpoint_every must not be negative"),
        (("--methods", "fastgtl"), "unknown method"),
        (("--seeds", f"{2**63 - 2}-{2**63 - 1}"), "fresh_seeds must lie below 2^63"),
        (("--dataset", "UNTESTED"), "needs test nodes to be confirmed on (got none); --fresh-seeds none leaves it"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "untested.npz"
    nodes, x = np.arange(30), rng.random((30, 4), dtype=np.float32)
    split = {"train_mask": nodes < 15, "val_mask": nodes >= 15, "test_mask": nodes < 0}
    np.savez(file, allow_pickle=False, edge_index=rng.integers(0, 30, (2, 90)), x=x, y=nodes % 2, **split)
    arguments = tuple(str(file) if part == "UNTESTED" else part for part in arguments)
    result = cli(*COMMAND, "--out", str(tmp_path / "out"), *arguments)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert not (tmp_path / "out").exists()


def test_help_teaches_and_is_wrapped_where_the_terminal_ends(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "fastglt extreme --dataset cora --methods fastglt,ugs" in " ".join(cli("extreme", "--help").out.split())
    monkeypatch.setenv("COLUMNS", "80")
    text = cli("extreme", "--help").out
    assert "\n validation scores; each with every seed's own Θ0, search and dense twin. The" in text
