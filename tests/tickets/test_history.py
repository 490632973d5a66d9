"""The search's history stays with a saved ticket."""

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError, Ticket
from fastglt.tickets.history import COMPRESSED, compressed, from_tensors, to_tensors
from fastglt.tickets.ticket_file import decode, encode
from fastglt.training.records import EpochRecord
from tests.tickets.test_ticket_file import NOWHERE, rewritten


def record(epoch: int, **other: Any) -> EpochRecord:
    given: dict[str, Any] = {
        "stage": "oneshot",
        "loss": 0.1 * epoch,
        "val": 0.5,
        "val_loss": 1 / 3,
        "test": 2 / 3,
        "graph_sparsity": 0.2,
        "weight_sparsity": 0.9,
    }
    return EpochRecord(epoch=epoch, **{**given, **other})


def test_a_saved_ticket_has_its_history(ticket: Ticket, tmp_path: Path) -> None:
    assert ticket.history
    ticket.save(tmp_path / "t.safetensors")
    again = Ticket.load(tmp_path / "t.safetensors")
    assert again.history == ticket.history
    assert encode(again) == encode(ticket), "saved again it is the same file"


def test_a_ticket_without_one_is_the_file_it_was(ticket: Ticket) -> None:
    bare = replace(ticket, history=())
    assert b"history" not in encode(bare)
    assert decode(encode(bare), "t", initial_file=NOWHERE).history == ()


@pytest.mark.parametrize("epochs", [1, 2, 500])
def test_every_number_is_kept_exactly(epochs: int) -> None:
    history = tuple(
        record(
            epoch,
            stage="denoise" if epoch > 3 else "oneshot",
            loss=math.inf if epoch == 1 else 1 / epoch,
            edges_dropped=epoch * 70_000,
            weights_grown=epoch % 2,
        )
        for epoch in range(1, epochs + 1)
    )
    tensors, header = to_tensors(history)
    assert from_tensors(tensors, header) == history
    assert tensors["history/val"].numel() == 1, "what never changes is there once"
    assert sum(tensor.nbytes for tensor in tensors.values()) < 24 * epochs + 80


def test_scores_that_are_not_there_stay_so() -> None:
    history = tuple(record(epoch, test=math.nan) for epoch in (1, 2))
    again = from_tensors(*to_tensors(history))
    assert all(math.isnan(one.test) for one in again)
    assert [replace(one, test=0.0) for one in again] == [replace(one, test=0.0) for one in history]


@pytest.mark.parametrize("stages", ["oneshot", [1], [], {"a": 1}], ids=["text", "numbers", "too few", "mapping"])
def test_stages_that_no_search_has_are_refused(ticket: Ticket, stages: object) -> None:
    with pytest.raises(InputError, match="malformed ticket"):
        decode(rewritten(encode(ticket), history_stages=stages), "t", initial_file=NOWHERE)


@pytest.mark.parametrize(
    "change",
    [
        {"history/loss": torch.zeros(3, dtype=torch.int64)},
        {"history/epoch": torch.zeros(4)},
        {"history/epoch": torch.zeros(3, dtype=torch.int64)},
        {"history/val": torch.zeros(2, 2)},
        {"history/stage": torch.tensor([9])},
    ],
)
def test_columns_that_no_search_has_are_refused(change: dict[str, Tensor]) -> None:
    tensors, header = to_tensors([record(epoch) for epoch in range(1, 5)])
    with pytest.raises(ValueError, match="history"):
        from_tensors({**tensors, **change}, header)


def squeezed(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(zlib.compress(content)), dtype=torch.uint8)


class TestCompressed:
    HISTORY = tuple(record(epoch, loss=1 / epoch, test=epoch % 7 / 11) for epoch in range(1, 451))

    def test_every_number_is_kept_exactly(self) -> None:
        tensors, header = to_tensors(self.HISTORY)
        packed = compressed(tensors)
        assert set(packed) == {COMPRESSED}
        assert from_tensors(packed, header) == self.HISTORY
        assert packed[COMPRESSED].nbytes < sum(tensor.nbytes for tensor in tensors.values()) * 0.7

    def test_none_stays_none(self) -> None:
        assert compressed({}) == {}

    @pytest.mark.parametrize(
        ("damage", "reason"),
        [
            (lambda packed: packed[:-9], "too long, or cut off"),
            (lambda packed: packed.flip(0), "damaged"),
            (lambda packed: packed.to(torch.bfloat16), "damaged"),
            (lambda packed: squeezed(bytes(20_000_000)), "too long"),
            (lambda packed: squeezed(b"no tensors"), "[Hh]eader"),
        ],
        ids=["cut off", "other bytes", "other numbers", "a bomb", "no tensors"],
    )
    def test_what_no_search_has_is_refused(self, damage: Callable[[Tensor], Tensor], reason: str) -> None:
        tensors, header = to_tensors(self.HISTORY)
        with pytest.raises(ValueError, match=reason):
            from_tensors({COMPRESSED: damage(compressed(tensors)[COMPRESSED])}, header)
