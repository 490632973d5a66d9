"""`fastglt methods`: a table of all, and what there is to know of one."""

import pytest

from fastglt.methods import METHODS
from tests.cli.conftest import Cli
from tests.conftest import OwnModule


def test_lists_every_method_with_what_it_costs(cli: Cli) -> None:
    rows = {row["name"]: row for row in cli("methods", "--json").document}
    assert list(rows) == list(METHODS)
    assert rows["fastglt"]["epochs"] == rows["random"]["epochs"] == 430
    assert rows["ugs"]["epochs"] == 11 * 400  # 0.8 to the power of 11 is the first below a tenth
    for name, row in rows.items():
        assert (row["summary"], row["prunes"]) == (METHODS[name].summary, METHODS[name].prunes)
    out = cli("methods").out
    for name, method in METHODS.items():
        assert f" {name} " in out
        assert method.paper.split(",")[0] in out
    assert "4,400" in out


def test_one_method_is_taught(cli: Cli) -> None:
    out = cli("methods", "ugs").out
    assert out.startswith("ugs: ")
    for part in (
        "iterative magnitude pruning",  # of the file
        "cut a share of what is left, rewind to Θ0",  # of the file it builds on
        "4,400 epochs at default settings",
        "ICML 2021",
        "edge_share",
        "of the remaining edges, removed in a round",
        "true or false",
        "published settings",
        "8e-05",
    ):
        assert part in out
    facts = cli("methods", "ugs", "--json").document
    assert facts["options"][0] == {
        "name": "edge_share",
        "default": 0.05,
        "takes": "a number",
        "about": "of the remaining edges, removed in a round",
    }
    assert {"dataset": "pubmed", "model": "gcn"}.items() <= facts["published"][6].items()
    assert facts["published"][6]["options"]["edge_l1"] == 1e-6


def test_brackets_in_a_comment_are_no_markup(cli: Cli) -> None:
    assert "how fast that share falls [kappa]" in cli("methods", "fastglt").out


def test_a_method_without_options_says_so(cli: Cli) -> None:
    out = cli("methods", "random").out
    assert "It takes no options." in out
    assert "published" not in out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_names_are_never_cut(cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli("methods").out
    assert all(f" {name} " in out for name in METHODS)
    assert "…" not in out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_words_of_options_and_settings_are_never_broken(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = cli("methods", "ugs").out.replace(":", " ").split()
    for option in ("search_weight_decay", "round_epochs", "weight_l1"):
        assert words.count(option) == 2, "an option, and a column of the published settings"
    assert {"ogbn-proteins", "resgcn", "remaining", "pressure", "masks"} <= set(words)
    assert ("┃" in words) == (width > 40), "one by one where a table is too wide"


def test_a_users_own_is_told_like_ours(cli: Cli, own_module: OwnModule) -> None:
    own_module(
        "told",
        """
from dataclasses import dataclass
from fastglt.methods.random import RandomPruning

@dataclass(frozen=True, kw_only=True)
class Told(RandomPruning):
    name = "told"
    summary = "for tests"
    strength: int = 1  # how [strong] it is
""",
    )
    facts = cli("methods", "told:Told", "--json").document
    assert (facts["name"], facts["options"][0]["about"]) == ("told", "how [strong] it is")
    assert not any("Told(" in text for text in facts["about"]), "the signature that dataclasses write is no text"
    assert "how [strong] it is" in cli("methods", "told").out


def test_an_unknown_name_is_told(cli: Cli) -> None:
    result = cli("methods", "usg")
    assert result.code == 2
    assert "unknown method (got 'usg'); did you mean 'ugs'?" in result.err
