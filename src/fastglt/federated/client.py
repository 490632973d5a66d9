"""A client: it has its part of the graph, gets weights, scores them, trains them on and sends them back."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.federated.messages import DENSE, TRAIN, Layout, Order, Reply
from fastglt.federated.plan import Plan
from fastglt.kernels.optimizer import GradientDescent
from fastglt.masks import Mask, Masks
from fastglt.models.base import Network
from fastglt.system.digests import digest
from fastglt.system.seeds import derive, own_random_state
from fastglt.tasks import NodeTask
from fastglt.tickets.mask_bits import pack
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training


@dataclass(eq=False, kw_only=True)
class Client:
    """What it knows from one round to the next is the mask alone: so it may as well be a process for each round."""

    number: int
    task: NodeTask  # its part
    network: Network  # as all have it; its weights do not matter
    plan: Plan
    mask: Mask | None = None
    _training: Training | None = field(default=None, repr=False)
    _under: str = ""  # the digest of the mask that this training has

    def answer(self, content: bytes) -> bytes:
        """Do what the server asks for."""
        layout = Layout.of(self.network)
        order, mask = Order.read(content, layout)
        if mask is not None:
            self.mask, self._training = mask, None
        if order.mask_digest == DENSE:
            self.mask = None
        if digest_of(self.mask) != order.mask_digest:
            raise InputError(f"client {self.number} has another mask than round {order.round} needs")
        with own_random_state(self.task.device):
            return self._answer(order, layout).write()

    def _answer(self, order: Order, layout: Layout) -> Reply:
        training = self._prepared(layout)
        state = training.network.state_dict()
        training.network.load_state_dict({**state, **layout.state(order.values, self.mask)})
        training.apply(training.masks)
        scores, counts = self.scores(training)
        trains = order.kind == TRAIN and self.task.train.numel() > 0
        if trains:
            self._train(training, order.round)
        return Reply(
            client=self.number,
            round=order.round,
            mask_digest=order.mask_digest,
            train_nodes=self.task.train.numel() if trains else 0,
            scores=scores,
            counts=counts,
            values=layout.vector(training.network.state_dict(), self.mask) if trains else None,
        )

    def _prepared(self, layout: Layout) -> Training:
        """A training under the mask; without one of before, a new one is as good."""
        if self._training is None or digest_of(self.mask) != self._under:
            masks = Masks(edges=Mask.full([self.task.graph.num_edges]), weights=layout.masks(self.mask))
            seed = derive(self.plan.seed, "client", self.number)
            self._training = Training(self.network, self.task, self.plan.recipe, seed=seed, masks=masks)
            self._under = digest_of(self.mask)
        return self._training

    def _train(self, training: Training, number: int) -> None:
        """Some epochs with a fresh optimiser; weight decay is scaled by the share of weights that stay."""
        share = 1 - training.masks.weight_sparsity
        training.begin_stage("local", weight_decay=self.plan.weight_decay * share)
        if self.plan.server == "adam":
            training.optimizer = GradientDescent(training.optimizer.groups, lr=self.plan.local_lr)
        training.epoch = (number - 1) * self.plan.local_epochs  # which decides the epochs' seeds
        training.history.clear()
        for _ in range(self.plan.local_epochs):
            training.run_epoch(Hooks())

    def scores(self, training: Training) -> tuple[dict[str, float], dict[str, int]]:
        """How the weights do on its validation and test nodes, and how many these are."""
        training.network.eval()
        with torch.no_grad():
            outputs: Tensor = training.outputs(None)
        parts = {"val": self.task.val, "test": self.task.test}
        counts = {name: nodes.numel() for name, nodes in parts.items()}
        found = {name: self.task.score(outputs[nodes], nodes) for name, nodes in parts.items() if nodes.numel()}
        return found, counts


def digest_of(mask: Mask | None) -> str:
    """What tells a mask from others."""
    return DENSE if mask is None else digest(pack(mask).numpy().tobytes())[:16]
