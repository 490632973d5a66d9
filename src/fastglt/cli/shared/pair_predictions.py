"""Pairs of nodes from a file, and how likely each is a link, in every form that is asked for."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastglt.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_HEAD = ("source", "target")
_RULE = "the file of pairs must have two nodes on a line, with a comma between them"


def read_pairs(path: Path, num_nodes: int, ids: Sequence[str] | None = None) -> "Tensor":
    """Node numbers, a row for each line of a CSV file, whose head (source,target) may be left out.

    Where nodes have ids, these are what is asked for. Columns beyond the second are not read.
    """
    import torch

    known = None if ids is None else {name: number for number, name in enumerate(ids)}
    found: list[list[int]] = []
    for number, row in enumerate(csv.reader(io.StringIO(_text(path))), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and tuple(cell.lower() for cell in cells[:2]) == _HEAD):
            continue
        if len(cells) < 2:
            raise InputError(f"{_RULE} (got '{cells[0]}' in line {number} of '{path}')")
        found.append([_node(cell, num_nodes, known, f"line {number} of '{path}'") for cell in cells[:2]])
    if not found:
        raise InputError(f"{_RULE} (got no line in '{path}')")
    return torch.tensor(found)


def _node(cell: str, num_nodes: int, known: dict[str, int] | None, where: str) -> int:
    if known is not None:
        if cell not in known:
            raise InputError(f"pairs must be of ids of the graph's file (got '{cell}' in {where})")
        return known[cell]
    if not cell.isdecimal() or not cell.isascii():
        raise InputError(f"{_RULE} (got '{cell}' in {where})")
    if int(cell) >= num_nodes:
        raise InputError(f"nodes must lie in 0 … {num_nodes - 1} (got {cell} in {where})")
    return int(cell)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"the file of pairs cannot be read: {reason} (got '{path}')") from None


class PredictedPairs:
    """The probability of a link for each pair, as in training, where every other pair is one."""

    def __init__(self, pairs: "Tensor", probabilities: "Tensor", ids: Sequence[str] | None) -> None:
        self.pairs, self.probabilities, self.ids = pairs, probabilities, ids

    def facts(self) -> dict[str, Any]:
        """How many."""
        return {"pairs": len(self.pairs)}

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """A row for each pair, or for the first ones: numbers, ids if there are any, the probability."""
        ends = self.pairs[:most].tolist()
        names = [{} if self.ids is None else self._called(*pair) for pair in ends]
        shares = self.probabilities[:most].tolist()
        return [
            {"source": source, "target": target, **called, "probability": share}
            for (source, target), called, share in zip(ends, names, shares, strict=True)
        ]

    def _called(self, source: int, target: int) -> dict[str, str]:
        assert self.ids is not None
        return {"source_id": self.ids[source], "target_id": self.ids[target]}

    def npz(self) -> bytes:
        """The columns as arrays."""
        import numpy as np

        file = io.BytesIO()
        arrays: dict[str, Any] = {"pairs": self.pairs.numpy(), "probabilities": self.probabilities.numpy()}
        if self.ids is not None:
            arrays["ids"] = np.array(self.ids)[self.pairs.numpy()]
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()

    def csv(self) -> bytes:
        """The rows as a table."""
        text, rows = io.StringIO(), self.rows()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([*list(row.values())[:-1], f"{row['probability']:.7g}"])
        return text.getvalue().encode()
