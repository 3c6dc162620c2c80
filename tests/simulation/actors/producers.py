"""Producers that resend unacknowledged messages in order after a lost connection, as official clients do."""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from typing import Any, NamedTuple

from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, ServerError, SingleMessageMetadata
from pulsarbox.storage.transactions import TxnId
from tests.simulation.actors.clients import Client
from tests.simulation.box import SimulatedBox
from tests.simulation.model.history import Violation
from tests.simulation.model.views import MessageKey
from tests.simulation.world import World

WINDOW = 30
"""Maximum number of unacknowledged sends."""


KEYS = 9
"""Number of distinct keys per producer; different producers share some of them."""


DELAYS = (-5_000, 20, 300, 300, 2_000, 2_000, 2_500, 15_000, 100_000)


class Sending(NamedTuple):
    """A SEND without a receipt."""

    first: int
    last: int
    """Number of the last message; ``first`` is the first. For a chunk, both are its own number."""
    sequence_id: int
    session: int
    """Number of times that the producer had been opened, or had rewound, before the first send."""
    chunk: int = 0
    chunks: int = 0
    """Number of chunks of the message, ``chunk`` being the index; 0: not chunked."""
    deliver_at: int = 0
    """Delivery time (ms since 1970); 0: immediate."""
    txn: TxnId | None = None
    """The transaction of the message."""


class SimulatedProducer(Client):
    """One producer on one topic."""

    def __init__(self, world: World, box: SimulatedBox, name: str, topic: str, *, named: bool, padding: int) -> None:
        super().__init__(world, box, name)
        self.topic = topic
        self.named = named
        """Whether the user assigned the producer name; otherwise the broker does."""
        self.session = 0
        self.open = False
        self._padding = padding
        self._assigned = name if named else ""
        self._sequence = 0
        self._producer_id = 1
        self._opening = 0
        self._closing = 0
        self.delayed = 0.0
        """Share of delayed messages."""
        self._ended = False
        """Whether the topic is terminated; official clients then stop publishing."""
        self._keyed = world.random.choice((1, 2, 4, KEYS))
        """Number of distinct keys."""
        self.chunking = world.random.choice((0.0, 0.0, 0.1, 0.5))
        self._unsettled: deque[Sending] = deque()
        self._repeats = box.settings.brokerDeduplicationEnabled
        """Whether to resend messages with and without a receipt."""
        self._is_deduplicated = self._repeats
        """Whether the broker deduplicates: every resend is then the same copy."""
        self._last_settled: Sending | None = None

    def live_with(self, *, large: bool, deduplication: bool) -> None:
        """Adapt to policies: publish large messages, or expect deduplication at times."""
        if large:
            self._padding = 1_500
        if deduplication:
            self._is_deduplicated = False
            self.chunking = 0.0  # resent chunks are recognised only as identical copies

    def connected(self) -> None:
        """See Client."""
        if not (self.named or self._repeats or self._unsettled) and self.world.chance(0.5):
            self._assigned, self._last_settled = "", None  # a new producer with a broker-assigned name
        self._open()

    def lost(self) -> None:
        """See Client."""
        self.open = False
        self._opening = self._closing = 0

    def _open(self) -> None:
        if self.world.monotonic < self.refused_until:
            return
        if self.ready and not self.open and not self._opening and not self._closing and not self._ended:
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
            if not self.calm and self.world.chance(0.05):  # close it and retry before the response
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
            self._go_back(self._unsettled[-1])
        elif self._repeats and chance < 0.1 and self._last_settled is not None:
            self._go_back(self._last_settled)
        elif len(self._unsettled) < WINDOW:
            for _ in range(random.choice((1, 1, 2, 5))):
                if self.chunking and self.world.chance(self.chunking):
                    chunks = random.choice((2, 3, 8))
                    for chunk in range(chunks):
                        self._send(self._next(1, chunk, chunks))
                else:
                    self._send(self._next(random.choice((1, 1, 1, 2, 5, 9))))

    def _go_back(self, sending: Sending) -> None:
        self.session += 1
        self._send(sending)

    def _next(self, size: int, chunk: int = 0, chunks: int = 0) -> Sending:
        first, self._sequence = self._sequence, self._sequence + size
        deliver_at = 0
        if self.delayed and not chunks and self.world.chance(self.delayed):
            deliver_at = self.world.real.wall + self.world.random.choice(DELAYS)
        # Like official clients, assign all chunks the sequence ID of their message, which exceeds the previous one.
        sequence_id = first - chunk + chunks - 1 if chunks and self._repeats else first
        sending = Sending(first, first + size - 1, sequence_id, self.session, chunk, chunks, deliver_at)
        self._unsettled.append(sending)
        return sending

    def _key(self, metadata: MessageMetadata, number: int) -> None:
        """Assign an entry its key, identical for every resend."""
        key = f"key{number * 7 % self._keyed}"
        if number % 11 == 3:
            return  # no key
        if number % 5 == 1:
            metadata.ordering_key = key.encode()
            metadata.partition_key = f"another{number}"
        elif number % 13 == 2:
            metadata.partition_key = b64encode(key.encode()).decode()
            metadata.partition_key_b64_encoded = True
        else:
            metadata.partition_key = key

    def _send(self, sending: Sending) -> None:
        first, last, sequence_id, session, chunk, chunks, deliver_at, txn = sending
        if not self._is_deduplicated:
            session = self.session  # each copy may be stored: the session identifies the copy
        keys = [MessageKey(self.topic, self.name, session, i) for i in range(first, last + 1)]
        wall = self.world.real.wall
        in_txn: dict[str, Any] = {} if txn is None else {"txnid_most_bits": txn.most, "txnid_least_bits": txn.least}
        metadata = MessageMetadata(producer_name=self._assigned, sequence_id=sequence_id, publish_time=wall, **in_txn)
        if deliver_at:
            metadata.deliver_at_time = deliver_at
        self._key(metadata, first - chunk)
        if chunks:
            metadata.uuid = f"{self.name}-{first - chunk}"
            metadata.chunk_id, metadata.num_chunks_from_msg = chunk, chunks
            metadata.total_chunk_msg_size = 1000 * chunks
        batched = not chunks and (len(keys) > 1 or first % 4 == 0)
        if batched:
            metadata.num_messages_in_batch = len(keys)
            metadata.highest_sequence_id = last
            body = encode_batch((SingleMessageMetadata(payload_size=0), key.payload()) for key in keys)
        else:
            body = keys[0].payload()
        metadata.properties.add(key="padding", value="x" * self._padding)
        payload = encode_payload(metadata.SerializeToString(), body)
        fields: dict[str, Any] = {"num_messages": len(keys), "highest_sequence_id": last} if batched else {}
        fields |= in_txn
        command = self.command("SEND", producer_id=self._producer_id, sequence_id=sequence_id, **fields)
        if self.link is not None:
            self.link.from_client(encode_payload_frame(command, payload))

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "PRODUCER_SUCCESS" and body.request_id == self._opening:
            if not body.producer_ready:
                return  # suspended: a second response follows
            self._opening = 0
            self.open = True
            self._assigned = body.producer_name
            for sending in self._unsettled:
                self._send(sending)
        elif name == "SEND_RECEIPT" and self.open:
            self._settled(body.sequence_id)
        elif name in ("ERROR", "SUCCESS"):
            if name == "ERROR" and body.error == ServerError.TopicTerminatedError:
                self._ended = True
                self._unsettled.clear()
            if body.request_id == self._opening:
                self._opening = 0
                self.refused()
            elif body.request_id == self._closing:
                self._closing = 0
        elif name == "CLOSE_PRODUCER":
            self.open = False
            self._opening = 0

    def _settled(self, sequence_id: int) -> None:
        if self._unsettled and self._unsettled[0].sequence_id == sequence_id:
            self._last_settled = self._unsettled.popleft()
        elif self._unsettled and sequence_id > self._unsettled[0].sequence_id:
            raise Violation(
                "order", f"{self.name}: a receipt for {sequence_id} before {self._unsettled[0].sequence_id}"
            )
