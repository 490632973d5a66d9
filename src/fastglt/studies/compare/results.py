"""From finished and failed runs to cells: one for each method at each pair of sparsities, over all seeds."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from fastglt.judge.verdict import Verdict
from fastglt.methods.parts.schedules import kept_count
from fastglt.report.tables import as_plain_text
from fastglt.report.wording import OPPONENTS
from fastglt.runs.engine import Outcome
from fastglt.runs.experiment import Experiment
from fastglt.runs.plan import Run
from fastglt.studies.compare.between import between_methods
from fastglt.studies.compare.table import print_cells
from fastglt.tickets.phases import DENSE, DISTILLED

if TYPE_CHECKING:
    from fastglt.report.charts import Picture

Row = dict[str, Any]
NOT_RUN = "it was not run"
_KEPT = ("edges_kept", "edges_total", "weights_kept", "weights_total")
_NEW = ("search_new", "search_new_kept", "isolated_new", "isolated_new_kept")  # on hidden nodes
_RUNS = ("search", "search_unweighted", "isolated")
_COSTS = ("search_epochs", "search_seconds", "isolated_seconds", "dense_seconds", "relative_time")
_MACS = ("macs_dense", "macs_ticket", "macs_paper_dense", "macs_paper_ticket")


class Comparison:
    """Methods side by side: a row for each ticket, a cell for each method over its seeds. Printed, a table."""

    def __init__(self, runs: Sequence[Run], outcomes: Iterable[Outcome]) -> None:
        self._runs = runs
        self._outcomes = {outcome.run.folder: outcome for outcome in outcomes}
        self._twins = tuple(twin for twin in OPPONENTS if any(twin in run.twins for run in runs)) or (DENSE,)
        self.distilled = DISTILLED in self._twins  # tickets have two opponents, or three
        self.inductive = any(run.experiment.inductive is not None for run in runs)  # nodes were hidden
        self._scores = tuple(f"{run}_{part}" for run in (*self._twins, *_RUNS) for part in ("val", "test"))
        if self.inductive:
            self._scores += (*(f"{twin}_new" for twin in self._twins), *_NEW)
        others = tuple(f"{twin}_seconds" for twin in self._twins[1:])
        self._costs = (*_COSTS, *(["teacher_seconds"] if self.distilled else []), *others)
        self.split_seeds = list(dict.fromkeys(run.experiment.split_seed for run in runs))
        self._seeds = ("split_seed", "seed") if len(self.split_seeds) > 1 else ("seed",)  # what tells runs apart

    @property
    def first_experiment(self) -> Experiment:
        """The first of the experiments that were asked for; the others share its graph and model."""
        return self._runs[0].experiment

    @property
    def failures(self) -> list[Row]:
        """Every run that failed, dense twins among them, and why."""
        return [
            {"run": run.name, "method": run.method, **self._seeds_of(run), "reason": self._reason(run)}
            for run in self._runs
            if self._reason(run)
        ]

    @property
    def warnings(self) -> list[Row]:
        """Whatever runs have warned of, such as a damaged checkpoint whose phase was done again."""
        return [
            {"run": run.name, "method": run.method, "seed": run.experiment.seed, "warning": message}
            for run in self._runs
            if run.folder in self._outcomes
            for message in self._outcomes[run.folder].warnings
        ]

    @property
    def rows(self) -> list[Row]:
        """One row for each ticket that was asked for, found or failed."""
        return [self._row(run) for run in self._runs if not run.is_dense]

    def cells(self) -> list[Row]:
        """One cell for each pair of sparsities and each method, in the order they were asked for."""
        groups: dict[tuple[float, float, str], list[Run]] = {}
        for run in (run for run in self._runs if not run.is_dense):
            targets = run.experiment.targets
            groups.setdefault((targets.graph_sparsity, targets.weight_sparsity, run.method), []).append(run)
        return [self._cell(runs) for runs in groups.values()]

    def document(self) -> dict[str, Any]:
        """Everything as plain values: fractions, not per cent."""
        first, cells = self._runs[0].experiment, self.cells()
        return {
            "dataset": first.dataset,
            "model": first.model_name,
            "metric": next((o.metrics["metric"] for o in self._outcomes.values() if o.metrics is not None), None),
            "hidden": first.hidden,
            **({"inductive": first.inductive} if self.inductive else {}),
            "budget": first.budget.settings,
            **self._splits,
            "seeds": list(dict.fromkeys(run.experiment.seed for run in self._runs)),
            "out": str(self._runs[0].folder.parent),
            "cells": cells,
            "between_methods": between_methods(cells),
            "failures": self.failures,
            **({"warnings": self.warnings} if self.warnings else {}),
        }

    def __str__(self) -> str:
        return as_plain_text(lambda console: print_cells(self.document(), console))

    def plot(self, kind: str = "methods") -> "Picture":
        """A picture: `methods` side by side, `verdicts`, scores over `sparsity`, or `front` (score and cost)."""
        from fastglt.studies.compare.showing import picture

        return picture(self, kind)

    def _repr_html_(self) -> str:
        from fastglt.studies.compare.showing import as_html

        return as_html(self)

    def csv(self) -> str:
        """The rows as a table for spreadsheets, with their headings."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def _cell(self, runs: Sequence[Run]) -> Row:
        rows = [self._row(run) for run in runs]
        done = [row for row in rows if not row["reason"]]
        values = {key: [row[key] for row in done if row[key] is not None] for key in (*self._scores, *self._costs)}
        targets = runs[0].experiment.targets.settings
        return {
            "method": runs[0].method,
            "options": runs[0].settings["options"],
            **targets,
            "n": len(done),
            **{f"n_{twin}": len(values[f"{twin}_seconds"]) for twin in self._twins},
            "mean": {key: mean(found) for key, found in values.items()},
            "std": {key: deviation(found) for key, found in values.items()},
            **{f"verdicts{twin.removeprefix(DENSE)}": _verdicts(done, twin) for twin in self._twins},
            **{key: sorted({row[key] for row in done}) for key in _KEPT},
            "edges_exact": all(_is_exact(row, "edges", "graph_sparsity") for row in done),
            "weights_exact": all(_is_exact(row, "weights", "weight_sparsity") for row in done),
            "rounds": _rounds([self._rounds_of(run) for run in runs]),
            "runs": rows,
            "failures": [{key: row[key] for key in (*self._seeds, "reason")} for row in rows if row["reason"]],
        }

    def _row(self, run: Run) -> Row:
        found = dict(self._metrics(run.folder))
        search, teacher = found.get("search_seconds"), found.get("teacher_seconds", 0.0)
        for twin in map(self._metrics, run.twins.values()):
            found |= {key: value for key, value in twin.items() if key.startswith("dense_")}
        trained = found.get("dense_seconds")
        return {
            "method": run.method,
            **run.experiment.targets.settings,
            **self._seeds_of(run),
            **{key: found.get(key) for key in (*self._scores, *_KEPT)},
            **{key: found.get(key) for key in self._costs},
            "relative_time": (teacher + search) / trained if search is not None and trained else None,
            **{key: found.get(key) for key in _MACS},
            "folder": self._place(run),
            "reason": self._reason(run),
        }

    def _seeds_of(self, run: Run) -> Row:
        return {key: getattr(run.experiment, key) for key in self._seeds}

    @property
    def _splits(self) -> Row:
        """The split seed, or several."""
        first, *more = self.split_seeds
        return {"split_seed": None, "split_seeds": self.split_seeds} if more else {"split_seed": first}

    def _metrics(self, folder: Path) -> Mapping[str, Any]:
        outcome = self._outcomes.get(folder)
        return {} if outcome is None or outcome.metrics is None else outcome.metrics

    def _place(self, run: Run) -> str:
        """Where the ticket is: a run that was taken from the store has no folder of this series."""
        outcome = self._outcomes.get(run.folder)
        return str(run.folder) if outcome is None or outcome.place is None else outcome.place

    def _rounds_of(self, run: Run) -> Sequence[Row]:
        found: Sequence[Row] = self._metrics(run.folder).get("rounds", ())
        return found

    def _reason(self, run: Run) -> str:
        outcome = self._outcomes.get(run.folder)
        return NOT_RUN if outcome is None else outcome.reason


def _verdicts(rows: Sequence[Row], twin: str) -> dict[str, Row | None]:
    """A twin against each of a method's two scores."""
    return {score: verdict_of(rows, score, twin) for score in ("search", "isolated")}


def verdict_of(rows: Sequence[Row], score: str, twin: str = DENSE) -> Row | None:
    """A twin against one of a method's scores, over the runs that have both; None where there are none."""
    dense, ticket = f"{twin}_test", f"{score}_test"
    pairs = [row for row in rows if row[dense] is not None and row[ticket] is not None]
    if not pairs:
        return None
    seeds, dense_scores, ticket_scores = (tuple(row[key] for row in pairs) for key in ("seed", dense, ticket))
    return Verdict(
        seeds=seeds,
        split_seeds=tuple(row["split_seed"] for row in pairs if "split_seed" in row),
        dense_scores=dense_scores,
        ticket_scores=ticket_scores,
        against=twin,
    ).as_dict()


def mean(values: Sequence[float]) -> float | None:
    """Their mean, if there are any."""
    return fmean(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """Their standard deviation (n − 1), if there are two at least."""
    return stdev(values) if len(values) > 1 else None


def _is_exact(row: Row, part: str, sparsity: str) -> bool:
    """Whether a ticket keeps exactly what was asked for."""
    return bool(row[f"{part}_kept"] == kept_count(row[sparsity], row[f"{part}_total"]))


def _rounds(seeds: Sequence[Sequence[Row]]) -> list[Row]:
    """The sparsity curve of an iterative method: every round's tickets over all seeds."""
    found = []
    for number in range(max(map(len, seeds), default=0)):
        here = [rounds[number] for rounds in seeds if number < len(rounds)]
        scores = {key: [row[key] for row in here if row[key] is not None] for key in ("search_val", "search_test")}
        found.append(
            {
                "round": here[0]["round"],
                "n": len(here),
                **{key: mean([row[key] for row in here]) for key in ("graph_sparsity", "weight_sparsity")},
                "mean": {key: mean(values) for key, values in scores.items()},
                "std": {key: deviation(values) for key, values in scores.items()},
            }
        )
    return found
