"""`fastglt find --prefer`: what was chosen on validation scores, and the proof on fresh seeds."""

import os
import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fastglt.cli.shared.options import asked_for
from fastglt.errors import InputError
from fastglt.report.tables import empty_table, print_table, print_text, say
from fastglt.report.wording import counted, mean_and_deviation, percent, signed

if TYPE_CHECKING:
    from fastglt.cli.shared.setup import Setup
    from fastglt.judge import Verdict
    from fastglt.studies.prefer import Preferred

CHOSEN = ("graph_sparsity", "weight_sparsity", "structure", "distill", "method", "inductive")  # by a preference
_OF_THE_METHOD = ("option", "start", "swap_fraction", "decay", "edge_score", "ramp", "robust")
_CHOOSING, _PROVING = 3, 5  # seeds


def refuse_choices(context: typer.Context) -> None:
    """What a preference chooses cannot be given beside it."""
    given = asked_for(context)
    for name in (*CHOSEN, *_OF_THE_METHOD):
        if name in given:
            what = "it" if name in CHOSEN else "the method"
            rule = f"{given[name]} must come without --prefer, which chooses {what}"
            raise InputError(f"{rule} (got both); leave one out")


def choose(
    preference: str, setup: "Setup", *, seed: int, store: Path, checkpoint_every: float, dry_run: bool, quiet: bool
) -> "Preferred":
    """Walk along the preference's ladder, with a few seeds from the given one on."""
    from fastglt.cli.shared.series import teller
    from fastglt.studies.prefer import prefer
    from fastglt.studies.shared import Study

    given = setup.as_arguments
    for name in ("structure", "distill", "inductive"):
        given.pop(name, None)
    rule = "--prefer needs test nodes to prove its choice on"
    Study(command="prefer", methods="forest", **given).require_test_nodes(rule, "find a ticket without --prefer")
    return prefer(
        preference,
        given.pop("dataset"),
        seeds=range(seed, seed + _CHOOSING),
        store=store,
        checkpoint_every=checkpoint_every,
        dry_run=dry_run,
        progress=teller(quiet=quiet),
        **given,
    )


def fresh_seeds(seed: int) -> list[int]:
    """The seeds that prove: none that has chosen."""
    return list(range(seed + _CHOOSING, seed + _CHOOSING + _PROVING))


def tell_chosen(found: "Preferred", setup: "Setup", *, seed: int, threads: int) -> None:
    """Every way at every pair of sparsities, on validation scores, and what was chosen."""
    console = Console(stderr=True)
    table = empty_table("way", "edges gone", "weights gone", "dense", "ticket", "difference", left=("way",))
    for row in found.tried:
        one = row["isolated_val"]
        shares = (f"{percent(row[f'{part}_sparsity'])} %" for part in ("graph", "weight"))
        scores = (mean_and_deviation(one[f"{side}_mean"], one[f"{side}_std"]) for side in ("dense", "ticket"))
        table.add_row(row["method"], *shares, *scores, signed(one["difference"]))
    say("Validation scores in %, retrained from initial weights:", err=True)
    print_table(table, console)
    for way, reason in found.refused.items():
        say(f"not tried, {way}: {reason}", err=True)
    if found.way is not None:
        print_text(f"Chosen on validation scores: {as_command(found, setup, seed=seed, threads=threads)}", console)


def as_command(found: "Preferred", setup: "Setup", *, seed: int, threads: int) -> str:
    """The command that finds the chosen ticket again."""
    assert found.way is not None
    assert found.targets is not None
    words = ["fastglt", "find", "--dataset", setup.dataset, "--model", setup.model, "--method", found.way.method]
    words += ["--structure", found.way.structure, *["--distill"] * found.way.taught]
    words += ["--graph-sparsity", f"{found.targets.graph_sparsity:g}"]
    words += ["--weight-sparsity", f"{found.targets.weight_sparsity:g}", "--seed", str(seed)]
    words += ["--threads", str(threads)] if threads else []
    return shlex.join([*words, *_said(setup)])


def _said(setup: "Setup") -> list[str]:
    """The options of a setup that differ from their defaults, but for those that the command has anyhow."""
    words, known = list[str](), {"dataset", "model", *CHOSEN}
    if str(setup.data_root) == os.environ.get("FASTGLT_DATA"):
        known.add("data_root")
    for option in fields(setup):
        value = getattr(setup, option.name)
        if option.name in known or value == option.default:
            continue
        flag = f"--{option.name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            words += [flag] if one is True else [flag, str(one)]
    return words


def nothing_found(found: "Preferred") -> str:
    """What to say where no way leads to a ticket that is as good as dense."""
    if found.failures:
        return f"No answer: {counted(len(found.failures), 'run')} failed; the same command tries again."
    best = max(found.tried, key=lambda row: row["isolated_val"]["difference"], default=None)
    if best is None:
        return "No ticket qualifies: nothing could be tried."
    shares = " and ".join(
        f"{percent(best[f'{part}_sparsity'])} % of the {name}"
        for part, name in (("graph", "edges"), ("weight", "weights"))
    )
    below = signed(best["isolated_val"]["difference"])
    return (
        f"No ticket qualifies: on validation nodes none of {len(found.tried)} tries is as good as dense. "
        f"The closest, {best['method']} without {shares}, differs by {below} points."
    )


def prove(
    folder: Path, seeds: list[int], *, threads: int, device: str, store: Path, quiet: bool
) -> tuple[dict[str, Any], "Verdict"]:
    """Judge the ticket in a folder with these seeds, as `fastglt evaluate` does."""
    from fastglt.cli.shared.judging import Loader, Trials, judge
    from fastglt.cli.shared.tickets import OwnGraph
    from fastglt.report.bars import TimeLeft
    from fastglt.runs.experiment import machine_settings

    judged = Loader(OwnGraph(), device=device, fresh_init=False).open(folder)
    machine = machine_settings(threads, device)
    given: dict[str, Any] = {"machine": machine, "store": store, "command": "evaluate", "quiet": quiet}
    trials = Trials(seeds=seeds, margin=0.01, level=0.05, **given)
    verdict = judge(judged, trials, TimeLeft(trials.pending([judged])))
    return judged.document(verdict), verdict


def proof(preference: str, verdict: "Verdict") -> str:
    """What the fresh seeds say, in a sentence."""
    from fastglt.studies.prefer import PREFERENCES

    wanted = f"the {preference} network that was asked for ({PREFERENCES[preference].about})"
    if verdict.non_inferior:
        return f"Proved on {verdict.n} fresh seeds: {wanted} is no worse than dense by more than 1 point."
    return (
        f"Not proved on {verdict.n} fresh seeds: {wanted} was as good as dense on validation nodes alone. "
        "fastglt evaluate with more seeds may decide; fastglt find with lower sparsities keeps more."
    )
