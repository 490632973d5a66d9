"""Tickets from the command line before the judge: opened with their tasks, trained, and told of."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastglt.cli.shared.tickets import (
    OwnGraph,
    open_ticket,
    refuse_users_model,
    run_settings,
    same_split,
    warnings_told,
)
from fastglt.errors import InputError
from fastglt.report.tables import say
from fastglt.report.wording import counted

if TYPE_CHECKING:
    from fastglt.judge import Contest, Verdict
    from fastglt.judge.ledger import StoredTrainings
    from fastglt.methods import Budget
    from fastglt.models import Network
    from fastglt.report.bars import TimeLeft
    from fastglt.tasks import Task
    from fastglt.tasks.inductive import Inductive
    from fastglt.tickets.ticket import Ticket


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A ticket that is ready to be judged."""

    file: Path
    dataset: str
    contest: "Contest"
    same_split: bool | None  # as the search's; None if nobody knows

    @property
    def facts(self) -> dict[str, Any]:
        """What is judged."""
        ticket = self.contest.ticket
        return {
            "ticket": str(self.file.absolute()),
            "dataset": self.dataset,
            "model": ticket.model["name"],
            "method": ticket.config["method"],
            **self.contest.budget.teaching,
            **({"inductive": hidden.share, **hidden.facts} if (hidden := self.contest.inductive) else {}),
            "graph_sparsity": ticket.graph_sparsity,
            "weight_sparsity": ticket.weight_sparsity,
        }

    def require_hidden(self, share: float | None) -> None:
        """Refuse a ticket whose search has seen all nodes, or another share of them, where one is asked for."""
        hidden = self.contest.inductive
        found = None if hidden is None else hidden.share
        if share is not None and share != found:
            rule = "a ticket can only be judged on nodes that were hidden from its search"
            got = "no node hidden" if found is None else f"{found:g} of the nodes hidden"
            raise InputError(f"{rule} (got '{self.file}' with {got}); find it with --inductive {share:g}")

    def document(self, verdict: "Verdict") -> dict[str, Any]:
        """The whole result as plain values."""
        from fastglt.system.container import nan_as_null

        return {
            **self.facts,
            "ticket": str(self.file),
            "metric": self.contest.task.metric,
            "fresh_init": self.contest.fresh_init,
            "same_split": self.same_split,
            "epochs": self.contest.budget.epochs,
            **verdict.as_dict(),
            **nan_as_null(self.contest.search_scores()),
        }


@dataclass
class Loader:
    """Opens tickets with their tasks; tickets whose graph, split and task are equal share it."""

    graph: OwnGraph
    device: str = field(kw_only=True)
    fresh_init: bool = field(kw_only=True)
    known: "dict[tuple[Any, ...], tuple[str, Task, Inductive | None]]" = field(default_factory=dict, init=False)

    def open(self, path: Path) -> Judged:
        """A ticket, checked as far as it can be before anything is trained."""
        from fastglt.judge import Contest

        ticket, file = open_ticket(path)
        refuse_users_model(ticket, "fastglt.evaluate(ticket, model, data)")
        with warnings_told(path):
            name, task, hidden = self._task(ticket, file)
            contest = Contest.prepare(ticket, None, task, fresh_init=self.fresh_init, inductive=hidden)
        return Judged(file=file, dataset=name, contest=contest, same_split=same_split(path, file, task))

    def _task(self, ticket: "Ticket", file: Path) -> "tuple[str, Task, Inductive | None]":
        from fastglt.runs.own_graph import task_and_hidden

        place = (*self.graph.place(file), self.graph.split_seed_of(file))
        said = [ticket.task_options, ticket.config["metric"], ticket.config.get("inductive")]
        key = (*place, ticket.task, json.dumps(said, sort_keys=True))
        if key not in self.known or self.known[key][1].graph.fingerprint != ticket.graph_fingerprint:
            found = self.graph.load_at(*place)
            self.known[key] = (found.name, *task_and_hidden(ticket, found, device=self.device))
        return self.known[key]


@dataclass(frozen=True, kw_only=True)
class Trials:
    """How tickets are judged: with which seeds, by which rule, on which machine, and where it is written down."""

    seeds: Sequence[int]
    margin: float
    level: float
    machine: dict[str, Any]
    store: Path
    command: str
    quiet: bool

    def ledger(self, judged: Judged, *, writes: bool = True) -> "StoredTrainings":
        """What is known of a ticket's trainings; a store that is not there is made only to be written to."""
        from fastglt.judge.ledger import StoredTrainings
        from fastglt.runs.store import Store

        store = Store(self.store) if writes or self.store.exists() else None
        ledger = StoredTrainings(store, self.machine, judged.facts, command=self.command)
        ledger.trust(judged.contest, run_settings(judged.file))
        return ledger

    def pending(self, tickets: Sequence[Judged]) -> int:
        """How many trainings neither the store nor the tickets' own runs have; tickets share what is equal."""
        from fastglt.runs.store import key_of

        found = (one.contest.pending(self.seeds, self.ledger(one, writes=False)) for one in tickets)
        return len({key_of(settings) for pending in found for settings in pending})

    def plan(self, tickets: Sequence[Judged]) -> dict[str, Any]:
        """What judging would take: for `--dry-run`."""
        left = self.pending(tickets)
        trainings = sum(len(one.contest.sides) for one in tickets) * len(self.seeds)
        epochs = max(one.contest.budget.epochs for one in tickets)
        sides = ", ".join(side.replace("_", " ") for side in tickets[0].contest.sides)
        seeds = counted(len(self.seeds), "seed")
        return {
            "trainings": trainings,
            "about": f"{sides}; {seeds}" + f", {len(tickets)} tickets" * (len(tickets) > 1),
            "reused": max(0, trainings - left),
            "left": left,
            "epochs": left * epochs,
            "seconds": left * epochs * _time(tickets[0].contest) if left else 0.0,
        }


def _time(contest: "Contest") -> float:
    return seconds_per_epoch(contest.network, contest.task, contest.budget)


def seconds_per_epoch(network: "Network", task: "Task", budget: "Budget") -> float:
    """Of the dense network, measured on a training that is thrown away."""
    from fastglt.methods import FixedMasks
    from fastglt.runs.forecast import probe
    from fastglt.system.seeds import own_random_state
    from fastglt.training.loop import Training

    with own_random_state(task.device):
        return probe(Training(network, task, budget.recipe, seed=0), FixedMasks(budget=budget))


def judge(judged: Judged, trials: Trials, left: "TimeLeft") -> "Verdict":
    """Train what neither the store nor the ticket's own run has, and judge."""
    from fastglt.cli.shared.progress import Reporter, stop_cleanly

    ledger = trials.ledger(judged)
    with stop_cleanly(ledger), Reporter(quiet=trials.quiet, left=left) as reporter:

        def progress(phase: str, training: Any, epochs: int) -> None:
            reporter.after_epoch(phase, training, epochs)
            ledger.after_epoch()

        verdict = judged.contest.verdict(
            trials.seeds, margin=trials.margin, level=trials.level, ledger=ledger, progress=progress
        )
    if ledger.recalled and not trials.quiet:
        trainings = len(judged.contest.sides) * len(trials.seeds)
        told = f"{ledger.recalled} of {trainings} trainings were in '{trials.store}' or the ticket already"
        say(told, err=True)
    return verdict


_ROWS = {
    "new": "hidden nodes, with all their edges",
    "new_kept": "… with edges that the ticket's rule keeps",
}


def print_verdict(document: dict[str, Any], verdict: "Verdict") -> None:
    """A table, the sentence and, where seeds are few, a note."""
    from rich.console import Console

    from fastglt.report.tables import empty_table, print_text, print_wide
    from fastglt.report.wording import mean_and_deviation, percent, signed
    from fastglt.tasks.metrics import title_of

    removed = (f"{percent(document[f'{part}_sparsity'])} %" for part in ("graph", "weight"))
    method = document["method"] + ", distilled" * ("distill" in document)
    kind = f"{document['dataset']} · {document['model']} · {method}"
    title = "{}: {} · {} of edges and {} of weights removed".format(document["ticket"], kind, *removed)
    between = f"{100 * (1 - 2 * verdict.level):g} % interval"
    what = f"test {title_of(document['metric'])} in %"
    table = empty_table(what, "dense", "ticket", "difference", between, left=(what,))
    start = "trained from fresh initial weights" if document["fresh_init"] else "retrained from initial weights"
    verdicts = {f"{start}, n = {verdict.n}": verdict}
    for name, one in verdict.others.items():
        verdicts[_ROWS.get(name, f"… against {one.against.replace('_', ' ')}")] = one
    for row, one in verdicts.items():
        values = one.as_dict()
        scores = [mean_and_deviation(values[f"{side}_mean"], values[f"{side}_std"]) for side in ("dense", "ticket")]
        interval = " to ".join(map(signed, one.interval)) if all(map(math.isfinite, one.interval)) else "–"
        table.add_row(row, *scores, signed(one.difference), interval)
    table.add_row("end of the search", "", percent(document["search_test"]))
    table.add_row("… with a soft edge mask of 1", "", percent(document["search_unweighted_test"]))
    console = Console()
    print_wide(title, table, console)
    for one in (verdict, *(found for name, found in verdict.others.items() if name not in _ROWS)):
        for line in filter(None, (one.sentence, one.power_note)):
            print_text(line, console)
