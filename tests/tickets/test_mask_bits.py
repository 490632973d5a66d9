"""Masks as bits, by entries and by rows and columns."""

import pytest
import torch

from fastglt.masks import Mask
from fastglt.methods import Budget, Targets, make
from fastglt.models import GCN
from fastglt.tickets.find import find
from fastglt.tickets.mask_bits import fits_units, pack_units, unpack_units
from fastglt.tickets.ticket import Ticket
from fastglt.tickets.ticket_file import decode, encode
from tests.helpers import randn, toy_task
from tests.tickets.test_ticket_file import NOWHERE

NAME = "mask/weights/one"


def stored(mask: Mask, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    return {**pack_units(NAME, mask), "weights/one": weight[mask.kept]}


class TestByRowsAndColumns:
    @pytest.mark.parametrize("shape", [(5, 9), (4, 3, 2), (7,)])
    def test_comes_back_as_it_was(self, shape: tuple[int, ...]) -> None:
        weight = randn(*shape)
        mask = Mask(weight > 0.5)
        assert unpack_units(stored(mask, weight), NAME, list(shape)) == mask

    def test_takes_little_where_few_units_are_left(self) -> None:
        kept = torch.zeros(1000, 512, dtype=torch.bool)
        kept[:, [3, 40, 500]] = True
        mask = Mask(kept)
        assert sum(part.nbytes for part in pack_units(NAME, mask).values()) == 125 + 64 + 375
        assert unpack_units(stored(mask, kept.float()), NAME, [1000, 512]) == mask

    def test_a_large_mask_from_few_bytes_is_refused(self) -> None:
        """Nobody may be made to need gigabytes by a small file."""
        kept = torch.zeros(4096, 4096, dtype=torch.bool)
        kept[0, 0] = True
        assert not fits_units(Mask(kept), torch.zeros(4096, 4096))
        with pytest.raises(ValueError, match=r"at most \d+ entries of a mask expected for 1029 bytes"):
            unpack_units(stored(Mask(kept), torch.zeros(4096, 4096)), NAME, [4096, 4096])

    def test_bits_that_do_not_fit_are_refused(self) -> None:
        weight = randn(5, 9)
        with pytest.raises(ValueError, match="a mask of 90 bits expected"):
            unpack_units(stored(Mask(weight > 0), weight), NAME, [5, 90])


def ticket_of(structure: str) -> Ticket:
    budget = Budget(oneshot_epochs=1, denoise_epochs=2, interval=1)
    targets = Targets(graph_sparsity=0.3, weight_sparsity=0.9, structure=structure)
    method = make("random", targets=targets, budget=budget)
    return find(GCN(12, 256, 3), toy_task(), method, seed=0, isolated=False, dense=False).ticket


class TestTickets:
    def test_one_of_units_comes_back_bit_for_bit(self, tmp_path: object) -> None:
        ticket = ticket_of("units")
        again = decode(encode(ticket), "a file", initial_file=tmp_path / "init.safetensors")  # type: ignore[operator]
        assert again.masks.weights == ticket.masks.weights
        assert encode(again) == encode(ticket)
        assert all(torch.equal(again.weights[name], value) for name, value in ticket.weights.items())

    def test_formats(self) -> None:
        assert b'\\"format\\": 2' in encode(ticket_of("units"))
        assert b'\\"format\\": 1' in encode(ticket_of("weights"))

    def test_the_history_of_units_is_compressed(self) -> None:
        ticket = ticket_of("units")
        content = encode(ticket)
        assert decode(content, "a file", initial_file=NOWHERE).history == ticket.history != ()
        assert b"history/loss" not in content
        assert b"history/loss" in encode(ticket_of("weights"))
