"""The paper's graphs by their fingerprints: a PyG `Data` has no name, and is to have the same settings."""

from fastglt.graphs.graph import Graph

GRAPHS: dict[str, str] = {  # of the public split's files, as `Graph.fingerprint` has them
    "6a24af8b34694b05ae9d6ac1baf4735dfeb6cf9d7902180bd517a9bac0282fdc": "cora",
    "393e26f1f6794fefa4cd51c209990931ea1fac0cd0ffd01c17310d8c5b9c5dcc": "citeseer",
    "808a4bd0ffb3348167f16b225d5044efd163b59b935dd6b60c427fb06c8faacd": "pubmed",
    "9e4ee7f89a5b65b2c60b306f820b48bef2e2f6dcc8ab4dfe3508d0a6004bfcd6": "ogbn-arxiv",  # both ways
}


def name_of(graph: Graph) -> str:
    """The name under which a graph has published settings; empty for all others."""
    return GRAPHS.get(graph.fingerprint, "")
