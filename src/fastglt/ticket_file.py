"""The ticket file: one safetensors file with bit-packed masks, kept weights only, and JSON metadata.

No times and no paths are in it, so equal runs give equal bytes; a checksum covers all of it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.models import build
from fastglt.storage import disk_errors, write_atomically
from fastglt.ticket import Ticket, state_hash

FORMAT = 1
INITIAL_FILE = "init.safetensors"

_PLAIN = (
    "model",
    "config",
    "seed",
    "scores",
    "graph_fingerprint",
    "feature_fingerprint",
    "initial_hash",
    "initial_from",
    "versions",
)


def save(ticket: Ticket, path: Path) -> None:
    """Write the ticket atomically, and Θ0 beside it where no recipe gives it back."""
    content = encode(ticket)
    if ticket.initial_from == "file":
        _save_initial(ticket, path.parent / INITIAL_FILE)
    write_atomically(path, content)


def encode(ticket: Ticket) -> bytes:
    """The file's bytes; the same ticket always gives the same ones."""
    tensors = {"mask/edges": _pack(ticket.masks.edges)}
    if ticket.edge_scores is not None:
        tensors["edge_scores"] = ticket.edge_scores
    for name, mask in ticket.masks.weights.items():
        tensors[f"mask/weights/{name}"] = _pack(mask)
    for name, value in ticket.weights.items():
        kept = ticket.masks.weights.get(name)
        tensors[f"weights/{name}"] = value if kept is None else value[kept.kept]
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    header: dict[str, Any] = {"format": FORMAT, "edges": ticket.masks.edges.size}
    header["shapes"] = {name: list(mask.shape) for name, mask in ticket.masks.weights.items()}
    header |= {name: _json_ready(getattr(ticket, name)) for name in _PLAIN}
    header["checksum"] = _checksum(tensors, header)
    return save_tensors(tensors, {"fastglt": json.dumps(header, sort_keys=True)})


def load(path: Path) -> Ticket:
    """Read a ticket and verify its checksum."""
    with disk_errors(path, "read"):
        if not path.is_file():
            raise InputError(
                f"a ticket must be a file (got '{path}', which is {'a folder' if path.is_dir() else 'not there'})"
            )
        content = path.read_bytes()
    return decode(content, str(path), initial_file=path.parent / INITIAL_FILE)


def decode(content: bytes, source: str, *, initial_file: Path) -> Ticket:
    """A ticket from a file's bytes."""
    _refuse_pickle(content, source)
    header = _header(content, source)
    if header["format"] != FORMAT:
        raise InputError(f"'{source}' must have ticket format {FORMAT} (got {header['format']}); update fastglt")
    try:
        tensors = load_tensors(content)
    except (SafetensorError, ValueError) as error:
        raise InputError(f"'{source}' is a damaged ticket ({error})") from None
    if _checksum(tensors, header) != header["checksum"]:
        raise InputError(f"'{source}' is a damaged ticket (its checksum does not match); save or copy it again")
    shapes = header["shapes"]
    masks = Masks(
        edges=_unpack(tensors["mask/edges"], [header["edges"]]),
        weights={name: _unpack(tensors[f"mask/weights/{name}"], shape) for name, shape in shapes.items()},
    )
    return Ticket(
        masks=masks,
        weights=_weights(tensors, masks),
        edge_scores=tensors.get("edge_scores"),
        load_initial=_initial_loader(header, initial_file),
        **{name: header[name] for name in _PLAIN},
    )


def _weights(tensors: Mapping[str, Tensor], masks: Masks) -> dict[str, Tensor]:
    prefix = "weights/"
    weights = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    for name, mask in masks.weights.items():
        values = weights[name]
        weights[name] = values.new_zeros(mask.shape)
        weights[name][mask.kept] = values
    return weights


def _pack(mask: Mask) -> Tensor:
    return torch.from_numpy(np.packbits(mask.kept.cpu().numpy().ravel()))


def _unpack(packed: Tensor, shape: list[int]) -> Mask:
    count = int(np.prod(shape))
    return Mask(torch.from_numpy(np.unpackbits(packed.numpy(), count=count).astype(bool).reshape(shape)))


def _json_ready(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _checksum(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in header.items() if name != "checksum"}
    text = state_hash(tensors) + json.dumps(plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _header(content: bytes, source: str) -> dict[str, Any]:
    """The JSON metadata: safetensors keeps its header's length in the first eight bytes."""
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["fastglt"])
        missing = {"format", "edges", "shapes", "checksum", *_PLAIN} - set(header)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"'{source}' is not a fastglt ticket, or a damaged one; expected a .safetensors file"
        ) from None
    if missing:
        raise InputError(f"'{source}' is a damaged ticket (it lacks {', '.join(sorted(missing))})")
    return header  # type: ignore[no-any-return]


def _refuse_pickle(content: bytes, source: str) -> None:
    if content[:2] == b"PK" or (content[:1] == b"\x80" and content[1:2] in b"\x02\x03\x04\x05"):
        raise InputError(
            f"'{source}' is a pickle or a torch.save archive, which is never read; offer a fastglt ticket"
        )


def _save_initial(ticket: Ticket, path: Path) -> None:
    initial = {name: value.detach().cpu().contiguous() for name, value in ticket.initial.items()}
    if path.exists() and state_hash(_read_initial(path)) != ticket.initial_hash:
        raise InputError(f"'{path}' belongs to another ticket; save this one in a folder of its own")
    write_atomically(path, save_tensors(initial))


def _read_initial(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"the initial weights must lie beside the ticket (got no '{path}'); copy it there")
    try:
        return load_tensors(path.read_bytes())
    except (SafetensorError, ValueError) as error:
        raise InputError(f"'{path}' is damaged ({error})") from None


def _initial_loader(header: Mapping[str, Any], initial_file: Path) -> Callable[[], Mapping[str, Tensor]]:
    if header["initial_from"] == "file":
        return lambda: _read_initial(initial_file)
    return lambda: build(header["model"]).state_dict()
