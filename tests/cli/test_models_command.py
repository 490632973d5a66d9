"""`fastglt models`, and the models' options on the command line."""

import inspect
import json
from pathlib import Path

import pytest

from fastglt.models import BACKBONES

from .conftest import Cli

QUIET = ("--quiet", "--json")


def test_lists_every_model_with_its_options(cli: Cli) -> None:
    rows = {row["name"]: row for row in cli("models", "--json").document}
    assert list(rows) == list(BACKBONES)
    assert [option["name"] for option in rows["gin"]["options"]] == ["dropout", "depth", "aggregation"]
    for name, backbone in BACKBONES.items():
        first = inspect.cleandoc(str(backbone.__doc__)).split("\n\n")[0]
        assert rows[name]["summary"] == " ".join(first.split())
    out = cli("models").out
    for name, backbone in BACKBONES.items():
        assert f" {name} " in out
        assert backbone.paper.split(",")[0] in out


def test_one_model_is_taught(cli: Cli) -> None:
    out = cli("models", "gat").out
    assert out.startswith("gat\n")
    for part in ("heads of `hidden` concatenated", "ICLR 2018", "--model-option NAME=VALUE", "prune_attention"):
        assert part in out
    result = cli("models", "gta")
    assert (result.code, "unknown model (got 'gta'); did you mean 'gat'?" in result.err) == (2, True)


def test_options_reach_the_ticket_and_its_transfer(find: Cli, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text("model: gin\nmodel_option: {depth: 2, aggregation: sum}")
    made = find("--config", tmp_path / "deep.yaml", "--out", tmp_path / "deep", *QUIET)
    assert made.code == 0, made.err
    settings = json.loads((tmp_path / "deep" / "run.json").read_text())["settings"]
    assert (settings["model"]["depth"], settings["model"]["aggregation"]) == (2, "sum")
    assert "model_code" not in settings
    again = find("--model", "gin", "--model-option", "depth=2", "--model-option", "aggregation=sum", *QUIET)
    assert again.document["weights_total"] == made.document["weights_total"]
    epochs = ("--oneshot-epochs", "2", "--denoise-epochs", "4", "--seeds", "0,1")
    moved = cli("transfer", tmp_path / "deep", *epochs, "--threads", "1", "--out", tmp_path / "moved", *QUIET)
    assert moved.code == 0, moved.err
    assert "layer1.weights.0" in moved.document["taken"]["matrices"]  # its own options
    assert cli("show", tmp_path / "moved", "--json").document["model"]["aggregation"] == "sum"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("depth", "--model-option must be NAME=VALUE (got 'depth')"),
        ("depth=x", "option 'depth' of model 'gin' must be a whole number (got 'x')"),
        ("heads=2", "model 'gin' has no option 'heads'; it takes aggregation, depth, dropout"),
        ("depth=0", "depth must be at least 1 (got 0)"),
    ],
)
def test_a_wrong_option_is_told(find: Cli, written: str, told: str) -> None:
    result = find("--model", "gin", "--model-option", written)
    assert result.code == 2
    assert told in result.err
