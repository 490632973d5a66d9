from pathlib import Path

from fastglt.pages.plots import PLOTS
from tests.cli.conftest import Cli
from tests.pages.stores import store as make_store
from tests.pages.stores import study


def test_figures_are_listed(cli: Cli) -> None:
    assert [line.split(":")[0] for line in cli("plot", "list").out.splitlines()] == list(PLOTS)


def test_a_figure_of_the_store_is_written(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, study(2))
    done = cli("plot", "sparsity", "--out", tmp_path / "fig.svg", "--number", 2, "--dark", "--width", 400)
    assert done.code == 0
    assert "retrained alone" in done.out
    assert (tmp_path / "fig.svg").read_text().startswith("<svg")
    listed = cli("plot", "sparsity")
    assert [line[:2] for line in listed.out.splitlines()] == ["1:", "2:"]


def test_figures_of_a_ticket_are_written(find: Cli, cli: Cli, tmp_path: Path) -> None:
    assert find("--out", tmp_path / "run").code == 0
    for name in ("training", "graph", "effects", "cost"):
        assert cli("plot", name, tmp_path / "run", "--out", tmp_path / f"{name}.png").code == 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_link_ticket_of_another_split_and_a_round_are_drawn(find: Cli, cli: Cli, tmp_path: Path) -> None:
    links, rounds = tmp_path / "links", tmp_path / "rounds-run"
    assert find("--task", "link", "--split-seed", 3, "--quiet", "--out", links).code == 0
    options = ("--method", "ugs", "--option", "round_epochs=2", "--split-seed", 3, "--quiet", "--out", rounds)
    assert find(*options).code == 0
    for place in (links, rounds / "rounds" / "01.safetensors"):
        for name in ("graph", "effects"):
            drawn = cli("plot", name, place, "--out", tmp_path / "fig.svg")
            assert drawn.code == 0, drawn.err
    other = cli("plot", "graph", links, "--dataset", "digits", "--out", tmp_path / "fig.svg")
    assert (other.code, "pass that one as --dataset" in other.err) == (2, True), other.err


def test_what_cannot_be_drawn_is_one_line(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, study(1)[:1])
    for arguments, told in (
        (("curves",), "unknown figure (got 'curves')"),
        (("sparsity",), "for which runs must be there (got 0 settings"),
        (("training",), "needs a ticket's file"),
    ):
        done = cli("plot", *arguments, "--out", tmp_path / "fig.svg")
        assert done.code == 2
        assert told in done.err
    make_store(store, study(1))
    assert "--number must be one of 2 pictures (got 3)" in cli("plot", "sparsity", "--number", 3).err


def test_a_store_that_is_not_there_is_told_once(cli: Cli, tmp_path: Path) -> None:
    done = cli("plot", "sparsity")
    assert (done.code, done.err.count("which is not there")) == (2, 1)
    assert "(got 0 settings)" in done.err
