"""Forest tickets: FastGLT's weights on a graph that keeps what the network's own predictions agree about."""

from dataclasses import dataclass, fields

from fastglt.methods.fastglt import FastGLT
from fastglt.methods.parts.agreement import ForestRule


@dataclass(frozen=True, kw_only=True)
class Forest(FastGLT):
    """Edges by agreement and support under a maximum spanning forest; weights as FastGLT prunes and denoises them.

    After stage 1 and half of the denoising, when predictions have become good, the edges of each node are ranked
    twice: by how far the predictions for their two ends agree, and by how far they speak for the classes that are
    predicted. An edge is as strong as the better of the ranks that its two ends give it, measured by the degree;
    the two rankings count alike. A maximum spanning forest of the edges within predicted classes is kept first, so
    that no node loses its last good neighbour and nothing within a class falls apart; then the strongest of such
    edges, then of those between classes, to the exact count. No soft edge mask is trained and no label used beyond
    the training ones. With `revise` the edges are chosen anew after each further interval, by the predictions of
    that moment.
    """

    name = "forest"
    summary = "edges by agreement and support under a spanning forest, weights as in FastGLT"
    paper = ""

    edge_score: str = "forest"  # see below; degree and similarity are FastGLT's own
    strength: str = "agreement"  # of an edge: agreement, or the features' cosine, low degrees, random (ablations)
    classes: bool = True  # edges between two predicted classes go first, and no forest holds them
    local: bool = True  # compare an edge with the others of its ends, so that low degrees keep more; else with all
    support: bool = True  # count also how far an edge speaks for what its ends are predicted to be; if local
    forests: int | None = 1  # that share no edge, kept before any other; none: as many as fit; 0: not even one
    wait: float = 0.5  # share of the denoising intervals with the whole graph, before the first choice of edges
    revise: bool = True  # choose the edges anew after each interval that follows
    random_share: float = 0.0  # share of the kept edges that are drawn from all edges instead

    @property
    def forest(self) -> ForestRule | None:
        """The rule with this method's options."""
        return None if super().forest is None else self._rule

    @property
    def _rule(self) -> ForestRule:
        return ForestRule(**{field.name: getattr(self, field.name) for field in fields(ForestRule)})

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._rule  # checks them
