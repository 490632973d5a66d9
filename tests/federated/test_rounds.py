"""Federations in one process: tickets travel small, are ordinary ones, and bad answers are left out."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fastglt import InputError, MachineError
from fastglt.federated import Federation, Plan, federated_ticket
from fastglt.federated.agreement import agree
from fastglt.federated.client import digest_of
from fastglt.federated.messages import Layout, Order, Reply, bits
from fastglt.federated.parts import part_of, shares
from fastglt.federated.rounds import InProcess
from fastglt.federated.server import Server
from fastglt.masks import Mask
from fastglt.models import GCN
from fastglt.system.container import read_meta, read_tensors, to_bytes
from tests.helpers import toy_task
from tests.toy_data import toy_data

SHORT: dict[str, Any] = {"clients": 3, "parts": "random", "rounds": 6, "warmup": 2, "weight_sparsity": 0.8}


def federation(**plan: Any) -> Federation:
    return Federation(task=toy_task(), network=GCN(12, 8, 3), plan=Plan(**{**SHORT, **plan}))


def test_parts_have_every_node_once_and_no_edge_between_them() -> None:
    task = toy_task()
    for how in ("random", "metis"):
        owner = shares(task.graph, 4, how, seed=0)
        parts = [part_of(task, owner, client) for client in range(4)]
        assert sum(part.graph.num_nodes for part in parts) == 30
        assert sum(part.train.numel() for part in parts) == task.train.numel()
        inside = int((owner[task.graph.edges[0]] == owner[task.graph.edges[1]]).sum())
        assert sum(part.graph.num_edges for part in parts) == inside
        assert torch.equal(owner, shares(task.graph, 4, how, seed=0))
    cut = {how: shares(task.graph, 3, how, seed=0)[task.graph.edges] for how in ("random", "metis")}
    crossing = {how: int((ends[0] != ends[1]).sum()) for how, ends in cut.items()}
    assert crossing["metis"] < crossing["random"]
    with pytest.raises(InputError, match=r"must not exceed the 30 nodes \(got 31\)"):
        shares(task.graph, 31, "random", seed=0)


def test_a_message_is_its_kept_weights_and_the_mask_is_sent_once() -> None:
    server = Server(network=GCN(12, 8, 3), plan=Plan(**SHORT))
    layout = server.layout
    assert (layout.prunable_size, layout.length(None)) == (120, 131)
    mask = Mask(torch.arange(120) % 5 == 0)
    state = GCN(12, 8, 3, seed=4).state_dict()
    again = layout.state(layout.vector(state, mask), mask)
    for name, kept in layout.masks(mask).items():
        assert torch.equal(again[name], state[name] * kept.kept)
    server.mask, server.values = mask, layout.vector(state, mask)
    first = server.orders([0])[0]
    order, came = Order.read(first, layout)
    assert came == mask
    assert order.values.numel() == 24 + 11
    server._told = {0}
    second = server.orders([0])[0]
    assert len(first) - len(second) >= bits(mask).numel() == 15
    assert "mask" not in read_tensors(second)


def test_a_dense_average_of_one_client_is_its_own_training_and_of_equals_is_theirs() -> None:
    alone = federation(clients=1, weight_sparsity=0.0, warmup=0, server="average", rounds=3)
    server, client = Server(network=alone.network, plan=alone.plan), alone.members()[0]
    for _ in range(3):
        orders = server.orders([0])
        reply = client.answer(orders[0])
        sent = Reply.read(reply, round=len(server.rounds) + 1, mask_digest="dense", length=131).values
        server.take(orders, {0: reply})
        assert sent is not None
        assert torch.equal(server.values, sent)


def test_weights_are_averaged_by_training_nodes() -> None:
    server = Server(network=GCN(12, 8, 3), plan=Plan(**{**SHORT, "server": "average"}))
    orders = server.orders([0, 1, 2])
    told: dict[str, Any] = {"round": 1, "mask_digest": "dense"}
    replies = {
        0: Reply(client=0, train_nodes=1, values=torch.zeros(131), **told).write(),
        1: Reply(client=1, train_nodes=3, values=torch.ones(131), **told).write(),
        2: Reply(client=2, **told).write(),
    }
    done = server.take(orders, replies)
    assert done.left_out == {}
    assert torch.allclose(server.values, torch.full([131], 0.75))
    assert done.up == sum(map(len, replies.values()))


def test_a_ticket_is_found_on_the_way_and_is_an_ordinary_one(tmp_path: object) -> None:
    found = federated_ticket("gcn", toy_data(), hidden=8, **{**SHORT, "rounds": 8})
    assert found.ticket.masks.weights_total - found.ticket.masks.weights_kept == round(
        0.8 * found.ticket.masks.weights_total
    )
    assert found.ticket.config["federated"]["clients"] == 3
    assert found.ticket.config["method"] == "federated"
    dense, sparse = found.rounds[0], found.rounds[-2]
    assert (dense.kept, sparse.kept) == (found.ticket.masks.weights_total, found.ticket.masks.weights_kept)
    assert sparse.up + sparse.down < dense.up + dense.down
    assert found.best_round > 2
    assert found.bytes_in_all == sum(one.up + one.down for one in found.rounds)
    for name, mask in found.ticket.masks.weights.items():
        assert not found.ticket.weights[name][~mask.kept].any()
    again = federated_ticket("gcn", toy_data(), hidden=8, **{**SHORT, "rounds": 8})
    assert all(torch.equal(again.ticket.weights[name], value) for name, value in found.ticket.weights.items())


def test_clients_need_no_memory_but_the_mask() -> None:
    kept, fresh = federation(), federation()

    class Forgetful(InProcess):
        def ask(self, orders, round):  # type: ignore[no-untyped-def]
            for client in self.members.values():
                client._training = None
            return super().ask(orders, round)

    first = kept.run()
    second = fresh.run(Forgetful(members=fresh.members()))
    assert [one.scores for one in first.rounds] == [one.scores for one in second.rounds]


def changed(reply: bytes, change: Callable[[dict[str, object], torch.Tensor], torch.Tensor]) -> bytes:
    meta, tensors = read_meta(reply), read_tensors(reply)
    values = change(meta, tensors["values"])
    return to_bytes({"values": values.contiguous()}, meta)


def other_mask(meta: dict[str, object], values: torch.Tensor) -> torch.Tensor:
    meta["mask_digest"] = "0" * 16
    return values


def old_round(meta: dict[str, object], values: torch.Tensor) -> torch.Tensor:
    meta["round"] = 1
    return values


FAULTS: dict[int, tuple[Callable[[bytes], bytes | None], str]] = {
    2: (lambda reply: None, "it did not answer"),
    3: (lambda reply: changed(reply, lambda _, values: values * math.nan), "its weights are not finite"),
    4: (lambda reply: changed(reply, lambda _, values: values[:-1].clone()), "its weights have a wrong shape"),
    5: (lambda reply: changed(reply, other_mask), "it has another mask"),
    6: (lambda reply: changed(reply, old_round), "it answers round 1"),
    7: (lambda reply: b"garbage", "no metadata of fastglt"),
}


def test_who_vanishes_or_sends_nonsense_is_left_out_of_the_round_and_named() -> None:
    whole = federation(rounds=8)
    faults = {(number, 1): fault for number, (fault, _) in FAULTS.items()}
    found = whole.run(InProcess(members=whole.members(), faults=faults))
    for done in found.rounds:
        if done.number in FAULTS:
            assert list(done.left_out) == [1]
            assert FAULTS[done.number][1] in done.left_out[1]
        else:
            assert done.left_out == {}
    assert all(torch.isfinite(value).all() for value in found.ticket.weights.values())


def test_a_client_that_missed_the_mask_is_sent_it_again() -> None:
    whole = federation()
    members = whole.members()
    found = whole.run(InProcess(members=members, faults={(3, 1): lambda reply: None, (4, 1): lambda reply: None}))
    down = {one.number: one.down for one in found.rounds}
    extra = down[3] - down[6]  # three masks, and their entries in the files' heads
    assert down[4] - down[6] == down[5] - down[6] == extra / 3
    assert digest_of(members[1].mask) == digest_of(members[0].mask)


def test_a_client_whose_code_fails_is_named_and_without_any_the_run_ends() -> None:
    whole = federation()
    members = whole.members()

    def fail(content: bytes) -> bytes:
        raise RuntimeError("no more power")

    members[2].answer = fail  # type: ignore[method-assign]
    found = whole.run(InProcess(members=members))
    assert found.rounds[0].left_out == {2: "it failed (no more power)"}
    for client in members.values():
        client.answer = fail  # type: ignore[method-assign]
    with pytest.raises(MachineError, match=r"no client could be used in round 1 \(client 0: it failed"):
        federation().run(InProcess(members=members))


def test_masks_are_agreed_on_by_hand_computed_cases() -> None:
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    moved = torch.tensor([4.0, 1.0, 0.0, 0.1])
    steps = [
        torch.tensor([0.0, 1.0, 0.0, 0.0]),
        torch.tensor([0.0, 2.0, 0.0, 0.1]),
        torch.tensor([0.0, 0.0, 1.0, 0.0]),
    ]
    kept = {
        how: agree(how, weights, moved, steps, sparsity=0.75, seed=0).kept.tolist() for how in ("server", "vote")
    }
    assert kept == {"server": [True, False, False, False], "vote": [False, True, False, False]}
    assert agree("union", weights, moved, steps, sparsity=0.75, seed=0).kept.tolist() == [False, True, True, False]


def test_clients_alone_are_trained_without_the_others() -> None:
    found = federation(rounds=3).alone()
    assert 0 <= found["pooled"] <= 1


def test_plans_that_make_no_sense_are_refused() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"warmup": 0}, "warmup must be at least 1 and less than the 100 rounds"),
        ({"parts": "kmeans"}, "unknown parts"),
        ({"agreement": "none"}, "unknown agreement"),
        ({"clients": 0}, "clients must be at least 1"),
        ({"weight_sparsity": 1.0}, r"weight_sparsity must lie in \[0, 1\)"),
    )
    for wrong, message in cases:
        with pytest.raises(InputError, match=message):
            Plan(**wrong)
    assert Layout.of(GCN(12, 8, 3)).length(None) == 131
