"""A federation from beginning to end: rounds over whatever carries the messages, then an ordinary ticket."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from fastglt.federated.client import Client
from fastglt.federated.messages import EVALUATE, TRAIN
from fastglt.federated.parts import part_of, shares
from fastglt.federated.plan import Plan
from fastglt.federated.server import Replies, Round, Server
from fastglt.masks import Mask, Masks
from fastglt.methods.base import Budget, FixedMasks, Targets
from fastglt.models.base import Network
from fastglt.system.modes import ordinary_mode
from fastglt.tasks import Task, make_task
from fastglt.tickets.find import make_ticket
from fastglt.tickets.networks import as_network
from fastglt.tickets.phases import score_state
from fastglt.tickets.ticket import Ticket
from fastglt.training.records import Snapshot

if TYPE_CHECKING:
    from torch_geometric.data import Data

AfterRound = Callable[[Round], None]


class Carrier(Protocol):
    """Whoever takes messages to clients and brings their answers: this process, or Flower."""

    def clients(self) -> list[int]:
        """Who may be asked."""

    def ask(self, orders: Mapping[int, bytes], round: int) -> Replies:
        """Each client's answer; None, or an error, where there is none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InProcess:
    """Clients as objects: the same bytes as over a network, without one."""

    members: Mapping[int, Client]
    faults: Mapping[tuple[int, int], Callable[[bytes], bytes | None]] = field(
        default_factory=dict
    )  # (round, client)

    def clients(self) -> list[int]:
        """All of them."""
        return list(self.members)

    def ask(self, orders: Mapping[int, bytes], round: int) -> Replies:
        """One after the other; faults, if any were planned, change what comes back."""
        found: dict[int, bytes | Exception | None] = {}
        for client, order in orders.items():
            fault = self.faults.get((round, client))
            try:
                reply: bytes | None = self.members[client].answer(order)
            except Exception as error:  # whatever a client dies of is its own
                found[client] = error
                continue
            found[client] = reply if fault is None or reply is None else fault(reply)
        return found


class FederatedMasks(FixedMasks):
    """Masks that a federation has agreed on."""

    name = "federated"
    summary = "no search of its own: the masks that a federation has agreed on"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a federation leaves behind."""

    ticket: Ticket
    rounds: tuple[Round, ...]
    best_round: int
    on_parts: float  # test score of the ticket's weights, each client on its own part
    on_whole: float  # on the whole graph, which no client has

    @property
    def bytes_in_all(self) -> int:
        """Up and down, over all rounds."""
        return sum(one.up + one.down for one in self.rounds)


@dataclass(frozen=True, eq=False, kw_only=True)
class Federation:
    """A task, a network and a plan."""

    task: Task
    network: Network  # at Θ0
    plan: Plan

    def members(self) -> dict[int, Client]:
        """All clients, as objects."""
        owner = shares(self.task.graph, self.plan.clients, self.plan.parts, seed=self.plan.seed)
        return {number: self.member(number, owner) for number in range(self.plan.clients)}

    def member(self, number: int, owner: torch.Tensor | None = None) -> Client:
        """One of them."""
        if owner is None:
            owner = shares(self.task.graph, self.plan.clients, self.plan.parts, seed=self.plan.seed)
        part = part_of(self.task, owner, number)
        return Client(number=number, task=part, network=self.network, plan=self.plan)

    def run(self, carrier: Carrier | None = None, after_round: AfterRound | None = None) -> Outcome:
        """All rounds, and one more in which the last weights are scored; the best ones are the ticket's."""
        carrier = carrier or InProcess(members=self.members())
        server = Server(network=self.network, plan=self.plan)
        for number in range(1, self.plan.rounds + 2):
            kind = TRAIN if number <= self.plan.rounds else EVALUATE
            orders = server.orders(carrier.clients(), kind=kind)
            done = server.take(orders, carrier.ask(orders, number), kind=kind)
            if after_round is not None:
                after_round(done)
        return self.outcome(server)

    def outcome(self, server: Server) -> Outcome:
        """The ticket of the round that was best on validation nodes."""
        assert server.best is not None, "the last round is under the mask"
        _, number, state = server.best
        masks = Masks(edges=Mask.full([self.task.graph.num_edges]), weights=server.layout.masks(server.mask))
        plan = self.plan
        targets = Targets(graph_sparsity=0.0, weight_sparsity=masks.weight_sparsity)
        epochs = max(2, plan.rounds * plan.local_epochs)
        budget = Budget(
            oneshot_epochs=1, denoise_epochs=epochs - 1, interval=1, lr=plan.lr, weight_decay=plan.weight_decay
        )
        scores = score_state(self.network, self.task, budget, state, seed=plan.seed, masks=masks)
        best = Snapshot(epoch=number, scores=scores, state=state, masks=masks, soft_edge_mask=None)
        method = FederatedMasks(targets=targets, budget=budget)
        ticket = make_ticket(self.network, self.task, method, plan.seed, best, {}, federated=plan.settings)
        found = server.rounds[number - 1].scores["test"]
        return Outcome(
            ticket=ticket,
            rounds=tuple(server.rounds),
            best_round=number,
            on_parts=found,
            on_whole=scores.test,
        )

    def alone(self) -> dict[str, float]:
        """Each client with nobody to ask: as many epochs, its own best one. Test scores, each node counting alike.

        A client without training nodes, or without any to choose an epoch by, has its last weights.
        """
        right, nodes, each = 0.0, 0, []
        for client in self.members().values():
            single = replace(self.plan, clients=1, parts="random", weight_sparsity=0.0)
            lone = Client(number=client.number, task=client.task, network=self.network, plan=single)
            server = Server(network=self.network, plan=single)
            for number in range(1, single.rounds + 2):
                kind = TRAIN if number <= single.rounds else EVALUATE
                orders = server.orders([0], kind=kind)
                server.take(orders, {0: lone.answer(orders[0])}, kind=kind)
            number = server.rounds[-1].number
            if server.best is not None and not math.isnan(server.best[0]):
                number = server.best[1]
            score, count = server.rounds[number - 1].scores["test"], client.task.test.numel()
            if count:
                right, nodes = right + score * count, nodes + count
                each.append(score)
        return {"pooled": right / max(1, nodes), "mean": fmean(each) if each else float("nan")}


@ordinary_mode()
def federated_ticket(
    model: nn.Module | str,
    data: "Data",
    *,
    hidden: int = 64,
    model_options: Mapping[str, Any] | None = None,
    metric: str | None = None,
    after_round: AfterRound | None = None,
    **plan: Any,
) -> Outcome:
    """Train a ticket over clients that each hold a part of a graph, all of them in this process.

    >>> from fastglt.federated import federated_ticket
    >>> found = federated_ticket("gcn", data, clients=10, parts="metis")  # doctest: +SKIP
    >>> found.ticket.save("cora.safetensors"), found.bytes_in_all  # doctest: +SKIP

    Args:
        model: A PyG model, a backbone, or a backbone's name.
        data: A PyG `Data` with x, edge_index, y and the masks of a split.
        hidden: Width of the hidden layer of a backbone that is named.
        model_options: Other options of such a backbone.
        metric: How it is scored (default: the task's first).
        after_round: Called after each round with what it has cost and brought.
        plan: Fields of `Plan`, such as ``clients=5, weight_sparsity=0.95``.
    """
    chosen = Plan(**plan)
    task = make_task(None, data, metric=metric)
    network = as_network(model, task, hidden=hidden, seed=chosen.seed, options=model_options, soft_edges=False)
    return Federation(task=task, network=network, plan=chosen).run(after_round=after_round)
