"""The server: it sends weights, averages what comes back, leaves out what it cannot use, and finds the mask."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fastglt.errors import MachineError
from fastglt.federated.agreement import agree
from fastglt.federated.client import digest_of
from fastglt.federated.messages import EVALUATE, TRAIN, Layout, Order, Reply, bits
from fastglt.federated.plan import Plan
from fastglt.kernels.optimizer import Adam
from fastglt.masks import Mask
from fastglt.models.base import Network

Replies = Mapping[int, bytes | Exception | None]  # by client; None: nothing came


@dataclass(frozen=True, kw_only=True)
class Round:
    """What a round has cost and brought."""

    number: int
    kept: int  # weights that travelled, of all that a mask decides on
    down: int  # bytes to all clients
    up: int  # bytes from all clients
    scores: dict[str, float]  # val and test of the weights that were sent, each node counting alike
    left_out: dict[int, str]  # clients whose answer was not used, and why

    @property
    def facts(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "left_out": {str(client): why for client, why in self.left_out.items()}}


@dataclass(eq=False, kw_only=True)
class Server:
    """Weights, a mask, and who has it."""

    network: Network  # at its initial weights
    plan: Plan
    mask: Mask | None = None
    rounds: list[Round] = field(default_factory=list)
    best: tuple[float, int, dict[str, Tensor]] | None = None  # validation score, round, state
    values: Tensor = field(init=False)
    _told: set[int] = field(default_factory=set)  # clients that have answered under the mask

    def __post_init__(self) -> None:
        self.layout = Layout.of(self.network)
        self.values = self.layout.vector(self.network.state_dict(), None)
        self._moved = torch.zeros_like(self.values)  # by clients, on average, over all rounds of the warm-up
        self._adam = Adam([([self.values], 0.0)], lr=self.plan.lr)

    def orders(self, clients: list[int], *, kind: str = TRAIN) -> dict[int, bytes]:
        """What to send for the next round; the mask goes along until a client has shown that it has it."""
        number = len(self.rounds) + 1
        given: dict[str, Any] = {"kind": kind, "round": number, "mask_digest": digest_of(self.mask)}
        plain = Order(**given, values=self.values).write()
        if self.mask is None:
            return dict.fromkeys(clients, plain)
        whole = Order(**given, values=self.values, mask=bits(self.mask)).write()
        return {client: plain if client in self._told else whole for client in clients}

    def take(self, orders: Mapping[int, bytes], replies: Replies, *, kind: str = TRAIN) -> Round:
        """End the round: average what can be used, by the number of training nodes, and name who is left out."""
        used, left_out = self._usable(orders, replies)
        if not used:
            why = "; ".join(f"client {client}: {reason}" for client, reason in left_out.items())
            raise MachineError(f"no client could be used in round {len(self.rounds) + 1} ({why})")
        done = Round(
            number=len(self.rounds) + 1,
            kept=self.layout.prunable_size if self.mask is None else self.mask.count,
            down=sum(map(len, orders.values())),
            up=sum(len(reply) for reply in replies.values() if isinstance(reply, bytes)),
            scores={part: pooled(used, part) for part in ("val", "test")},
            left_out=left_out,
        )
        self._remember(done)
        self.rounds.append(done)
        if self.mask is not None:
            self._told |= set(used)
        if kind == TRAIN:
            self._average(used)
        return done

    def _usable(self, orders: Mapping[int, bytes], replies: Replies) -> tuple[dict[int, Reply], dict[int, str]]:
        used, left_out = {}, {}
        expected: dict[str, Any] = {
            "round": len(self.rounds) + 1,
            "mask_digest": digest_of(self.mask),
            "length": self.layout.length(self.mask),
        }
        for client in orders:
            reply = replies.get(client)
            if not isinstance(reply, bytes):
                left_out[client] = "it did not answer" if reply is None else f"it failed ({reply})"
                continue
            try:
                used[client] = Reply.read(reply, **expected)
            except (ValueError, KeyError, TypeError) as error:
                left_out[client] = " ".join(str(error).split()) or type(error).__name__
        return used, left_out

    def _remember(self, done: Round) -> None:
        """The weights of the best round on validation nodes; under the mask, once there is one to be had."""
        finished = self.plan.weight_sparsity == 0 or self.mask is not None
        if finished and (self.best is None or done.scores["val"] > self.best[0]):
            self.best = (done.scores["val"], done.number, self.state())

    def _average(self, used: Mapping[int, Reply]) -> None:
        told = [reply for reply in used.values() if reply.values is not None]
        total = sum(reply.train_nodes for reply in told)
        if not told:
            return
        average = torch.zeros_like(self.values, dtype=torch.float64)
        for reply in told:
            assert reply.values is not None, "those without were left away"
            average += reply.values.double() * (reply.train_nodes / total)
        sent, step = self.values.clone(), average.float() - self.values
        if self.plan.server == "average":
            self.values = average.float()
        else:
            self.values.grad = -step
            self._adam.step()
        if self.plan.weight_sparsity > 0 and self.mask is None:
            self._moved += step
            if len(self.rounds) >= self.plan.warmup:
                self._agree([reply.values - sent for reply in told if reply.values is not None])

    def _agree(self, steps: list[Tensor]) -> None:
        """Find the mask from what the warm-up has moved; the weights and moments that are pruned are forgotten."""
        size = self.layout.prunable_size
        self.mask = agree(
            self.plan.agreement,
            self.values[:size],
            self._moved[:size],
            [step[:size] for step in steps],
            sparsity=self.plan.weight_sparsity,
            seed=self.plan.seed,
        )
        kept = torch.cat([self.mask.kept, torch.ones(self.values.numel() - size, dtype=torch.bool)])
        before, self.values = self._adam.state.get(self.values), self.values[kept]
        self._adam = Adam([([self.values], 0.0)], lr=self.plan.lr)
        if before is not None:
            moments = {name: before[name][kept] for name in ("exp_avg", "exp_avg_sq")}
            self._adam.state[self.values] = {"step": before["step"], **moments}

    def state(self) -> dict[str, Tensor]:
        """The network's state with the weights as they are; pruned ones are zero."""
        return {**self.network.state_dict(), **self.layout.state(self.values.clone(), self.mask)}


def pooled(used: Mapping[int, Reply], part: str) -> float:
    """The clients' scores, each of their nodes counting alike; NaN where nobody has such nodes."""
    told = [(reply.scores[part], reply.counts.get(part, 0)) for reply in used.values() if part in reply.scores]
    total = sum(count for _, count in told)
    return sum(score * count for score, count in told) / total if total else float("nan")


__all__ = ["EVALUATE", "TRAIN", "Round", "Server", "pooled"]
