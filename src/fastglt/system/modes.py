"""PyTorch's modes belong to whoever calls: no result depends on them, and none is changed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def ordinary_mode() -> Iterator[None]:
    """Gradients on, autocast and inference mode off, whatever the caller set."""
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(mode=False))
        modes.enter_context(torch.enable_grad())
        for kind in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            modes.enter_context(torch.autocast(kind, enabled=False))
        yield
