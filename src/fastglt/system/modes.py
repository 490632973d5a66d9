"""PyTorch's modes, which belong to whoever calls: within ours, numbers are what they always are."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def ordinary_mode() -> Iterator[None]:
    """With gradients and each number in its own precision, whatever modes the caller is in."""
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(mode=False))
        modes.enter_context(torch.enable_grad())
        for kind in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            modes.enter_context(torch.autocast(kind, enabled=False))
        yield
