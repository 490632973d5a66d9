"""What a network scores on nodes that were hidden while it was trained, once they are added to the graph."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.methods.base import Method
from fastglt.methods.parts.schedules import kept_count
from fastglt.models.base import Network, state_of
from fastglt.system.seeds import derive, own_random_state, set_random_state
from fastglt.tasks.inductive import Inductive
from fastglt.training.loop import Training

NEW, NEW_KEPT = "new", "new_kept"  # scores with all edges of the hidden nodes, and with those that a rule keeps


def check_network(network: Network, inductive: Inductive) -> None:
    """Refuse a network that has something for each node: it could know nothing of new ones."""
    sizes = {inductive.whole.graph.num_nodes, inductive.seen.graph.num_nodes}
    for name, value in state_of(network).items():
        if value.dim() > 0 and value.shape[0] in sizes:
            rule = "inductive needs a model that can be used on other nodes than it was trained on"
            got = f"'{name}' of {type(network.public).__name__} with {value.shape[0]} rows, one for each node"
            raise InputError(f"{rule} (got {got})")


@dataclass(frozen=True, kw_only=True)
class NewNodes:
    """How trained weights are scored on hidden nodes; the method says which of the new edges it keeps."""

    inductive: Inductive
    network: Network
    method: Method
    seed: int

    def scores(
        self, state: Mapping[str, Tensor], masks: Masks | None, soft_edge_mask: Tensor | None = None
    ) -> dict[str, float]:
        """With all edges of the hidden nodes; under masks also with as large a share of them as the masks keep."""
        seen, weights = self.inductive.seen, {} if masks is None else masks.weights
        edges = Mask.full([seen.graph.num_edges]) if masks is None else masks.edges
        with own_random_state(seen.device):
            set_random_state(derive(self.seed, "new nodes"), seen.device)  # for a model that draws even here
            every = self._training(state, self.inductive.extend(edges), weights)
            every.soft_edge_mask = self.inductive.extend_soft(soft_edge_mask, edges)
            found = {NEW: self._score(every)}
            if masks is not None:
                kept = self._training(state, self.inductive.extend(edges, self._choose(every, edges)), weights)
                kept.soft_edge_mask = every.soft_edge_mask
                found[NEW_KEPT] = self._score(kept)
        return found

    def _choose(self, training: Training, edges: Mask) -> Tensor:
        new = self.inductive.new_edges.cpu()
        count = kept_count(edges.sparsity, int(new.sum()))
        seed = derive(self.seed, "new edges")
        return self.method.keep_new_edges(training, new, count, seed=seed)

    def _training(self, state: Mapping[str, Tensor], edges: Mask, weights: Mapping[str, Mask]) -> Training:
        """The trained network on the whole graph, less what a mask removes."""
        whole = self.inductive.whole
        full = Masks.full(whole.graph.num_edges, self.network.weight_shapes)
        masks = Masks(edges=edges, weights={**full.weights, **weights})
        recipe = self.method.budget.recipe
        training = Training(self.network, whole, recipe, seed=self.seed, masks=masks)
        training.network.load_state_dict(dict(state))
        training.network.eval()
        return training

    def _score(self, training: Training) -> float:
        whole = self.inductive.whole
        with torch.no_grad():
            return float(whole.score(training.outputs(whole.test), whole.test))
