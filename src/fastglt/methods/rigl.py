"""RigL (Evci et al., ICML'20): a random sparse network that moves its weights to where the gradients are."""

from dataclasses import dataclass

from fastglt.errors import require
from fastglt.masks import flatten
from fastglt.methods.base import Method, cut_random, set_masks, train_sparse
from fastglt.methods.parts.ranking import keep_random, swapped
from fastglt.methods.parts.schedules import CosineSwaps, erdos_renyi_counts
from fastglt.system.seeds import derive
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class RigL(Method):
    """Weights: Erdős–Rényi shares, then drop the smallest |w| of a layer and grow its largest |g|. Edges: random.

    What is dropped cannot return in the same swap (the paper lets it). The gradient is that of the step just done.
    """

    name = "rigl"
    summary = "a random sparse network, small weights swapped for large gradients; random edges"
    paper = "Evci et al., Rigging the Lottery: Making All Tickets Winners, ICML 2020"
    prunes = "weights, and edges at random"

    swap_fraction: float = 0.3  # share of a layer's kept weights swapped at first [alpha]
    swap_until: float = 0.75  # share of the epochs after which the masks stay [T_end]

    def __post_init__(self) -> None:
        require("lie in (0, 1]", swap_until=self.swap_until)
        _ = self.schedule  # checks the rest

    @property
    def schedule(self) -> CosineSwaps:
        """How many weights of a layer are swapped."""
        return CosineSwaps(swap_fraction=self.swap_fraction, end=self.swap_until * self.epochs)

    def begin(self, training: Training) -> None:
        """Draw edges as `random` does, and in each layer its share of the weights."""
        cut_random(training, self.targets.graph_sparsity, 0.0)
        shapes = [weight.shape for weight in training.weights.values()]
        counts = erdos_renyi_counts(shapes, self.targets.kept(training)[1])
        kept = {
            name: keep_random(weight.numel(), count, derive(training.seed, "start", name))
            for (name, weight), count in zip(training.weights.items(), counts, strict=True)
        }
        set_masks(training, training.masks.edges.kept, flatten(kept))
        train_sparse(training, self.targets, stage="train")

    def before_step(self, training: Training) -> None:
        """Before a swap, note the gradients of all weights, pruned ones too."""
        if self._swaps_after(training.epoch + 1):
            gradients = {name: weight.grad for name, weight in training.weights.items()}
            found = {name: part for name, part in gradients.items() if part is not None}
            if training.ends_epoch:
                training.method_state = {name: part.abs() for name, part in found.items()}
            else:  # one of several steps by parts, which add up
                before, weight = training.method_state, training.step_weight
                training.method_state = {name: weight * part + before.get(name, 0) for name, part in found.items()}

    def after_epoch(self, training: Training) -> None:
        """Swap within each layer; what is grown starts at zero, as pruned weights are."""
        if not self._swaps_after(training.epoch):
            return
        kept = {name: mask.kept.flatten() for name, mask in training.masks.weights.items()}
        for name, gradient in training.method_state.items():
            mask = training.masks.weights[name]
            swap = self.schedule.swap(epoch=training.epoch, kept=mask.count, total=mask.size)
            strength, potential = training.weights[name].detach().flatten(), gradient.abs().flatten()
            seed = derive(training.seed, "swap", training.epoch, name)
            kept[name] = swapped(kept[name], swap, strength=strength, potential=potential, seed=seed)
        training.method_state = {}
        set_masks(training, training.masks.edges.kept, flatten(kept))

    def _swaps_after(self, epoch: int) -> bool:
        pruned = self.targets.weight_sparsity > 0
        return pruned and epoch % self.budget.interval == 0 and epoch < self.schedule.end
