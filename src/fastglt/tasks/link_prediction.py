"""Link prediction: whether two nodes are linked, or will be.

The graph has the training edges alone, and messages go along those of them that a mask keeps. What is learnt is
asked about pairs: every training edge is a positive, pruned or not; as many negatives are drawn anew in each epoch.
Validation and test edges are pairs to be scored and nothing else: they are no part of the graph.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from fastglt.errors import InputError, require
from fastglt.graphs.columns import is_symmetric
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.parts import Part
from fastglt.system.devices import usable
from fastglt.system.seeds import derive, permutation
from fastglt.tasks.base import OutputsOf, Scores, Step, Task, metric_of
from fastglt.tasks.inputs import check_kind, features_of
from fastglt.tasks.link_inputs import GIVEN, check_enough, checked_pairs, pairs_of, warn_of_leak, without_pairs
from fastglt.tasks.metrics import HITS, PAIR_ROC_AUC
from fastglt.tasks.pairs import NonEdges

if TYPE_CHECKING:
    from torch_geometric.data import Data

_OVERVIEW = 1 << 15  # edges in the overview, and as many other pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class PairStep(Step):
    """A step on pairs: its positives first, then its negatives."""

    positives: int


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkPrediction(Task):
    """A probability for each pair of nodes: binary cross-entropy; Hits@K as OGB counts it, ROC-AUC.

    Pairs have no direction, neither have the decoders. Data that has no split of its own is split at random.
    """

    name = "link"
    metrics = (HITS[50], HITS[10], HITS[20], HITS[100], PAIR_ROC_AUC)
    answer, answers = "link", "links"
    of_pairs = True
    option_names = ("decoding", "decoder_layers", "decoder_hidden", "batch", "split_seed")

    metric: str = HITS[50].name
    val: Tensor  # [pairs, 2]
    val_negatives: Tensor
    test: Tensor  # may be empty, with its negatives: then test scores are NaN
    test_negatives: Tensor
    decoding: str = "mlp"  # of two nodes' rows: mlp (of their product, number by number) or dot
    decoder_layers: int = 3  # matrices of the MLP
    decoder_hidden: int | None = None  # its width; none: that of a node's row
    batch: int | None = None  # positives of a step, each with a forward of its own; none: one step for all of them
    split_seed: int = 0  # of the random split, if the data has none

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("decoder_layers", "decoder_hidden", "batch")}
        given = {name: value for name, value in sizes.items() if value is not None}
        require("be a whole number", **given)
        require("be at least 1", **given)

    @classmethod
    def from_data(
        cls, data: "Data", *, metric: str | None = None, directed: bool | None = None, **options: Any
    ) -> Self:
        """The pairs to predict have PyG's names, val_pos_edge_index and so on, or are split off at random."""
        check_kind(data)
        given, kept = pairs_of(data, options.get("split_seed", 0))
        message_data = without_pairs(data, kept)
        return cls._prepare(data, lambda: Graph.from_data(message_data, directed=directed), given, metric, options)

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, Tensor],
        *,
        metric: str | None = None,
        directed: bool | None = None,
        **options: Any,
    ) -> Self:
        """From x, edge_index and, if given, edge_weight and the pairs by PyG's names, without PyG.

        `directed=None`: if an edge has no reverse, those that are held back among them.
        """
        source, weight = SimpleNamespace(**tensors, num_nodes=tensors["x"].shape[0]), tensors.get("edge_weight")
        given, kept = pairs_of(source, options.get("split_seed", 0))

        def graph() -> Graph:
            told = not is_symmetric(source.edge_index, source.num_nodes) if directed is None else directed
            columns = source.edge_index if kept is None else source.edge_index[:, kept]
            values = weight if weight is None or kept is None else weight[kept]
            return Graph.from_edge_index(columns, source.num_nodes, directed=told, edge_weight=values)

        return cls._prepare(source, graph, given, metric, options)

    @classmethod
    def message_data(cls, data: "Data", **options: Any) -> "Data":
        """Without the edges that a random split holds back, and without the pairs to predict."""
        check_kind(data)
        return without_pairs(data, pairs_of(data, options.get("split_seed", 0))[1])

    @classmethod
    def _prepare(
        cls,
        data: Any,
        graph: Callable[[], Graph],
        given: Mapping[str, Tensor],
        metric: str | None,
        options: Mapping[str, Any],
    ) -> Self:
        chosen, x = metric_of(cls, metric).name, features_of(data)
        names = ("val", "val_negatives", "test", "test_negatives")
        parts = {
            name: checked_pairs(given[place], place, x.shape[0]) for name, place in zip(names, GIVEN, strict=True)
        }
        check_enough(parts, chosen)
        made = graph()
        if made.num_edges == 0:
            raise InputError("link prediction must have training edges to learn from (got a graph without edges)")
        warn_of_leak(parts, made.edges.T, made.num_nodes)
        given_values: dict[str, Any] = {**parts, **options}
        return cls(graph=made, x=Features(x), metric=chosen, **given_values)

    @property
    def num_outputs(self) -> int:
        """One for each pair."""
        return 1

    @property
    def has_test(self) -> bool:
        """Whether there are test edges."""
        return bool(self.test.numel())

    @property
    def decoder(self) -> dict[str, Any]:
        """How two rows become one number."""
        size = {"hidden": self.decoder_hidden, "layers": self.decoder_layers}
        return {"name": self.decoding, **({} if self.decoding == "dot" else size)}

    @cached_property
    def digests(self) -> dict[str, str]:
        """What tells this graph, these features and these pairs from all others."""
        digest = hashlib.sha256(b"links")
        for part in (self.val, self.val_negatives, self.test, self.test_negatives):
            digest.update(f" {len(part)} ".encode() + part.cpu().numpy().tobytes())
        return {
            "graph": self.graph.fingerprint,
            "features": self.x.fingerprint,
            "labels_and_split": digest.hexdigest(),
        }

    @cached_property
    def edge_targets(self) -> Tensor:
        """Every training edge as a pair, in the order of the edge mask."""
        return self.graph.edges.T.contiguous()

    @cached_property
    def _others(self) -> NonEdges:
        return NonEdges(self.edge_targets, self.graph.num_nodes)

    @cached_property
    def overview(self) -> Tensor:
        """Up to 32,768 training edges and as many pairs that are none, always the same ones."""
        edges = self.edge_targets
        chosen = permutation(len(edges), derive(0, "overview edges"))[:_OVERVIEW].to(edges.device)
        others = self._others.draw(len(chosen), seed=derive(0, "overview pairs"))
        return torch.cat([edges[chosen], others.to(edges.device)])

    def steps(self, seed: int) -> tuple[PairStep, ...]:
        """All training edges, at once or in batches, with as many pairs that are none, drawn anew."""
        edges = self.edge_targets
        negatives = self._others.draw(len(edges), seed=derive(seed, "negatives")).to(edges.device)
        if self.batch is None:
            return (PairStep(nodes=torch.cat([edges, negatives]), positives=len(edges)),)
        order = permutation(len(edges), derive(seed, "batches")).to(edges.device)
        parts = zip(torch.split(edges[order], self.batch), torch.split(negatives, self.batch), strict=True)
        return tuple(PairStep(nodes=torch.cat([edge, other]), positives=len(edge)) for edge, other in parts)

    def step_in(self, part: Part, seed: int) -> PairStep | None:
        """The training edges of the part, pruned or not, with as many pairs of its nodes that are none."""
        if self.batch is not None:
            raise InputError(f"batch must be none where steps are on parts of the graph (got {self.batch})")
        pairs = part.graph.edges.T
        others = NonEdges(pairs, part.graph.num_nodes)
        if not len(pairs) or not others.count:
            return None
        negatives = others.draw(len(pairs), seed=seed).to(pairs.device)
        return PairStep(nodes=part.nodes[torch.cat([pairs, negatives])], positives=len(pairs))

    def loss(self, outputs: Tensor, step: Step) -> Tensor:
        """The mean binary cross-entropy."""
        assert isinstance(step, PairStep)
        return pair_loss(outputs, step.positives)

    def evaluate(self, outputs_of: OutputsOf) -> Scores:
        """Validation and test pairs in one pass."""
        parts = (self.val, self.val_negatives, self.test, self.test_negatives)
        outputs = torch.split(outputs_of(self._judged), [len(part) for part in parts])
        val, test = torch.cat(outputs[:2]), torch.cat(outputs[2:])
        return Scores(
            val=self.score(val, len(self.val)),
            val_loss=float(pair_loss(val, len(self.val))),
            test=self.score(test, len(self.test)),
        )

    @cached_property
    def _judged(self) -> Tensor:
        return torch.cat([self.val, self.val_negatives, self.test, self.test_negatives])

    def score(self, outputs: Tensor, positives: int) -> float:
        """The metric of outputs, those of positives first; NaN for none."""
        if not outputs.numel():
            return float("nan")
        labels = (torch.arange(len(outputs), device=outputs.device) < positives).long()
        return metric_of(type(self), self.metric).compute(outputs, labels)

    def divergence(self, student: Tensor, teacher: Tensor) -> Tensor:
        """KL(teacher ‖ student) of link or no link, the mean over pairs."""
        share = teacher.sigmoid()
        entropy = share * logsigmoid(teacher) + (1 - share) * logsigmoid(-teacher)
        return entropy.mean() + binary_cross_entropy_with_logits(student, share)

    @classmethod
    def decide(cls, outputs: Tensor) -> Tensor:
        """1 for a link, 0 for none."""
        return (outputs.squeeze(-1) > 0).long()

    @classmethod
    def probabilities(cls, outputs: Tensor) -> Tensor:
        """Of no link and of a link; as in training, where every other pair is one."""
        return torch.cat([torch.sigmoid(-outputs), torch.sigmoid(outputs)], -1)

    def facts(self) -> dict[str, Any]:
        """How many pairs there are of each kind."""
        return {
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "features": self.x.num_features,
            "val_links": len(self.val),
            "val_negatives": len(self.val_negatives),
            "test_links": len(self.test),
            "test_negatives": len(self.test_negatives),
        }

    def sizes(self) -> dict[str, str]:
        """Edges, and the negatives that they are ranked among."""
        val, test = (f"{len(a):,} links among {len(b):,} other pairs" for a, b in self._parts)
        return {"training": f"{self.graph.num_edges:,} edges", "validation": val, "test": test}

    @property
    def _parts(self) -> tuple[tuple[Tensor, Tensor], ...]:
        return (self.val, self.val_negatives), (self.test, self.test_negatives)

    def groups(self, outputs: Tensor) -> Tensor:
        """Link or none."""
        return self.decide(outputs)

    def distribution(self, outputs: Tensor) -> Tensor:
        """The probabilities of none and of a link."""
        return self.probabilities(outputs)

    def certainty(self, outputs: Tensor) -> Tensor:
        """Σ log p(link or none, whichever is predicted)."""
        return logsigmoid(outputs.abs()).sum()

    def agreement(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """The probability of each edge itself; and whether it is predicted at all."""
        return outputs.squeeze(-1).sigmoid(), outputs.squeeze(-1) > 0

    def to(self, device: torch.device | str) -> Self:
        """The task on another device."""
        device = usable(device)
        names = ("graph", "x", "val", "val_negatives", "test", "test_negatives")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


def pair_loss(outputs: Tensor, positives: int) -> Tensor:
    """The mean binary cross-entropy of outputs whose first ones should be links, and the others none."""
    labels = (torch.arange(len(outputs), device=outputs.device) < positives).to(outputs.dtype)
    return binary_cross_entropy_with_logits(outputs.squeeze(-1), labels)
