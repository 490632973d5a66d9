"""Every finished training of an evaluation in the results store: a kill costs one, and dense twins are shared."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastglt.judge.evaluate import Contest
from fastglt.judge.rounds import Ledger
from fastglt.runs.store import Entry, Store, key_of
from fastglt.system.container import nan_as_null
from fastglt.tickets.networks import edge_values
from fastglt.tickets.phases import DENSE, DISTILLED, PhaseResult


class StoredTrainings(Ledger):
    """Looks a training up before it is run, and writes it down when it is done.

    Without a store it can be asked what the ticket's own run has, for a dry run.
    """

    def __init__(
        self,
        store: Store | None,
        machine: Mapping[str, Any],
        about: Mapping[str, Any],
        *,
        command: str = "evaluate",
    ) -> None:
        self._store, self._machine, self._about, self._command = store, machine, about, command
        self._known: dict[str, float] = {}
        self._new: dict[str, Mapping[str, float]] = {}  # scores on hidden nodes, as a ticket or an entry names them
        self.recalled = self.kept = 0
        self.stop = False  # set it to stop after the epoch that is running

    def trust(self, contest: Contest, run: Mapping[str, Any]) -> None:
        """Take over what the ticket's own run has trained, if its settings say that it would come out the same."""
        ticket = contest.ticket
        values = {"edge_values": None, **edge_values(contest.network, contest.task)}
        same = {**contest.task.digests, **values, **self._machine, "seed": ticket.seed}
        if contest.fresh_init or any(run.get(name) != value for name, value in same.items()):
            return
        for side in contest.sides:
            settings = contest.settings(side, contest.network, ticket.seed)
            name = f"{_side(settings)}_test"
            if name in ticket.scores:
                key, prefix = key_of(self._whole(settings)), f"{_side(settings)}_new"
                self._known[key] = ticket.scores[name]
                self._new[key] = {n: score for n, score in ticket.scores.items() if n.startswith(prefix)}

    def recall(self, settings: dict[str, Any]) -> float | None:
        """The test score of the ticket's own run, or in the latest entry with these settings."""
        score = self._look_up(settings)
        self.recalled += score is not None
        return score

    def recall_new(self, settings: dict[str, Any], names: Sequence[str]) -> dict[str, float] | None:
        """The scores on hidden nodes, from where the test score is."""
        key, side = key_of(self._whole(settings)), _side(settings)
        found: Mapping[str, Any] = self._new.get(key, {})
        if not found and self._store is not None and (entry := self._store.find(key)) is not None:
            found = entry.metrics
        wanted = {name: found.get(f"{side}_{name}") for name in names}
        known = {name: float(score) for name, score in wanted.items() if score is not None}
        return known if len(known) == len(wanted) else None

    def knows(self, settings: dict[str, Any]) -> bool:
        """Whether a training need not be run."""
        return self._look_up(settings) is not None

    def _look_up(self, settings: dict[str, Any]) -> float | None:
        key = key_of(self._whole(settings))
        score = self._known.get(key)
        if score is None and self._store is not None and (found := self._store.find(key)) is not None:
            score = float(found.metrics[f"{_side(settings)}_test"])
        return score

    def keep(self, settings: dict[str, Any], result: PhaseResult) -> None:
        """Write a training down, as that of a dense twin or of a ticket in isolation."""
        self.keep_new(settings, result, {})

    def keep_new(self, settings: dict[str, Any], result: PhaseResult, new: Mapping[str, float]) -> None:
        """Write a training down, with its scores on hidden nodes."""
        side, whole, scores = _side(settings), self._whole(settings), result.best.scores
        ticket = self._about["ticket"] if side == "isolated" else None
        shared = ("dataset", "model") if ticket is None else tuple(name for name in self._about if name != "ticket")
        metrics = {
            **{name: self._about[name] for name in shared},
            **nan_as_null({f"{side}_val": scores.val, f"{side}_test": scores.test}),
            **{f"{side}_{name}": score for name, score in new.items()},
            f"{side}_seconds": result.seconds,
        }
        assert self._store is not None, "a store that is not there is only looked at"
        self._store.record(
            Entry(
                key=key_of(whole),
                kind="evaluation",
                command=self._command,
                settings=whole,
                metrics=metrics,
                ticket=ticket,
            )
        )
        self.kept += 1

    def after_epoch(self) -> None:
        """Stop here if told to; what is finished is kept."""
        if self.stop:
            done = self.recalled + self.kept
            raise KeyboardInterrupt(f"{done} finished training{'' if done == 1 else 's'} of this ticket")

    def _whole(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, **self._machine}


def _side(settings: Mapping[str, Any]) -> str:
    """The phase that made a training's scores."""
    if settings["masks"] is not None:
        return "isolated"
    return DISTILLED if "distill" in settings else settings.get("twin", DENSE)
