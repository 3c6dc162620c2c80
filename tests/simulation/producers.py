"""Producers that send again, in order, what has no receipt when they lose their connection: as official clients do."""

from __future__ import annotations

from collections import deque
from typing import Any

from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from tests.simulation.box import Box
from tests.simulation.clients import Client
from tests.simulation.history import Violation
from tests.simulation.views import MessageKey
from tests.simulation.world import World

WINDOW = 30
"""Sends without a receipt."""


class SimulatedProducer(Client):
    """One producer on one topic."""

    def __init__(self, world: World, box: Box, name: str, topic: str, *, named: bool, padding: int) -> None:
        super().__init__(world, box, name)
        self.topic = topic
        self.named = named
        """The user gave its name; else the box does."""
        self.session = 0
        self.open = False
        self._padding = padding
        self._assigned = name if named else ""
        self._sequence = 0
        self._producer_id = 1
        self._opening = 0
        self._closing = 0
        self._unsettled: deque[tuple[int, int]] = deque()
        """First and last sequence id of what has no receipt."""
        self._repeats = box.settings.brokerDeduplicationEnabled
        """It sends again what has a receipt, or may still get one, too."""
        self._last_settled: tuple[int, int] | None = None

    def connected(self) -> None:
        """See Client."""
        self._open()

    def lost(self) -> None:
        """See Client."""
        self.open = False
        self._opening = self._closing = 0

    def _open(self) -> None:
        if self.ready and not self.open and not self._opening and not self._closing:
            self.session += 1
            names: dict[str, Any] = {"producer_name": self._assigned} if self._assigned else {}
            self._opening = self.request(
                "PRODUCER",
                topic=self.topic,
                producer_id=self._producer_id,
                epoch=self.session,
                user_provided_producer_name=self.named,
                **names,
            )
            if not self.calm and self.world.chance(0.05):  # out of patience: close it and try again
                self.request("CLOSE_PRODUCER", producer_id=self._producer_id)
                self._opening = 0
                if self.world.chance(0.8):
                    self._open()

    def act(self) -> None:
        """See Client."""
        random = self.world.random
        if not self.open:
            self._open()
            return
        if self.calm:
            return
        chance = random.random()
        if chance < 0.01:
            self.open = False
            self._closing = self.request("CLOSE_PRODUCER", producer_id=self._producer_id)
        elif chance < 0.02:
            self.give_up()
        elif self._repeats and chance < 0.05 and self._unsettled:
            self._send(*self._unsettled[-1])
        elif self._repeats and chance < 0.1 and self._last_settled is not None:
            self._send(*self._last_settled)
        elif len(self._unsettled) < WINDOW:
            for _ in range(random.choice((1, 1, 2, 5))):
                size = random.choice((1, 1, 1, 2, 5, 9))
                first, self._sequence = self._sequence, self._sequence + size
                self._unsettled.append((first, first + size - 1))
                self._send(first, first + size - 1)

    def _send(self, first: int, last: int) -> None:
        keys = [MessageKey(self.topic, self.name, self.session, i) for i in range(first, last + 1)]
        metadata = MessageMetadata(
            producer_name=self._assigned, sequence_id=first, publish_time=self.world.now.wall, partition_key="k"
        )
        batched = len(keys) > 1 or first % 4 == 0
        if batched:
            metadata.num_messages_in_batch = len(keys)
            metadata.highest_sequence_id = last
            body = encode_batch((SingleMessageMetadata(payload_size=0), key.payload()) for key in keys)
        else:
            body = keys[0].payload()
        metadata.properties.add(key="padding", value="x" * self._padding)
        payload = encode_payload(metadata.SerializeToString(), body)
        fields: dict[str, Any] = {"num_messages": len(keys), "highest_sequence_id": last} if batched else {}
        command = self.command("SEND", producer_id=self._producer_id, sequence_id=first, **fields)
        if self.link is not None:
            self.link.from_client(encode_payload_frame(command, payload))

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "PRODUCER_SUCCESS" and body.request_id == self._opening:
            self._opening = 0
            self.open = True
            self._assigned = body.producer_name
            for first, last in self._unsettled:
                self._send(first, last)
        elif name == "SEND_RECEIPT" and self.open:
            self._settled(body.sequence_id)
        elif name in ("ERROR", "SUCCESS"):
            if body.request_id == self._opening:
                self._opening = 0
            elif body.request_id == self._closing:
                self._closing = 0
        elif name == "CLOSE_PRODUCER":
            self.open = False
            self._opening = 0

    def _settled(self, sequence_id: int) -> None:
        if self._unsettled and self._unsettled[0][0] == sequence_id:
            self._last_settled = self._unsettled.popleft()
        elif self._unsettled and sequence_id > self._unsettled[0][0]:
            raise Violation("order", f"{self.name}: a receipt for {sequence_id} before {self._unsettled[0][0]}")
