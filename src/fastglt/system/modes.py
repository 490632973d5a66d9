"""The state of PyTorch that belongs to the whole process, and to whoever calls: no result depends on it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from fastglt.errors import InputError
from fastglt.system.forks import check_threads_after_fork

_one_at_a_time = threading.RLock()  # random numbers and modes are the process's, not a thread's


@contextmanager
def ordinary_mode() -> Iterator[None]:
    """Gradients on, autocast, inference mode and reduced precision off, whatever the caller set.

    One thread at a time: another one that comes meanwhile waits.
    """
    check_threads_after_fork()
    with _one_at_a_time, ExitStack() as modes:
        _check_defaults()
        if torch.is_inference_mode_enabled():  # what is in force already need not be entered: a short answer waits
            modes.enter_context(torch.inference_mode(mode=False))
        if not torch.is_grad_enabled():
            modes.enter_context(torch.enable_grad())
        modes.enter_context(_full_precision())
        for kind in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            modes.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextmanager
def _full_precision() -> Iterator[None]:
    """Products of float32 in float32."""
    before = torch.get_float32_matmul_precision()
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _check_defaults() -> None:
    """Refuse defaults under which tensors that a model makes would have too few digits, or no numbers at all."""
    kind = torch.get_default_dtype()
    if kind not in (torch.float32, torch.float64):
        remedy = "torch.set_default_dtype(torch.float32) sets it back"
        raise InputError(f"PyTorch's default dtype must be float32 or float64 (got {kind}); {remedy}")
    device = torch.get_default_device()
    if device.type == "meta":
        raise InputError('PyTorch\'s default device must hold numbers (got meta); torch.set_default_device("cpu")')
