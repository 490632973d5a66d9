"""The ticket file: one safetensors file with bit-packed masks, kept weights only, and JSON metadata.

The search's history is in it as well, unless it has none, as tickets of before. No times and no paths are in it, so
equal runs give equal bytes; a checksum covers every byte. Where whole units were pruned, a mask is stored as its
rows and columns that are not empty and what it has there, and the history is compressed (format 2).
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from fastglt.errors import InputError
from fastglt.masks import Masks
from fastglt.methods.base import UNITS
from fastglt.models import BACKBONES, Backbone, build_network
from fastglt.models.base import state_of
from fastglt.models.links import KEY
from fastglt.system.container import nan_as_null, own_copies, read_meta, read_tensors, to_bytes
from fastglt.system.plugins import code_digest
from fastglt.system.process import is_out_of_memory
from fastglt.system.storage import disk_errors, write_atomically
from fastglt.tickets import history, mask_bits
from fastglt.tickets.schema import check_header, check_tensors
from fastglt.tickets.ticket import Ticket, state_hash

FORMAT, FORMAT_OF_UNITS = 1, 2
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
_PRIMES = {"in_channels": 11, "hidden": 13, "out_channels": 17, "heads": 19}  # the sizes of a backbone's tiny twin
_DECODER_PRIME = 23  # the width of its decoder, if it has one
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError)
_NO_CHECKSUM = "0" * 64  # what stands in the checksum's place while it is computed


def save(ticket: Ticket, path: Path) -> None:
    """Write the ticket atomically, and Θ0 beside it where no recipe gives it back."""
    if path.name == INITIAL_FILE:
        raise InputError(f"a ticket must have another name than its initial weights (got '{path}')")
    content = encode(ticket)
    if ticket.initial_from == "file":
        _save_initial(ticket, path.parent / INITIAL_FILE)
    write_atomically(path, content)


def encode(ticket: Ticket) -> bytes:
    """The file's bytes; the same ticket always gives the same ones."""
    tensors = {"mask/edges": mask_bits.pack(ticket.masks.edges)}
    if ticket.soft_edge_mask is not None:
        tensors["edge_scores"] = ticket.soft_edge_mask
    by_units = ticket.config.get("targets", {}).get("structure") == UNITS
    pairs = ((mask, ticket.weights[name]) for name, mask in ticket.masks.weights.items())
    by_units = by_units and all(mask_bits.fits_units(*pair) for pair in pairs)
    pack = mask_bits.pack_units if by_units else mask_bits.pack_named
    for name, mask in ticket.masks.weights.items():
        tensors |= pack(f"mask/weights/{name}", mask)
    for name, value in ticket.weights.items():
        pruned = ticket.masks.weights.get(name)
        tensors[f"weights/{name}"] = value if pruned is None else value[pruned.kept]
    form = FORMAT_OF_UNITS if by_units else FORMAT
    header: dict[str, Any] = {"checksum": _NO_CHECKSUM, "format": form, "edges": ticket.masks.edges.size}
    header["shapes"] = {name: list(mask.shape) for name, mask in ticket.masks.weights.items()}
    header |= {name: nan_as_null(getattr(ticket, name)) for name in _PLAIN}
    columns, stages = history.to_tensors(ticket.history)
    tensors, header = tensors | (history.compressed(columns) if by_units else columns), header | stages
    content = to_bytes(own_copies(tensors), header)
    return content.replace(_NO_CHECKSUM.encode(), _checksum(content).encode(), 1)


def load(path: Path) -> Ticket:
    """Read a ticket and verify its checksum."""
    with disk_errors(path, "read"):
        if not path.is_file():
            raise InputError(
                f"a ticket must be a file (got '{path}', which is {'a folder' if path.is_dir() else 'not there'})"
            )
        return decode(path.read_bytes(), str(path), initial_file=path.parent / INITIAL_FILE)


def decode(content: bytes, source: str, *, initial_file: Path) -> Ticket:
    """A ticket from a file's bytes."""
    header = _header(content, source)
    if header["format"] not in (FORMAT, FORMAT_OF_UNITS):
        known = f"{FORMAT} or {FORMAT_OF_UNITS}"
        raise InputError(f"'{source}' must have ticket format {known} (got {header['format']}); update fastglt")
    checksum = str(header["checksum"])
    if _checksum(content.replace(checksum.encode(errors="replace"), _NO_CHECKSUM.encode(), 1)) != checksum:
        raise InputError(f"'{source}' is a damaged ticket (its checksum does not match); save or copy it again")
    _check_known(header["model"])
    try:
        return _ticket(header, read_tensors(content), initial_file)
    except _MALFORMED as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"'{source}' is a malformed ticket ({type(error).__name__}: {error})") from None


def _check_known(spec: Any) -> None:
    """Refuse a ticket of a backbone that is not here; whatever else is wrong with a spec is found later."""
    name = spec.get("name") if isinstance(spec, dict) else None
    if isinstance(name, str) and name not in (*BACKBONES, "pyg"):
        got = f"'{name}'" + (f" of {spec['class']}" if isinstance(spec.get("class"), str) else "")
        rule = f"the ticket's model must be one of {', '.join(BACKBONES)} or a registered one (got {got})"
        remedy = "fastglt.register(its class) in Python or `fastglt --use module:Class …` makes it known"
        raise InputError(f"{rule}; {remedy}")


def _ticket(header: Mapping[str, Any], tensors: Mapping[str, Tensor], initial_file: Path) -> Ticket:
    check_header(header)
    check_tensors(tensors)
    shapes = header["shapes"]
    unpack = mask_bits.unpack_units if header["format"] == FORMAT_OF_UNITS else mask_bits.unpack_named
    masks = Masks(
        edges=mask_bits.unpack(tensors["mask/edges"], [header["edges"]]),
        weights={name: unpack(tensors, f"mask/weights/{name}", shape) for name, shape in shapes.items()},
    )
    soft_edge_mask = tensors.get("edge_scores")
    if soft_edge_mask is not None and soft_edge_mask.shape != (masks.edges.count,):
        raise ValueError(f"{masks.edges.count} soft edge mask entries expected")
    weights = _Weights(tensors, masks)
    _check_shapes(header["model"], weights.shapes)
    plain = {name: header[name] for name in _PLAIN}
    plain["scores"] = {run: math.nan if value is None else float(value) for run, value in plain["scores"].items()}
    return Ticket(
        masks=masks,
        weights=weights,
        soft_edge_mask=soft_edge_mask,
        load_initial=_initial_loader(header, initial_file),
        history=history.from_tensors(tensors, header),
        **plain,
    )


class _Weights(Mapping[str, Tensor]):
    """The search's trained state from a file: kept weights take their places among zeros when they are asked for.

    So a ticket that is only looked at takes no more memory than its masks.
    """

    def __init__(self, tensors: Mapping[str, Tensor], masks: Masks) -> None:
        prefix = "weights/"
        self._stored = {
            name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)
        }
        self._masks, self._whole = masks.weights, dict[str, Tensor]()
        for name, mask in masks.weights.items():
            if self._stored[name].shape != (mask.count,):
                raise ValueError(f"{mask.count} kept weights of '{name}' expected")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Each tensor's shape."""
        return {
            name: self._masks[name].shape if name in self._masks else tuple(value.shape)
            for name, value in self._stored.items()
        }

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._masks:
            return self._stored[name]
        if name not in self._whole:
            mask, values = self._masks[name], self._stored[name]
            self._whole[name] = values.new_zeros(mask.shape)
            self._whole[name][mask.kept] = values
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _check_shapes(spec: dict[str, Any], stored: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a model of another size than its stored weights, before anything of that size is built."""
    if spec["name"] == "pyg":
        _ = spec["class"], spec["prunable"]  # its shapes are with its owner
        return
    claimed = _claimed_shapes(spec, most=len(stored))
    for name in sorted(claimed.keys() | stored.keys()):
        if claimed.get(name) != stored.get(name):
            raise ValueError(f"'{name}' of shape {claimed.get(name)} expected (got {stored.get(name)})")


def _claimed_shapes(spec: dict[str, Any], *, most: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a backbone's state, read off a tiny one: each of its sizes is a prime that tells which it is.

    No other number, such as of layers, may be larger than `most`. A backbone from outside may have shapes that no
    prime tells; it is its owner's code, and is built as large as it says.
    """
    if code_digest(BACKBONES[spec["name"]], Backbone) is not None:
        return {name: tuple(value.shape) for name, value in state_of(build_network(spec)).items()}
    twin = {name: _PRIMES.get(name, value) for name, value in spec.items()}
    sizes = {_PRIMES[name]: spec[name] for name in _PRIMES.keys() & spec.keys()}
    if "hidden" in (decoder := spec.get(KEY, {})):
        twin[KEY], sizes[_DECODER_PRIME] = {**decoder, "hidden": _DECODER_PRIME}, decoder["hidden"]
    for name, value in (*twin.items(), ("layers", decoder.get("layers"))):
        if name not in ("seed", *_PRIMES) and isinstance(value, int) and value > most:
            raise ValueError(f"{name} of at most {most} expected (got {value})")

    def real(size: int) -> int:
        factor = 1
        for prime, meant in sizes.items():
            while size and size % prime == 0:
                size, factor = size // prime, factor * meant
        return size * factor

    return {name: tuple(map(real, value.shape)) for name, value in state_of(build_network(twin)).items()}


def _checksum(content: bytes) -> str:
    """The digest of a file whose checksum is blanked out."""
    return hashlib.sha256(content).hexdigest()


def _header(content: bytes, source: str) -> dict[str, Any]:
    try:
        header = read_meta(content)
    except ValueError:
        if content[:2] == b"PK" or (content[:1] == b"\x80" and content[1:2] in b"\x02\x03\x04\x05"):
            kind = "a pickle or a torch.save archive, which is never read"
        else:
            kind = "not a fastglt ticket, or a damaged one"
        raise InputError(f"'{source}' is {kind}; expected a .safetensors file that fastglt saved") from None
    missing = {"format", "edges", "shapes", "checksum", *_PLAIN} - set(header)
    if missing:
        raise InputError(f"'{source}' is a damaged ticket (it lacks {', '.join(sorted(missing))})")
    return header


def _save_initial(ticket: Ticket, path: Path) -> None:
    if not path.exists():
        write_atomically(path, to_bytes(own_copies(ticket.initial), {}))
    elif state_hash(_read_initial(path)) != ticket.initial_hash:
        raise InputError(f"'{path}' belongs to another ticket; save this one in a folder of its own")


def _read_initial(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"the initial weights must lie beside the ticket (got no '{path}'); copy it there")
    try:
        with disk_errors(path, "read"):
            return read_tensors(path.read_bytes())
    except ValueError as error:
        raise InputError(f"'{path}' does not hold a ticket's initial weights, or is damaged ({error})") from None


def _initial_loader(header: Mapping[str, Any], initial_file: Path) -> Callable[[], Mapping[str, Tensor]]:
    if header["initial_from"] == "file":
        return partial(_read_initial, initial_file)
    return partial(_build_initial, header["model"])


def _build_initial(spec: dict[str, Any]) -> Mapping[str, Tensor]:
    return state_of(build_network(spec))
