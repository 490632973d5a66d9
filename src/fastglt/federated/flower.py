"""Flower carries the messages: a ServerApp that runs the rounds, a ClientApp that answers. Both are thin.

The server's bytes are the one value of a `ConfigRecord`, and so are the clients'. A ClientApp may be a process of
its own for each message, so the mask that a client was sent is kept in Flower's state of its node.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fastglt.errors import MachineError
from fastglt.federated.job import Job
from fastglt.federated.server import Replies
from fastglt.kernels import set_threads
from fastglt.system.storage import write_atomically
from fastglt.tickets.mask_bits import pack, unpack

KEY, PAYLOAD, MASK = "fastglt", "payload", "mask"
TICKET, ROUNDS, FAILED = "ticket.safetensors", "rounds.json", "failed.txt"
client_app, server_app = ClientApp(), ServerApp()


def _content(payload: bytes) -> RecordDict:
    return RecordDict({KEY: ConfigRecord({PAYLOAD: payload})})


def who(message: Message, context: Context) -> Message:
    """Which client this node is."""
    return Message(_content(str(context.node_config["partition-id"]).encode()), reply_to=message)


def answer(message: Message, context: Context) -> Message:
    """Score, train and send back."""
    import torch

    from fastglt.federated.messages import Layout

    set_threads(1)
    client = Job.of(str(context.run_config["job"])).federation().member(int(context.node_config["partition-id"]))
    size = Layout.of(client.network).prunable_size
    if KEY in context.state:
        known = bytes(context.state[KEY][MASK])
        client.mask = unpack(torch.frombuffer(bytearray(known), dtype=torch.uint8), [size])
    reply = client.answer(bytes(message.content[KEY][PAYLOAD]))
    if client.mask is not None:
        context.state[KEY] = ConfigRecord({MASK: pack(client.mask).numpy().tobytes()})
    return Message(_content(reply), reply_to=message)


class FlowerCarrier:
    """Takes messages to Flower's nodes, each of which is a client."""

    def __init__(self, grid: Grid, clients: int, *, patience: float) -> None:
        self._grid, self._patience = grid, patience
        self._nodes = self._meet(clients)

    def _meet(self, clients: int) -> dict[int, int]:
        """Wait until all clients are there, and ask each node who it is."""
        until = time.monotonic() + self._patience
        while len(nodes := list(self._grid.get_node_ids())) < clients:
            if time.monotonic() > until:
                raise MachineError(f"{clients} clients must come within {self._patience:g} s (got {len(nodes)})")
            time.sleep(0.5)
        questions = [Message(_content(b""), dst_node_id=node, message_type="query") for node in nodes]
        replies = self._grid.send_and_receive(questions, timeout=self._patience)
        found = {int(bytes(r.content[KEY][PAYLOAD])): r.metadata.src_node_id for r in replies if not r.has_error()}
        return dict(sorted(found.items()))

    def clients(self) -> list[int]:
        """All that have come, also those that have gone since."""
        return list(self._nodes)

    def ask(self, orders: Mapping[int, bytes], round: int) -> Replies:
        """Whoever is not there, or does not answer in time, has not answered."""
        there = set(self._grid.get_node_ids())
        asked = {self._nodes[client]: client for client in orders if self._nodes[client] in there}
        messages = [
            Message(_content(orders[client]), dst_node_id=node, message_type="train", group_id=str(round))
            for node, client in asked.items()
        ]
        found: dict[int, bytes | Exception | None] = {}
        for reply in self._grid.send_and_receive(messages, timeout=self._patience):
            client = asked.get(reply.metadata.src_node_id)
            if client is None:  # Flower itself says that a node is gone
                continue
            failed = RuntimeError(reply.error.reason) if reply.has_error() else None
            found[client] = failed or bytes(reply.content[KEY][PAYLOAD])
        return found


def serve(grid: Grid, context: Context) -> None:
    """All rounds; the ticket and what each round has cost are left in the folder that the run's config names."""
    config, out = context.run_config, Path(str(context.run_config["out"]))
    rounds: list[dict[str, Any]] = []

    def note(done: Any) -> None:
        rounds.append(done.facts)
        write_atomically(out / ROUNDS, json.dumps(rounds).encode())

    try:
        job = Job.of(str(config["job"]))
        carrier = FlowerCarrier(grid, job.plan.clients, patience=float(str(config["patience"])))
        outcome = job.federation().run(carrier, note)
        outcome.ticket.with_config(federated_test=outcome.on_parts).save(out / TICKET)
    except Exception as error:
        write_atomically(out / FAILED, f"{type(error).__name__}: {error}".encode())
        raise


client_app.query()(who)
client_app.train()(answer)
server_app.main()(serve)
