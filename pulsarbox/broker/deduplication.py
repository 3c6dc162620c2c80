"""Deduplication: a message that a producer sends again is known by its sequence id, and not stored a second time.

What is compared is durable with the entries themselves (``storage.sequences``), so that a restart changes nothing.
"""

from collections.abc import Container
from itertools import islice, takewhile

from pulsarbox.broker.core import Core
from pulsarbox.broker.producer import Producer
from pulsarbox.clock import Now
from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, MessageMetadata
from pulsarbox.storage.recovery import StoredTopic

NOWHERE = 0xFFFFFFFFFFFFFFFF
"""Ledger and entry of a duplicate in its receipt: -1 as it stands on the wire."""


class Deduplication:
    """Deduplication of one persistent topic; ``connected`` has the names of its producers."""

    def __init__(self, core: Core, stored: StoredTopic, connected: Container[str]) -> None:
        self.stored = stored
        self._sequences = stored.sequences
        self._connected = connected
        self._commits = core.commits
        self._started = core.started
        self._timeout = core.settings.brokerDeduplicationProducerInactivityTimeoutMinutes * 60_000
        self._max = core.settings.brokerDeduplicationMaxNumberOfProducers

    # Publishing

    def is_new(self, producer: Producer, send: CommandSend, metadata: MessageMetadata, now: Now) -> bool:
        """Whether the message is to be stored; if not, its receipt is on its way.

        All chunks of a message have its sequence id, which counts as sent with the last one: so those of a message that
        was sent to its end are duplicates, each of them, and those of one that was not are new.

        Raises PersistenceError where a message with its sequence id is on its way to the disk, and may not get there.
        """
        sequence_id = _signed(send.sequence_id)
        pushed = self._sequences.last_pushed(producer.name)
        if pushed is None or sequence_id > pushed:
            return True
        persisted = self._sequences.last_persisted(producer.name)
        if persisted is None or sequence_id > persisted:
            raise PersistenceError("Cannot determine whether the message is a duplicate at this time")
        waits = producer.pending > 0
        producer.published(0, 0)
        if waits:  # clients take receipts in the order they have sent in
            receipt = (producer, send.sequence_id, send.highest_sequence_id, NOWHERE, NOWHERE)
            self._commits.open.receipts.append(receipt)
        else:
            producer.receipt(send.sequence_id, send.highest_sequence_id, NOWHERE, NOWHERE, now)
        return False

    def appended(self, producer: Producer, send: CommandSend, metadata: MessageMetadata) -> None:
        """The message is in the open batch."""
        chunks = metadata.num_chunks_from_msg
        if chunks <= 1 or metadata.chunk_id >= chunks - 1:
            highest = max(_signed(send.sequence_id), _signed(send.highest_sequence_id))
            self._sequences.push(producer.name, highest)
            self._commits.open.sequenced[self] = None

    def confirmed(self) -> None:
        """What was in the batch that was being written is durable."""
        self._sequences.confirm()
        if len(self._sequences.persisted) > self._max:
            self._forget_oldest()

    # Producers

    def joining(self, now: Now) -> None:
        """A producer is about to be connected: forget what has been inactive for too long, itself maybe."""
        sequences, oldest = self._sequences, now.wall - self._timeout
        going: list[str] = []
        if self._started >= oldest:  # that a box is down is no inactivity of its producers
            return
        for name, _ in list(takewhile(lambda each: each[1].published < oldest, sequences.persisted.items())):
            if name in self._connected or sequences.is_pending(name):
                self._touch(name, now)
            else:
                going.append(name)
        if going:
            self._commits.forget_producers(self.stored, going)

    def left(self, producer: Producer, now: Now) -> None:
        """A producer has gone: from now on it is inactive."""
        self._touch(producer.name, now)

    def _touch(self, name: str, now: Now) -> None:
        self._sequences.touch(name, now.wall)
        self._commits.sequences_changed(self.stored)

    def _forget_oldest(self) -> None:
        names = self._sequences.persisted
        idle = (name for name in names if name not in self._connected)
        going = list(islice(idle, len(names) - self._max))
        if going and self.stored.in_use:
            self._commits.forget_producers(self.stored, going)


def _signed(word: int) -> int:
    """A sequence id as Pulsar reads it."""
    return word - (1 << 64) if word >> 63 else word
