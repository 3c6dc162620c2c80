"""Producers that send again, in order, what has no receipt when they lose their connection: as official clients do."""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from typing import Any, NamedTuple

from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, ServerError, SingleMessageMetadata
from pulsarbox.storage.transactions import TxnId
from tests.simulation.box import Box
from tests.simulation.clients import Client
from tests.simulation.history import Violation
from tests.simulation.views import MessageKey
from tests.simulation.world import World

WINDOW = 30
"""Sends without a receipt."""


KEYS = 9
"""Different keys of one producer; some of them are those of others."""


DELAYS = (-5_000, 20, 300, 300, 2_000, 2_000, 2_500, 15_000, 100_000)


class Sending(NamedTuple):
    """A SEND without a receipt."""

    first: int
    last: int
    """Numbers of its messages, or of the chunk."""
    sequence_id: int
    session: int
    """How often the producer had been opened, or gone back, when it was sent first."""
    chunk: int = 0
    chunks: int = 0
    """Which chunk of a large message it is, and of how many; 0: it is none."""
    deliver_at: int = 0
    """When it is to be delivered (ms since 1970); 0: at once."""
    txn: TxnId | None = None
    """The transaction that it is of."""


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
        self.delayed = 0.0
        """How many of its messages are delayed."""
        self._ended = False
        """The topic takes no more messages: official clients give up."""
        self._keyed = world.random.choice((1, 2, 4, KEYS))
        """How many different keys it uses."""
        self.chunking = world.random.choice((0.0, 0.0, 0.1, 0.5))
        self._unsettled: deque[Sending] = deque()
        self._repeats = box.settings.brokerDeduplicationEnabled
        """It sends again what has a receipt, or may still get one, too."""
        self._is_deduplicated = self._repeats
        """Nothing is stored a second time: what it sends again is the same copy."""
        self._last_settled: Sending | None = None

    def live_with(self, *, large: bool, deduplication: bool) -> None:
        """Policies come and go: its messages are to be large, or may be deduplicated."""
        if large:
            self._padding = 1_500
        if deduplication:
            self._is_deduplicated = False
            self.chunking = 0.0  # chunks that are sent again are recognised only where they are the same copies

    def connected(self) -> None:
        """See Client."""
        if not (self.named or self._repeats or self._unsettled) and self.world.chance(0.5):
            self._assigned, self._last_settled = "", None  # another producer, with a name of its own
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
        # Chunks have the sequence id of their message, as with official clients: it is above that of the one before.
        sequence_id = first - chunk + chunks - 1 if chunks and self._repeats else first
        sending = Sending(first, first + size - 1, sequence_id, self.session, chunk, chunks, deliver_at)
        self._unsettled.append(sending)
        return sending

    def _key(self, metadata: MessageMetadata, number: int) -> None:
        """Give an entry its key: the same one whenever it is sent."""
        key = f"key{number * 7 % self._keyed}"
        if number % 11 == 3:
            return  # none at all
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
            session = self.session  # each copy may be stored: this says which it is
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
                return  # it waits for a second answer
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
