import json
import struct
from typing import Any

import pytest
import torch

from fastglt.system.container import read_meta, read_tensors, seal, to_bytes, unseal

CONTENT = to_bytes({"a": torch.arange(6.0), "b": torch.ones(2, 2)}, {"epoch": 3})


def test_what_is_sealed_comes_back_and_what_is_not_as_well() -> None:
    assert unseal(seal(CONTENT)) == CONTENT
    assert unseal(CONTENT) == CONTENT
    assert seal(CONTENT) != CONTENT


def test_every_flipped_bit_is_noticed() -> None:
    content = seal(CONTENT)
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            with pytest.raises(ValueError, match=r"checksum|Header|header|metadata|Error"):
                read_tensors(unseal(bytes(changed)))


def test_every_cut_is_noticed() -> None:
    content = seal(CONTENT)
    for length in range(len(content)):
        with pytest.raises(ValueError, match=r"checksum|Header|header"):
            read_tensors(unseal(content[:length]))


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header.encode() if isinstance(header, str) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


HEADERS = {
    "no header": b"",
    "a length beyond the end": struct.pack("<Q", 100) + b"{}",
    "a huge length": struct.pack("<Q", 2**63) + b"{}",
    "nesting": file_of("[" * 100_000),
    "nesting inside": file_of({"__metadata__": {"fastglt": "[" * 100_000}}),
    "a list": file_of({"__metadata__": {"fastglt": "[]"}}),
    "a number": file_of({"__metadata__": {"fastglt": 3}}),
    "none": file_of({}),
}


@pytest.mark.parametrize("content", HEADERS.values(), ids=HEADERS)
def test_metadata_that_is_none_is_one_kind_of_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="no metadata of fastglt"):
        read_meta(content)


TENSORS = {
    "an unknown kind": {"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 4]}},
    "a kind PyTorch lacks": {"a": {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]}},
    "an overflow": {"a": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}},
    "a large size": {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}},
}


@pytest.mark.parametrize("header", TENSORS.values(), ids=TENSORS)
def test_tensors_that_are_none_are_one_kind_of_error(header: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each says something else
        read_tensors(file_of(header, b"\0" * 4))
