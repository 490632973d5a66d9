"""What a federation does: who takes part, how long, and what a ticket is to keep."""

from dataclasses import asdict, dataclass
from typing import Any

from fastglt.errors import InputError, require, unknown_name
from fastglt.training.recipe import Recipe

PARTS = ("metis", "random")
AGREEMENTS = ("server", "vote", "union")
OPTIMISERS = ("adam", "average")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that decides a federation's result, beside its graph, its network and who vanishes."""

    clients: int = 10  # each holds a part of the graph
    parts: str = "metis"  # how nodes are shared out: metis (few edges between parts), or random
    rounds: int = 100  # in each of which the server sends weights and clients send theirs back
    warmup: int = 2  # rounds in which all weights travel, before the mask is agreed on; 0 of dense training
    local_epochs: int = 1  # of a client in a round
    weight_sparsity: float = 0.95  # share of the weights that go; 0: dense training (FedAvg)
    agreement: str = "server"  # server (its average decides), vote (of the clients' own masks), union (of these)
    server: str = "adam"  # adam: it takes Adam's step along the mean of what clients moved; average: plain FedAvg
    lr: float = 0.03  # Adam's: the server's or, with average, the clients'
    local_lr: float = 1.0  # of clients' plain gradient steps, if the server has Adam
    weight_decay: float = 5e-4
    seed: int = 0  # of initial weights, parts and dropout

    def __post_init__(self) -> None:
        whole = {name: getattr(self, name) for name in ("clients", "rounds", "warmup", "local_epochs", "seed")}
        require("be a whole number", **whole)
        require("be at least 1", clients=self.clients, rounds=self.rounds, local_epochs=self.local_epochs)
        require("not be negative", warmup=self.warmup, seed=self.seed)
        require("be positive", local_lr=self.local_lr)
        require("lie in [0, 1)", weight_sparsity=self.weight_sparsity)
        choices = (("parts", PARTS), ("agreement", AGREEMENTS), ("server", OPTIMISERS))
        for what, got, known in ((what, getattr(self, what), known) for what, known in choices):
            if got not in known:
                raise unknown_name(what, got, known)
        if self.weight_sparsity > 0 and not 1 <= self.warmup < self.rounds:
            rule = f"warmup must be at least 1 and less than the {self.rounds} rounds, for a mask to be found"
            raise InputError(f"{rule} (got {self.warmup})")
        _ = self.recipe  # checks the rest

    @property
    def recipe(self) -> Recipe:
        """How clients train."""
        return Recipe(lr=self.lr, weight_decay=self.weight_decay)

    @property
    def settings(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)
