"""The state of PyTorch that belongs to the whole process, and to whoever calls: no result depends on it."""

import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, ExitStack, contextmanager
from typing import Any

import torch

from fastglt.errors import InputError
from fastglt.system.forks import check_threads_after_fork

_one_at_a_time = threading.RLock()  # random numbers and modes are the process's, not a thread's


class ordinary_mode(ContextDecorator):  # noqa: N801 - used as a function is
    """Gradients on, autocast, inference mode and reduced precision off, whatever the caller set.

    One thread at a time: another one that comes meanwhile waits. What is in force already is not entered: a short
    answer would wait for it.
    """

    def __init__(self) -> None:
        self._entered: list[ExitStack | None] = []  # of the thread whose turn it is

    def __enter__(self) -> None:
        check_threads_after_fork()
        _one_at_a_time.acquire()
        try:
            _check_defaults()
            self._entered.append(None if _is_ordinary() else _ordinary())
        except BaseException:
            _one_at_a_time.release()
            raise

    def __exit__(self, *raised: Any) -> None:
        modes = self._entered.pop()
        try:
            if modes is not None:
                modes.close()
        finally:
            _one_at_a_time.release()


def _is_ordinary() -> bool:
    """Whether nothing has to be changed."""
    changed = torch.is_inference_mode_enabled() or not torch.is_grad_enabled()
    return not changed and torch.get_float32_matmul_precision() == "highest" and not any(_autocast())


def _autocast() -> list[str]:
    """The kinds of devices that it is on for."""
    return [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]


def _ordinary() -> ExitStack:
    """What is to be closed again, entered."""
    with ExitStack() as modes:
        if torch.is_inference_mode_enabled():
            modes.enter_context(torch.inference_mode(mode=False))
        if not torch.is_grad_enabled():
            modes.enter_context(torch.enable_grad())
        modes.enter_context(_full_precision())
        for kind in _autocast():
            modes.enter_context(torch.autocast(kind, enabled=False))
        return modes.pop_all()


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
