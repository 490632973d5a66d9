"""Why an edge is suspicious, in words."""

from collections.abc import Callable

from fastglt.suspects.ranking import EdgeRanking

_SAYS_SOMETHING = 0.25  # of the log odds

_WORDS: dict[str, Callable[[float], str]] = {
    "agreement": lambda value: f"classes disagree ({1 - value:.2f})",
    "feature_similarity": lambda value: f"unlike features ({value:.2f})" if value > 0.005 else "no common feature",
    "common_neighbours": lambda value: "no common neighbour" if value == 0 else "few common neighbours",
    "neighbour_similarity": lambda value: "unlike its neighbours",
    "labelled_ends": lambda value: "labelled end" if value == 1 else "two labelled ends",
}


def reasons(ranking: EdgeRanking, edge: int) -> list[str]:
    """What speaks against an edge, the weightiest first; nothing where nothing does."""
    parts = {name: float(values[edge]) for name, values in ranking.contributions.items()}
    against = sorted((name for name in parts if parts[name] > _SAYS_SOMETHING), key=lambda name: -parts[name])
    return [_WORDS[name](float(ranking.components[name][edge])) for name in against]
