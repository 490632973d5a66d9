"""PyG without what it has to say while it is imported."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_import() -> Iterator[None]:
    """Keep to ourselves what PyG's own imports have to say about torch's deprecated parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
