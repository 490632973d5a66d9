"""Independent random streams from one seed, named by what they are for."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import torch
from torch import Tensor


def derive(seed: int, *purpose: object) -> int:
    """A 63-bit seed for one purpose: equal for equal arguments, unrelated otherwise.

    >>> derive(0, "dropout", 1) == derive(0, "dropout", 1) != derive(0, "dropout", 2)
    True
    """
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def own_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Let PyTorch's random numbers be seeded within, on the CPU and on a device; the caller's go on afterwards."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


@contextmanager
def own_randomness(seed: int | None) -> Iterator[None]:
    """Python's and NumPy's global random numbers from a seed, or a fresh one; the caller's go on afterwards."""
    python, array = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(None if seed is None else seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(array)  # noqa: NPY002


def set_random_state(seed: int, device: torch.device) -> None:
    """Seed PyTorch's random numbers on the CPU and on a device.

    `torch.manual_seed` does it for every kind of device and takes a note of its caller for each, every time.
    """
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        torch.manual_seed(seed)


def uniform(shape: tuple[int, ...], bound: float, seed: int) -> Tensor:
    """Numbers in [-bound, bound), bit for bit the same on every machine."""
    unit = np.random.Generator(np.random.PCG64(seed)).random(shape, dtype=np.float32)
    return torch.from_numpy((unit * np.float32(2) - np.float32(1)) * np.float32(bound))


def permutation(size: int, seed: int) -> Tensor:
    """A shuffled range."""
    return torch.from_numpy(np.random.Generator(np.random.PCG64(seed)).permutation(size))
