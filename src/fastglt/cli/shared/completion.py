"""What a shell completes: names that are known without importing anything slow."""

from collections.abc import Callable

MODELS = ("gcn", "gin", "gat", "resgcn")
METHODS = (
    *("fastglt", "oneshot", "random", "forest", "ugs", "wdglt", "dglt", "gebt", "teddy", "ace", "adaglt"),
    *("rigl", "snip", "grasp"),
)


def datasets() -> list[str]:
    """Graphs that have a name."""
    from fastglt.data.named import NAMED

    return list(NAMED)


def methods() -> list[str]:
    """Methods that come with fastglt."""
    return list(METHODS)


def models() -> list[str]:
    """Models that come with fastglt."""
    return list(MODELS)


def complete(names: Callable[[], list[str]], *, several: bool = False) -> Callable[[str], list[str]]:
    """How an option is completed whose value is a name, or several with commas between.

    >>> complete(models)("g"), complete(models, several=True)("gcn,ga")
    (['gcn', 'gin', 'gat'], ['gcn,gat'])
    """

    def completed(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return completed
