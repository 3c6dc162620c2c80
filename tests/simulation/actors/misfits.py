"""Clients that violate the protocol: garbage, commands out of order, no reading, no responses."""

from __future__ import annotations

from typing import Any

from pulsarbox.protocol.commands import encode_frame, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, MessageIdData
from tests.simulation.actors.clients import Client
from tests.simulation.actors.consumers import EXCLUSIVE
from tests.simulation.box import SimulatedBox
from tests.simulation.world import World


class Vandal(Client):
    """Sends invalid frames and unexpected commands."""

    pace = 0.3

    def __init__(self, world: World, box: SimulatedBox, name: str, topic: str) -> None:
        super().__init__(world, box, name)
        self.topic = topic

    def act(self) -> None:
        """See Client."""
        random = self.world.random
        if self.calm or self.link is None:
            return
        self._request_id += 1  # NEW_TXN waits for a commit: concurrent requests need distinct IDs
        unknown = [MessageIdData(ledgerId=random.randrange(50), entryId=random.randrange(50))]
        commands = (
            self.command("SEND", producer_id=77, sequence_id=1),
            self.command("ACK", consumer_id=77, ack_type=CommandAck.Individual, message_id=unknown, request_id=10**6),
            self.command("FLOW", consumer_id=77, messagePermits=1000),
            self.command("CONNECT", client_version="again"),
            self.command("SEEK", consumer_id=77, request_id=10**6 + 1),
            self.command("UNSUBSCRIBE", consumer_id=77, request_id=10**6 + 2),
            self.command("CLOSE_PRODUCER", producer_id=77, request_id=10**6 + 3),
            self.command("PRODUCER", topic="no://such/name", producer_id=1, request_id=10**6 + 4),
            self.command("SEND_RECEIPT", producer_id=1, sequence_id=1),
            self.command("NEW_TXN", request_id=10**6 + 4 + self._request_id, txn_ttl_seconds=1, tc_id=0),
        )
        choice = random.randrange(len(commands) + 3)
        if choice == 0:
            self.link.from_client(random.randbytes(random.randrange(1, 200)))
        elif choice == 1:
            self.link.from_client(encode_frame(commands[0])[: random.randrange(1, 9)])
        elif choice == 2:
            self.link.from_client(encode_payload_frame(commands[0], random.randbytes(40)))
        else:
            self.link.from_client(encode_frame(commands[choice - 3]))


class Glutton(Client):
    """A slow consumer: subscribes, requests everything, and reads nothing."""

    pace = 1.0

    def __init__(self, world: World, box: SimulatedBox, name: str, topic: str) -> None:
        super().__init__(world, box, name)
        self.topic = topic

    def connected(self) -> None:
        """See Client."""
        self.request("SUBSCRIBE", topic=self.topic, subscription=self.name, subType=EXCLUSIVE, consumer_id=1)

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "SUCCESS" and self.link is not None and not self.calm:
            self.link.reads_nothing = True
            self.send("FLOW", consumer_id=1, messagePermits=10_000)


class Mute(Client):
    """Connects and then sends nothing, not even PONG."""

    pace = 3.0

    def send(self, name: str, **fields: Any) -> None:
        """See Client."""
        if name != "PONG":
            super().send(name, **fields)
