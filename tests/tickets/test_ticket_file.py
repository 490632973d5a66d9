import hashlib
import io
import json
import math
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor

from fastglt import GAT, GCN, GIN, InputError, MachineError, Mask, Masks, Ticket
from fastglt.tickets.ticket import OtherFeaturesWarning, state_hash
from fastglt.tickets.ticket_file import INITIAL_FILE, decode, encode
from tests.helpers import randn
from tests.toy_data import USER_MODELS, TakesData, quick_ticket, seeded, toy_data

NOWHERE = Path("nowhere")


@pytest.fixture(scope="module")
def user_ticket() -> Ticket:
    return quick_ticket(seeded(TakesData), isolated=False)


def made(masks: Masks, weights: dict[str, Tensor], **other: Any) -> Ticket:
    """A ticket of nothing but masks and weights."""
    initial = {name: torch.zeros_like(value) for name, value in weights.items()}
    given: dict[str, Any] = {
        "soft_edge_mask": None,
        "model": {"name": "pyg", "class": "nets.Net", "prunable": list(masks.weights)},
        "config": {"method": "fastglt", "options": {}, "budget": {}, "metric": "accuracy"},
        "seed": 0,
        "scores": {"search_val": 0.5},
        "graph_fingerprint": "g",
        "feature_fingerprint": "f",
        "initial_hash": state_hash(initial),
        "initial_from": "file",
        "versions": {"fastglt": "0"},
        "load_initial": lambda: initial,
    }
    return Ticket(masks=masks, weights=weights, **(given | other))


def same(one: Ticket, two: Ticket) -> None:
    assert one.masks == two.masks
    assert one.weights.keys() == two.weights.keys()
    for name, value in one.weights.items():
        assert value.dtype == two.weights[name].dtype
        assert torch.equal(value, two.weights[name])
    if one.soft_edge_mask is None or two.soft_edge_mask is None:
        assert one.soft_edge_mask is two.soft_edge_mask
    else:
        assert torch.equal(one.soft_edge_mask, two.soft_edge_mask)
    for name in ("model", "config", "seed", "graph_fingerprint", "feature_fingerprint", "initial_hash", "versions"):
        assert getattr(one, name) == getattr(two, name)
    assert json.dumps(dict(one.scores)) == json.dumps(dict(two.scores))


@st.composite
def tickets(draw: st.DrawFn) -> Ticket:
    def mask(*shape: int) -> Mask:
        size = math.prod(shape)
        bits = draw(
            st.one_of(
                st.just([True] * size),
                st.just([False] * size),
                st.lists(st.booleans(), min_size=size, max_size=size),
            )
        )
        return Mask(torch.tensor(bits, dtype=torch.bool).view(shape))

    edges = mask(draw(st.integers(0, 20)))
    kinds = st.sampled_from([torch.float32, torch.float64])
    names = st.text(min_size=1, max_size=8)
    masks, weights = {}, {}
    for name in draw(st.lists(names, max_size=3, unique=True)):
        shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
        masks[name] = mask(*shape)
        weights[name] = randn(*shape, seed=draw(st.integers(0, 9)), dtype=draw(kinds)) * masks[name].kept
    weights["a buffer's name"] = draw(
        st.sampled_from([torch.tensor(True), torch.tensor(7), torch.zeros(0, dtype=torch.int32), torch.ones(2, 2)])
    )
    scores = randn(edges.count) if draw(st.booleans()) else None
    results = st.dictionaries(names, st.floats(0, 1) | st.just(math.nan), max_size=3)
    return made(
        Masks(edges=edges, weights=masks),
        weights,
        soft_edge_mask=scores,
        scores=draw(results),
        seed=draw(st.integers(0, 2**63)),
    )


@settings(max_examples=60, deadline=None)
@given(ticket=tickets())
def test_every_ticket_survives_its_file(ticket: Ticket) -> None:
    content = encode(ticket)
    again = decode(content, "t", initial_file=NOWHERE)
    same(again, ticket)
    assert encode(again) == content


@settings(max_examples=60, deadline=None)
@given(ticket=tickets(), data=st.data())
def test_a_changed_byte_is_always_noticed(ticket: Ticket, data: st.DataObject) -> None:
    content = bytearray(encode(ticket))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InputError):
        decode(bytes(content), "t", initial_file=NOWHERE)


def test_every_changed_byte_of_a_real_ticket_is_noticed(ticket: Ticket) -> None:
    content = encode(ticket)
    for position in range(len(content)):
        for flip in (0x01, 0x20, 0xFF):  # 0x20 turns letters into capitals, which JSON may read alike
            changed = content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :]
            with pytest.raises(InputError):
                decode(changed, "t", initial_file=NOWHERE)


def test_a_truncated_or_longer_file_is_noticed(ticket: Ticket) -> None:
    content = encode(ticket)
    for length in [*range(64), *range(64, len(content), 37), len(content) - 1]:
        with pytest.raises(InputError):
            decode(content[:length], "t", initial_file=NOWHERE)
    with pytest.raises(InputError):
        decode(content + b"\0", "t", initial_file=NOWHERE)


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        decode(content, "t", initial_file=NOWHERE)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    archive = io.BytesIO()
    torch.save({"a": torch.zeros(2)}, archive)
    for content in (pickle.dumps(Bomb(), protocol=protocol), archive.getvalue()):
        Path("t.safetensors").write_bytes(content)
        expected = "never read" if protocol > 1 else "not a fastglt ticket|never read"
        with pytest.raises(InputError, match=expected):
            Ticket.load("t.safetensors")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("length", [0x480, 0x580, 0x4B50])
def test_a_header_whose_length_looks_like_a_pickle_is_read(length: int) -> None:
    """The first bytes of the file are the header's length, here those of a pickle or a zip archive."""
    for padding in range(max(0, length - 1400), length):
        small = made(Masks(edges=Mask([1]), weights={}), {}, versions={"padding": "x" * padding})
        content = encode(small)
        if int.from_bytes(content[:8], "little") == length:
            same(decode(content, "t", initial_file=NOWHERE), small)
            return
    pytest.fail("no padding gives that length")


def rewritten(content: bytes, **changes: Any) -> bytes:
    """A file with another header and a checksum that fits, as somebody might forge it."""
    length = int.from_bytes(content[:8], "little")
    outer = json.loads(content[8 : 8 + length])
    header = json.loads(outer["__metadata__"]["fastglt"])
    for name, value in changes.items():
        if value is None:
            del header[name]
        else:
            header[name] = value
    if "checksum" in header:
        header["checksum"] = "0" * 64
    outer["__metadata__"]["fastglt"] = json.dumps(header)
    text = json.dumps(outer, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text + content[8 + length :]
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


def test_a_forged_file_is_refused_with_a_reason(ticket: Ticket) -> None:
    content = encode(ticket)
    same(decode(rewritten(content), "t", initial_file=NOWHERE), ticket)
    forgeries: list[tuple[dict[str, Any], str]] = [
        ({"format": 3}, r"must have ticket format 1 or 2 \(got 3\)"),
        ({"seed": None}, "lacks seed"),
        ({"checksum": None}, "lacks checksum"),
        ({"edges": 10**15}, "a mask of .* bits expected"),
        ({"edges": -1}, "malformed"),
        ({"edges": "many"}, "malformed"),
        ({"shapes": {"layer1.weight": [6, 7]}}, "expected"),
        ({"shapes": {"layer9.weight": [6, 8]}}, "malformed"),
        ({"shapes": []}, "malformed"),
        ({"scores": [1]}, "malformed"),
    ]
    for changes, reason in forgeries:
        with pytest.raises(InputError, match=reason):
            decode(rewritten(content, **changes), "t", initial_file=NOWHERE)


@pytest.mark.parametrize(
    "model", ["gcn", "gat", GIN(6, 8, 3, depth=3), GAT(6, 4, 3, heads=2, prune_attention=True)]
)
def test_a_model_must_be_as_large_as_its_weights(model: Any) -> None:
    ticket = quick_ticket(model, isolated=False)
    content = encode(ticket)
    same(decode(content, "t", initial_file=NOWHERE), ticket)
    huge = {"in_channels": 10**6, "hidden": 10**6, "out_channels": 10**9, "heads": 10**6, "depth": 10**9}
    for name in huge.keys() & ticket.model.keys():
        for size in (huge[name], ticket.model[name] + 1, str(ticket.model[name]), 0):
            forged = rewritten(content, model={**ticket.model, name: size})
            with pytest.raises(
                InputError, match=r"malformed ticket \(.* expected|does not take|at least 1|a number"
            ):
                decode(forged, "t", initial_file=NOWHERE)


def test_a_ticket_has_every_weight_of_its_model_and_no_other(ticket: Ticket) -> None:
    without = {name: value for name, value in ticket.weights.items() if name != "layer1.bias"}
    for weights, reason in (
        (without, r"'layer1.bias' of shape \(8,\) expected \(got None\)"),
        ({**ticket.weights, "more": torch.zeros(2)}, r"'more' of shape None expected \(got \(2,\)\)"),
    ):
        with pytest.raises(InputError, match=reason):
            decode(encode(replace(ticket, weights=weights)), "t", initial_file=NOWHERE)
    models: list[Any] = [{"name": "pyg"}, {}, [], {"name": "gnc"}]
    for model in models:
        with pytest.raises(InputError, match=r"malformed|or a registered one"):
            decode(rewritten(encode(ticket), model=model), "t", initial_file=NOWHERE)


@pytest.mark.parametrize("metadata", [None, {"other": "x"}, {"fastglt": "x"}, {"fastglt": "[]"}, {"fastglt": "3"}])
def test_another_safetensors_file_is_refused(metadata: dict[str, str] | None) -> None:
    content = save_tensors({"a": torch.zeros(2)}, metadata)
    with pytest.raises(InputError, match=r"not a fastglt ticket|lacks"):
        decode(content, "t", initial_file=NOWHERE)


@pytest.mark.parametrize("model", ["gcn", "gin", "gat", *USER_MODELS])
def test_equal_runs_give_equal_bytes(model: str, tmp_path: Path) -> None:
    contents = []
    for folder in ("one", "two"):
        built = seeded(USER_MODELS[model]) if model in USER_MODELS else model
        quick_ticket(built, isolated=False, seed=3).save(tmp_path / folder / "t.safetensors")
        contents.append([path.read_bytes() for path in sorted((tmp_path / folder).iterdir())])
    assert contents[0] == contents[1]
    assert len(contents[0]) == (2 if model in USER_MODELS else 1)
    for content in contents[0]:
        assert str(tmp_path).encode() not in content


def test_the_file_is_readable_by_anybody(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", "pt") as file:
        header = json.loads(file.metadata()["fastglt"])
        assert file.get_tensor("mask/edges").shape == (8,)
        assert file.get_tensor("edge_scores").shape == (42,)
    assert header["format"] == 1
    assert header["shapes"] == {"layer1.weight": [6, 8], "layer2.weight": [8, 3]}


def test_a_ticket_of_a_backbone_is_one_file_that_makes_its_initial_weights_again(
    ticket: Ticket, tmp_path: Path
) -> None:
    ticket.save(tmp_path / "t.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["t.safetensors"]
    again = Ticket.load(tmp_path / "t.safetensors", toy_data())
    same(again, ticket)
    assert again.initial_from == "recipe"
    assert state_hash(again.initial) == state_hash(GCN(6, 8, 3, seed=0).state_dict()) == again.initial_hash


def test_a_backbone_with_other_weights_keeps_them_in_a_file(tmp_path: Path) -> None:
    model = GCN(6, 8, 3)
    with torch.no_grad():
        model.layer2.bias[1] = 0.25
    ticket = quick_ticket(model, isolated=False)
    assert ticket.initial_from == "file"
    ticket.save(tmp_path / "t.safetensors")
    again = Ticket.load(tmp_path / "t.safetensors")
    assert state_hash(again.initial) == state_hash(model.state_dict())


def test_a_users_ticket_comes_with_its_initial_weights(user_ticket: Ticket, tmp_path: Path) -> None:
    user_ticket.save(tmp_path / "a" / "t.safetensors")
    shutil.move(tmp_path / "a", tmp_path / "b")
    again = Ticket.load(tmp_path / "b" / "t.safetensors")
    same(again, user_ticket)
    assert state_hash(again.initial) == state_hash(seeded(TakesData).state_dict())
    again.save(tmp_path / "b" / "copy.safetensors")  # the same initial weights serve both
    again.save(tmp_path / "c" / "copy.safetensors")
    assert state_hash(Ticket.load(tmp_path / "c" / "copy.safetensors").initial) == user_ticket.initial_hash


def test_missing_and_altered_initial_weights(user_ticket: Ticket, tmp_path: Path) -> None:
    path, initial = tmp_path / "t.safetensors", tmp_path / INITIAL_FILE
    user_ticket.save(path)
    content = initial.read_bytes()
    initial.unlink()
    lazy = Ticket.load(path)  # the ticket itself is whole
    with pytest.raises(InputError, match=r"must lie beside the ticket \(got no '.*init.safetensors'\)"):
        _ = lazy.initial
    initial.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="must have digest"):
        _ = Ticket.load(path).initial
    for damaged in (content[:100], b"", pickle.dumps(Bomb())):
        initial.write_bytes(damaged)
        with pytest.raises(InputError, match="or is damaged"):
            _ = Ticket.load(path).initial


def test_another_tickets_initial_weights_are_not_overwritten(user_ticket: Ticket, tmp_path: Path) -> None:
    user_ticket.save(tmp_path / "t.safetensors")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = quick_ticket(seeded(TakesData, seed=9), isolated=False)
    with pytest.raises(InputError, match="belongs to another ticket; save this one in a folder of its own"):
        other.save(tmp_path / "other.safetensors")
    (tmp_path / "fine").mkdir()
    other.save(tmp_path / "fine" / "other.safetensors")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_ticket_cannot_take_the_initial_weights_name(user_ticket: Ticket, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must have another name"):
        user_ticket.save(tmp_path / INITIAL_FILE)


def test_weights_that_share_memory_can_be_saved(ticket: Ticket) -> None:
    shared = torch.ones(4)
    masks = Masks(edges=Mask([1]), weights={})
    tied = made(masks, {"a": shared, "b": shared, "c": torch.arange(6.0).view(2, 3).T})
    same(decode(encode(tied), "t", initial_file=NOWHERE), tied)


def test_scores_that_are_missing_come_back_as_nan(ticket: Ticket) -> None:
    content = encode(replace(ticket, scores={"search_test": math.nan, "search_val": 0.5}))
    assert b"NaN" not in content
    assert math.isnan(decode(content, "t", initial_file=NOWHERE).scores["search_test"])


def test_the_graph_is_checked_on_loading(ticket: Ticket, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    ticket.save(path)
    data = toy_data()
    other = toy_data()
    other.edge_index = (other.edge_index + 1) % 30
    other.edge_index[other.edge_index == 7] = 8
    with pytest.raises(InputError, match=r"another graph|decides on 60 edges"):
        Ticket.load(path, other)
    loops = toy_data(loops=True)
    with pytest.raises(InputError, match="another graph"):
        Ticket.load(path, loops)
    Ticket.load(path, loops, other_graph=True)
    data.x = data.x * 2
    with pytest.warns(OtherFeaturesWarning):
        Ticket.load(path, data)
    for name in ("y", "train_mask", "val_mask", "test_mask", "x"):
        del data[name]
    data.num_nodes = 30
    Ticket.load(path, data)  # a graph alone is enough


@pytest.mark.parametrize("scored", [True, False])
def test_a_ticket_is_hardly_larger_than_what_it_holds(scored: bool) -> None:
    """Cora's shapes at 95 % weight sparsity: kept weights and scores of kept edges by four bytes, masks by bits."""
    model = GCN(1433, 512, 7)
    kept = randn(1433 * 512 + 512 * 7).argsort().argsort() >= round(0.95 * (1433 * 512 + 512 * 7))
    first, second = kept[: 1433 * 512].view(1433, 512), kept[1433 * 512 :].view(512, 7)
    masks = Masks(
        edges=Mask(randn(5278) > -0.84), weights={"layer1.weight": Mask(first), "layer2.weight": Mask(second)}
    )
    ticket = made(masks, dict(model.state_dict()), soft_edge_mask=randn(masks.edges.count) if scored else None)
    numbers = masks.weights_kept + (masks.edges.count if scored else 0)
    held = 4 * numbers + (masks.weights_total + masks.edges.size) / 8
    assert len(encode(ticket)) < 1.1 * held


def test_what_the_disk_refuses(ticket: Ticket, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(MachineError, match="cannot write"):
        ticket.save(tmp_path / "file" / "t.safetensors")
    with pytest.raises(MachineError, match="it is a folder; name a file"):
        ticket.save(tmp_path)
    with pytest.raises(InputError, match="which is not there"):
        Ticket.load(tmp_path / "none.safetensors")
    with pytest.raises(InputError, match="which is a folder"):
        Ticket.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
