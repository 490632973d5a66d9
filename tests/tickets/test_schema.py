"""Tickets that are well formed, with a checksum that fits, and not what fastglt writes."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastglt import InputError, Mask, Masks, Ticket
from fastglt.tickets.ticket_file import decode, encode
from tests.processes import run
from tests.tickets.test_ticket_file import made, rewritten
from tests.toy_data import quick_ticket

NOWHERE = Path("nowhere")
CONFIG = {"method": "fastglt", "options": {}, "budget": {}, "metric": "accuracy"}

HEADERS: list[dict[str, Any]] = [
    {"edges": True},
    {"edges": 60.0},
    {"edges": [60]},
    {"shapes": {"layer1.weight": 48}},
    {"shapes": {"layer1.weight": [True] * 6}},
    {"shapes": {"layer1.weight": [1] * 40}},
    {"model": {"name": ["gcn"]}},
    {"model": {"name": "pyg", "class": 3, "prunable": []}},
    {"model": {"name": "pyg", "class": "a.B", "prunable": [1]}},
    {"config": []},
    {"config": {}},
    {"config": {**CONFIG, "method": ["a"]}},
    {"config": {**CONFIG, "options": [1]}},
    {"config": {**CONFIG, "budget": {"lr": "fast"}}},
    {"config": {**CONFIG, "budget": {"speed": 1}}},
    {"config": {**CONFIG, "budget": {"oneshot_epochs": -1}}},
    {"config": {**CONFIG, "metric": 1}},
    {"config": {**CONFIG, "task": {"a": 1}}},
    {"config": {**CONFIG, "edge_values": 1}},
    {"config": {**CONFIG, "more": 10**300}},
    {"seed": "0"},
    {"seed": 0.5},
    {"seed": 2**80},
    {"scores": {"search_val": "high"}},
    {"scores": {"search_val": [1]}},
    {"scores": {"search_val": 10**300}},
    {"graph_fingerprint": 7},
    {"feature_fingerprint": []},
    {"initial_hash": {}},
    {"initial_from": "nowhere"},
    {"versions": ["1"]},
    {"versions": {"fastglt": 1}},
]


@pytest.mark.parametrize("changes", HEADERS, ids=lambda changes: str(changes)[:60])
def test_metadata_of_another_type_is_refused(ticket: Ticket, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="malformed ticket"):
        decode(rewritten(encode(ticket), **changes), "t", initial_file=NOWHERE)


@pytest.mark.parametrize("depth", [33, 900, 100_000])
def test_metadata_nested_too_deep_is_refused(ticket: Ticket, depth: int) -> None:
    content = rewritten(encode(ticket), config={**CONFIG, "options": {"a": "DEEP"}})
    deep = content.replace(b'\\"DEEP\\"', b"[" * depth + b"]" * depth)
    deep = (int.from_bytes(content[:8], "little") + len(deep) - len(content)).to_bytes(8, "little") + deep[8:]
    with pytest.raises(InputError, match="not a fastglt ticket"):
        decode(deep, "t", initial_file=NOWHERE)


def test_the_options_of_a_backbone_have_their_types() -> None:
    ticket = quick_ticket("gat", isolated=False)
    for name, value in (
        ("slope", "steep"),
        ("slope", True),
        ("prune_attention", 1),
        ("seed", 1.5),
        ("dropout", []),
    ):
        with pytest.raises(InputError, match=f"malformed ticket .*{name} of the kind of"):
            decode(rewritten(encode(ticket), model={**ticket.model, name: value}), "t", initial_file=NOWHERE)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.uint16])
def test_weights_of_another_kind_are_refused(dtype: torch.dtype) -> None:
    odd = made(Masks(edges=Mask([1]), weights={}), {"a": torch.ones(2).to(dtype)})
    with pytest.raises(InputError, match=r"'weights/a' must hold real numbers \(got torch."):
        decode(encode(odd), "t", initial_file=NOWHERE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float8_e4m3fn])
def test_a_soft_mask_of_another_kind_is_refused(ticket: Ticket, dtype: torch.dtype) -> None:
    assert ticket.soft_edge_mask is not None
    odd = replace(ticket, soft_edge_mask=ticket.soft_edge_mask.to(dtype))
    with pytest.raises(InputError, match="'edge_scores' must hold real numbers"):
        decode(encode(odd), "t", initial_file=NOWHERE)


def test_looking_at_a_ticket_takes_little_more_than_its_masks() -> None:
    """Sixteen million weights, all of them pruned: two megabytes of bits for 64 MB of zeros."""
    shape = (4096, 4096)
    mask = Mask(torch.zeros(shape, dtype=torch.bool))
    content = encode(made(Masks(edges=Mask([1]), weights={"a": mask}), {"a": torch.zeros(shape)}))
    assert len(content) < 2**21 + 2000
    tracemalloc.start()  # NumPy's memory; PyTorch's own is not counted, so it is looked at below
    found = decode(content, "t", initial_file=NOWHERE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * len(content)
    assert found.weights._whole == {}  # type: ignore[attr-defined]  # nothing has been written out
    assert found.masks.weights["a"].count == 0
    assert torch.equal(found.weights["a"], torch.zeros(shape))
    assert found.weights["a"] is found.weights["a"]


def test_weights_from_a_file_are_a_mapping(ticket: Ticket) -> None:
    found = decode(encode(ticket), "t", initial_file=NOWHERE).weights
    assert dict(found).keys() == ticket.weights.keys()
    assert len(found) == len(ticket.weights)
    assert "layer9.weight" not in found
    with pytest.raises(KeyError):
        found["layer9.weight"]
    for name, value in ticket.weights.items():
        assert np.array_equal(found[name].numpy(), value.numpy())


LOW = """
import resource, sys
import fastglt, fastglt.tickets.ticket_file
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), used + (24 << 20)))
try:
    fastglt.Ticket.load(sys.argv[1])
except fastglt.MachineError as error:
    print(error)
"""


def test_memory_that_runs_out_is_the_machines_fault(tmp_path: Path) -> None:
    """A ticket with a mask of sixty-four million bits in a process that may have 24 MB more."""
    mask = Mask(torch.zeros(8192, 8192, dtype=torch.bool))
    path = tmp_path / "large.safetensors"
    path.write_bytes(encode(made(Masks(edges=Mask([1]), weights={"a": mask}), {"a": torch.zeros(8192, 8192)})))
    result = run("-c", LOW, path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        f"cannot read '{path}': there is not enough memory; close other programs, or use a machine with more\n"
    )
