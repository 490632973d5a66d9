"""The numbers are the paper's: what METHOD and its tables repeat is the same here."""

from fastglt.studies.paper import published as paper
from fastglt.studies.paper.scope import GRAPHS


def test_every_graph_and_backbone_has_its_numbers() -> None:
    pairs = {(graph, model) for graph in GRAPHS for model in ("gcn", "gin", "gat")}
    assert set(paper.DENSE) == set(paper.TICKETS) == set(paper.WEIGHTS) == pairs


def test_tables_that_repeat_each_other_agree() -> None:
    for model in ("gcn", "gin", "gat"):
        assert paper.STARTS["weights"]["oneshot"]["citeseer", model] == paper.WEIGHTS["citeseer", model]
    for method in ("oneshot", "fastglt"):
        for pair, edges in paper.EDGES[method].items():
            assert paper.AT_EXTREME[method][pair][1] == edges
    assert ("citeseer", "gcn") not in paper.AT_EXTREME["fastglt"]  # printed with PubMed's value
