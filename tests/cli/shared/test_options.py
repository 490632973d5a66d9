"""`--option NAME=VALUE`, on the command line and in a config file; `--method module:Class`."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SHORT, TINY, Cli
from tests.conftest import OwnModule


def options(folder: Path) -> dict[str, object]:
    settings: dict[str, dict[str, object]] = json.loads((folder / "run.json").read_text())["settings"]
    return settings["options"]


def test_options_reach_the_method_in_its_types(find: Cli, tmp_path: Path) -> None:
    given = ("--option", "round-epochs=2", "--option", "train_rounds=no", "--option", "weight_share=0.9")
    result = find("--method", "ugs", *given, "--json", "--quiet", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert result.document["search_epochs"] == 2 * 6  # five rounds of masks, and one training
    found = options(tmp_path / "run")
    assert (found["round_epochs"], found["train_rounds"], found["weight_share"]) == (2, False, 0.9)


@pytest.mark.parametrize("text", ["option: [swap_fraction=0.1, ramp=1]", "option: {swap_fraction: 0.1, ramp: 1}"])
def test_options_in_a_config_file(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    arguments = ("--dataset", TINY, *SHORT, "--quiet", "--config", tmp_path / "run.yaml")
    result = cli("find", *arguments, "--decay", "2", "--out", tmp_path / "a")
    assert result.code == 0, result.err
    found = options(tmp_path / "a")
    assert (found["swap_fraction"], found["ramp"], found["decay"]) == (0.1, 1.0, 2.0)


def test_one_option_in_a_config_file_gives_way_to_the_command_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("option: ramp=1")
    arguments = ("--dataset", TINY, *SHORT, "--quiet", "--config", tmp_path / "run.yaml")
    assert cli("find", *arguments, "--option", "ramp=0.5", "--out", tmp_path / "a").code == 0
    assert options(tmp_path / "a")["ramp"] == 0.5


@pytest.mark.parametrize(
    ("text", "arguments", "ramp"),
    [
        ("ramp: 0.5", ("--option", "ramp=1"), 1.0),
        ("option: {ramp: 0.5}", ("--ramp", "1"), 1.0),
        ("ramp: ~", ("--option", "ramp=1"), 1.0),
        ("ramp: Null", (), 0.8),
        ("~", (), 0.8),
    ],
)
def test_the_command_line_wins_whichever_way_an_option_is_written(
    cli: Cli, tmp_path: Path, text: str, arguments: tuple[str, ...], ramp: float
) -> None:
    (tmp_path / "run.yaml").write_text(text)
    given = ("--dataset", TINY, *SHORT, "--quiet", "--config", tmp_path / "run.yaml", *arguments)
    result = cli("find", *given, "--out", tmp_path / "a")
    assert result.code == 0, result.err
    assert options(tmp_path / "a")["ramp"] == ramp


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ramp: 0.5\noption: {ramp: 1}", "an option must be given once (got 'ramp' twice)"),
        (
            "weight_sparsity: 0.5\nweight-sparsity: 0.7",
            "an option must be given once (got 'weight_sparsity' twice in",
        ),
        ("weight_sparsity: ~\nweight-sparsity: 0.7", "must be given once (got 'weight_sparsity' twice in"),
        ("seed: 1\nseed: 2", "must be YAML (got: 'seed' twice"),
        ("seed: true", "Invalid value for '--seed'"),
        ("seed: 1:30", "Invalid value for '--seed'"),
    ],
)
def test_a_config_file_says_one_thing(find: Cli, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    result = find("--config", tmp_path / "run.yaml", "--out", tmp_path / "run")
    assert (result.code, message in " ".join(result.err.split())) == (2, True), result.err


def test_a_flag_in_a_config_file(find: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("quiet: true\ndry-run: yes\n")
    result = find("--config", tmp_path / "run.yaml", "--out", tmp_path / "run")
    assert (result.code, (tmp_path / "run").exists()) == (0, False)


BAD = {
    "unknown": (
        ("--option", "speed=3"),
        "method 'fastglt' has no option 'speed'; it takes decay, edge_score, ramp, start, swap_fraction",
    ),
    "of another method": (
        ("--method", "random", "--option", "ramp=1"),
        "'random' has no option 'ramp'; it takes none",
    ),
    "wrong type": (
        ("--option", "ramp=steep"),
        "option 'ramp' of method 'fastglt' must be a number (got 'steep')",
    ),
    "refused by the method": (("--option", "ramp=7"), "ramp must lie in (0, 1] (got 7.0)"),
    "no value": (("--option", "ramp"), "--option must be NAME=VALUE (got 'ramp')"),
    "no name": (("--option", "=1"), "--option must be NAME=VALUE (got '=1')"),
    "twice": (("--option", "ramp=1", "--option", "ramp=0.5"), "an option must be given once (got 'ramp' twice)"),
    "twice in two ways": (("--option", "ramp=1", "--ramp", "1"), "an option must be given once (got 'ramp' twice)"),
    "unknown module": (("--method", "no_such:Thing"), "'no_such' of method 'no_such:Thing' must be importable"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_one_clear_line(
    find: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = find(*arguments, "--out", tmp_path / "run")
    assert (result.code, message in result.err, "Traceback" in result.err) == (2, True, False), result.err
    assert not (tmp_path / "run").exists()


MINE = """
from dataclasses import dataclass
from fastglt.methods.random import RandomPruning

@dataclass(frozen=True, kw_only=True)
class Mine(RandomPruning):
    name = "mine"
    summary = "for tests"
    strength: int = 1
"""


def test_another_version_of_a_users_method_is_another_run(find: Cli, own_module: OwnModule) -> None:
    own_module("versioned", MINE)
    for _ in range(2):
        assert find("--method", "versioned:Mine", "--quiet", "--out", "run").code == 0
    del sys.modules["versioned"]
    importlib.invalidate_caches()
    own_module("versioned", MINE.replace("int = 1", "int = 1 + 0"))
    result = find("--method", "versioned:Mine", "--quiet", "--out", "run")
    assert result.code == 2
    assert "holds another run (the method's code is another there)" in result.err


DEEP = "[" * 5000
HOSTILE = {
    "lists in each other": (DEEP, "too deep in each other"),
    "mappings in each other": ("{a: " * 5000, "too deep in each other"),
    "a list of lists": ("method: [[a]]", "must be one value, or a list"),
    "aliases of aliases": ("model: &a [x, x]\nmethod: [*a, *a]", "must be one value, or a list or a mapping"),
    "a mapping of lists": ("option: {ramp: [1]}", "must be one value, or a list or a mapping"),
    "a key that is a list": ("? [a, b]\n: 1", "must be YAML"),
    "a control character": ('model: "gcn\\e[31m"', "must be a text that can be typed"),
    "half of a pair": ('model: "\\ud800"', "must be a text that can be typed"),
    "a character that is none": ('model: "\\U7fffffff"', "must be YAML"),
    "bytes": (b"\xff\xfe\xff", "must be YAML"),
    "a tag": ("model: !!python/object/apply:os.system [ls]", "unknown model .got 'ls'"),
    "too much": ("model: " + "x" * 300_000, "must have at most 262,144 bytes"),
    "many names": ("".join(f"a{number}: 1\n" for number in range(20_000)), "unknown option"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_config_is_one_clear_line(cli: Cli, tmp_path: Path, text: str | bytes, message: str) -> None:
    config = tmp_path / "run.yaml"
    config.write_bytes(text.encode() if isinstance(text, str) else text)
    result = cli("find", "--config", config, "--out", tmp_path / "run")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert re.search(message, result.err), result.err
    assert not (tmp_path / "run").exists()
