"""The trainings behind a verdict: dense and ticket from the same start with the same budget, seed by seed.

A distilled ticket is taught by the dense network of the same seed, and so is a second dense network.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fastglt.errors import InputError, check_seed
from fastglt.judge.rounds import TEST, TICKET, Ledger, Round
from fastglt.judge.verdict import Verdict, check_rule
from fastglt.masks import Masks
from fastglt.methods import METHODS, FixedMasks, Method, Targets, make
from fastglt.methods.base import Budget
from fastglt.models.base import Network
from fastglt.report.bars import shown
from fastglt.system.modes import ordinary_mode
from fastglt.system.seeds import derive, own_random_state, set_random_state
from fastglt.tasks import Task
from fastglt.tasks.inductive import Inductive
from fastglt.tickets.networks import check_fits, edge_values, fresh_start, restore_start
from fastglt.tickets.new_nodes import NEW, NEW_KEPT, check_network
from fastglt.tickets.phases import (
    DENSE,
    DISTILLED,
    SAME_LR,
    Progress,
    fixed_recipe,
    opponents,
    score_state,
)
from fastglt.tickets.seen import seen_part
from fastglt.tickets.ticket import Ticket, masks_hash, state_hash

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A ticket and its dense twin, or twins, ready to be trained in isolation."""

    ticket: Ticket
    task: Task
    network: Network  # at the ticket's Θ0
    masks: Masks
    inductive: Inductive | None = None  # where nodes were hidden; the task is the seen part
    fresh_init: bool = (
        False  # each seed brings a Θ0 of its own, for both sides: does the structure win without its own?
    )

    @staticmethod
    def prepare(
        ticket: Ticket,
        model: nn.Module | str | None,
        task: Task,
        *,
        fresh_init: bool = False,
        other_graph: bool = False,
        inductive: Inductive | None = None,
    ) -> "Contest":
        """Check all that can be checked before anything is trained."""
        if not task.has_test:
            raise InputError("data.test_mask must select at least one node to judge by (got none)")
        ticket.check(task, other_graph=other_graph)
        network, masks = restore_start(ticket, model)
        check_fits(network, task, soft_edges=False)
        if inductive is not None:
            check_network(network, inductive)
        given: dict[str, Any] = {"network": network, "masks": masks, "inductive": inductive}
        return Contest(ticket=ticket, task=task, fresh_init=fresh_init, **given)

    @property
    def budget(self) -> Budget:
        """That of the search's run, for all sides."""
        return Budget(**self.ticket.config["budget"])

    @property
    def sides(self) -> tuple[str, ...]:
        """What is trained for each seed."""
        first, *others = opponents(self.budget)
        return (first, TICKET, *others)

    def verdict(
        self,
        seeds: Sequence[int],
        *,
        margin: float = 0.01,
        level: float = 0.05,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Verdict:
        """Train all sides once for each seed, but for what the ledger has already, and compare."""
        check_rule(margin, level)
        seeds = _checked(seeds)
        ledger = ledger or Ledger()
        identical = self._identical(seeds)
        scores: dict[str, list[dict[str, float]]] = {side: [] for side in self.sides}
        for seed in seeds[:1] if identical else seeds:
            round_of_seed = Round(self, self._start(seed), seed, ledger, progress)
            for side, found in scores.items():
                found.append(round_of_seed.scores(side))
        copies = len(seeds) if identical else 1

        def of(side: str, name: str = TEST) -> tuple[float, ...]:
            return tuple([one[name] for one in scores[side]] * copies)

        judge = partial(Verdict, seeds=tuple(seeds), margin=margin, level=level, identical=identical)
        mine, opponent = of(TICKET), partial(of, DENSE)
        others = {
            side: judge(dense_scores=of(side), ticket_scores=mine, against=side)
            for side in (DISTILLED, SAME_LR)
            if side in scores
        }
        hidden = {
            name: judge(dense_scores=opponent(NEW), ticket_scores=of(TICKET, name))
            for name in ((NEW, NEW_KEPT) if self.inductive is not None else ())
        }
        return judge(
            dense_scores=opponent(),
            ticket_scores=mine,
            distilled=others.get(DISTILLED),
            same_lr=others.get(SAME_LR),
            new=hidden.get(NEW),
            new_kept=hidden.get(NEW_KEPT),
        )

    def pending(self, seeds: Sequence[int], ledger: Ledger) -> list[dict[str, Any]]:
        """The settings of all trainings that a verdict would need and a ledger does not have.

        A teacher whose score alone is remembered is trained once more.
        """
        seeds, found = _checked(seeds), list[dict[str, Any]]()
        for seed in seeds[:1] if self._identical(seeds) else seeds:
            start = self._start(seed)
            settings = {side: self.settings(side, start, seed) for side in self.sides}
            new = [side for side in self.sides if not ledger.knows(settings[side])]
            found += [settings[side] for side in new]
            if DENSE not in new and any(map(self.is_taught, new)):
                found.append({**settings[DENSE], "teacher": True})
        return found

    def _start(self, seed: int) -> Network:
        return fresh_start(self.network, seed) if self.fresh_init else self.network

    def _identical(self, seeds: Sequence[int]) -> bool:
        """Whether all seeds' trainings are one and the same."""
        return not self.fresh_init and len(seeds) > 1 and not self._seeds_matter

    @cached_property
    def _seeds_matter(self) -> bool:
        return self.budget.parts > 1 or seeds_matter(self.network, self.task)  # parts are drawn or shuffled

    def masks_of(self, side: str) -> Masks | None:
        """What a side is trained under; None for all of it."""
        return self.masks if side == TICKET else None

    def is_taught(self, side: str) -> bool:
        """Whether a side has a teacher."""
        return side in (TICKET, DISTILLED) and self.budget.distill > 0

    def settings(self, side: str, start: Network, seed: int) -> dict[str, Any]:
        """All that decides a training's result but machine and versions; nothing of the masks for dense."""
        masks, budget, taught = self.masks_of(side), self.budget, self.is_taught(side)
        recipe = fixed_recipe(budget, start, masks, taught=taught or side == SAME_LR)
        identity = start.identity
        shape = {key: value for key, value in identity["model"].items() if key != "seed"}  # Θ0 has a digest
        return {
            **self.task.digests,
            **edge_values(start, self.task),
            "metric": self.task.metric,
            **({"task_options": self.task.options} if self.task.options else {}),
            **identity,
            "model": shape,
            "initial": state_hash(start.state_dict()),
            "masks": None if masks is None else masks_hash(masks),
            "epochs": budget.epochs,
            **recipe.settings,
            "seed": seed,
            "fresh_init": self.fresh_init,
            **(budget.taught_alone if taught else {}),
            **({"teacher_lr": budget.lr} if taught and budget.changes_lr else {}),
            **({"twin": SAME_LR} if side == SAME_LR else {}),
            **({} if self.inductive is None else {"inductive": self._inductive_settings(side)}),
        }

    def _inductive_settings(self, side: str) -> dict[str, Any]:
        """What decides the scores of hidden nodes: also, for the ticket, the method whose rule keeps new edges."""
        assert self.inductive is not None
        config = self.ticket.config
        rule = {"method": config["method"], "options": config["options"]} if side == TICKET else {}
        return {**self.inductive.settings, **rule}

    @cached_property
    def method(self) -> Method:
        """The method that found the ticket, as far as it is known here; else one without an edge rule."""
        config, budget = self.ticket.config, self.budget
        if config["method"] not in METHODS:
            return FixedMasks(budget=budget)
        method = make(config["method"], targets=Targets(**config["targets"]), budget=budget, **config["options"])
        return method.decided_by(config.get("findings", {}))

    def search_scores(self) -> dict[str, float]:
        """The search's trained weights on the hard-pruned graph: with its soft edge mask, then with 1 for all."""
        ticket, kept = self.ticket, self.ticket.masks.edges.kept
        state = {self.network.private_name(name): value for name, value in ticket.weights.items()}
        soft = None
        if ticket.soft_edge_mask is not None:
            soft = ticket.soft_edge_mask.new_ones(kept.numel()).masked_scatter(kept, ticket.soft_edge_mask)
        found: dict[str, float] = {}
        for run, soft_edge_mask in (("search", soft), ("search_unweighted", None)):
            scores = score_state(
                self.network,
                self.task,
                self.budget,
                state,
                seed=ticket.seed,
                masks=self.masks,
                soft_edge_mask=soft_edge_mask,
            )
            found |= {f"{run}_val": scores.val, f"{run}_test": scores.test}
        return found


def _checked(seeds: Sequence[int]) -> list[int]:
    for seed in seeds:
        check_seed(seed, "seeds")
    found = [int(seed) for seed in seeds]
    if not found or len(set(found)) < len(found):
        raise InputError(f"seeds must name at least one seed, and none twice (got {tuple(found)})")
    return found


def seeds_matter(network: Network, task: Task) -> bool:
    """Whether a training step depends on its seed: by dropout, by random numbers a model draws, by drawn steps.

    If not, all trainings from the same initial weights are one and the same.
    """
    steps = [task.steps(seed) for seed in (0, 1)]
    if steps[0] is not steps[1]:
        return True
    outputs = []
    with own_random_state(task.device), torch.no_grad():
        for seed in (0, 1):
            trial = copy.deepcopy(network).to(task.device).train()
            set_random_state(derive(seed, "noise"), task.device)
            outputs.append(trial(task.x, task.graph))
    return not torch.equal(*outputs)


@ordinary_mode()
def evaluate(
    ticket: Ticket,
    model: nn.Module | str | None,
    data: "Data",
    *,
    seeds: Iterable[int] = range(10),
    margin: float = 0.01,
    level: float = 0.05,
    fresh_init: bool = False,
    metric: str | None = None,
    other_graph: bool = False,
    device: str | torch.device = "cpu",
    progress: Progress | bool | None = None,
) -> Verdict:
    """Is it a winning ticket? Dense network and ticket are trained from the same Θ0, once for each seed.

    >>> import fastglt
    >>> verdict = fastglt.evaluate(ticket, model, data, seeds=range(10))  # doctest: +SKIP
    >>> print(verdict)  # who wins, by how much, how surely  # doctest: +SKIP

    A distilled ticket is taught by the dense network of the same seed, and its verdict has a second one in
    `distilled`, against a dense network that was taught as well. Where it has a learning rate of its own there is a
    third in `same_lr`, against a plain dense network at that rate. A ticket from which nodes were hidden is judged
    on the others, and has verdicts of the hidden ones in `new` and `new_kept`.

    Args:
        ticket: The ticket.
        model: The user's model that it was found with; None for one of fastglt's backbones.
        data: The data that it was found on.
        seeds: Random seeds of the trainings (dropout).
        margin: How much worse than dense still counts as equal, as a fraction.
        level: How often a ticket that is worse by the margin may pass.
        fresh_init: Whether each seed brings initial weights of its own, the same for dense and ticket; a user's
            model needs `reset_parameters` for that.
        metric: How it is scored (default: as in the search).
        other_graph: Whether a graph that is not the ticket's own is let in.
        device: cpu, cuda, ….
        progress: True for a bar, in terminals and notebooks; or what is called after each epoch with the phase, the
            `Training` and the number of epochs.
    """
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds must be several numbers, as in range(10) (got {seeds!r})")
    metric = metric or ticket.config["metric"]
    options = ticket.task_options
    whole = ticket.task.from_data(data, metric=metric, directed=ticket.directed, **options).to(device)
    task, hidden = seen_part(ticket, whole)
    given: dict[str, Any] = {"fresh_init": fresh_init, "other_graph": other_graph, "inductive": hidden}
    contest = Contest.prepare(ticket, model, task, **given)
    check_rule(margin, level)
    chosen = tuple(seeds)
    trainings = len(contest.pending(chosen, Ledger())) if progress is True else None
    with shown(progress, trainings=trainings) as after_epoch:
        return contest.verdict(chosen, margin=margin, level=level, progress=after_epoch)
