"""Where tensors live, and whether that can be used here."""

import torch

from fastglt.errors import MachineError, unknown_name

DEVICES = ("cpu", "cuda", "mps", "xpu")


def usable(device: torch.device | str) -> torch.device:
    """A device, if it can be computed on here."""
    kind = str(device).partition(":")[0]
    if kind not in DEVICES:
        raise unknown_name("device", kind, DEVICES)
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise MachineError(f"device '{device}' cannot be used here ({reason}); try 'cpu'") from None
