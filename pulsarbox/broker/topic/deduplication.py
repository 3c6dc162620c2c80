"""Deduplication: a message that a producer sends again is known by its sequence id, and not stored a second time.

All chunks of a message have its sequence id, which counts as sent with the last one. Of a message without its last one
the chunks are known by their checksums: a producer that was cut off goes on where it was. Stored a second time they
would cost the message: consumers in C++ and Python give up one whose chunks do not come one after another.

What is compared is durable with the entries themselves (``storage.sequences``), so that a restart changes nothing.
"""

from collections.abc import Container
from functools import partial
from itertools import islice, takewhile
from typing import Final

from pulsarbox.broker.core import Core
from pulsarbox.broker.topic.producer import Producer
from pulsarbox.clock import Now
from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.batch import last_sequence_id
from pulsarbox.protocol.checksum import crc32c, extend
from pulsarbox.protocol.metadata import ParsedEntry
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Begun
from pulsarbox.storage.recovery import StoredTopic

NOWHERE = 0xFFFFFFFFFFFFFFFF
"""Ledger and entry of a duplicate in its receipt: -1 as it stands on the wire."""

MOST: Final = (1 << 63) - 1
IN_PARTS: Final = EntryFlag.BATCH | EntryFlag.CHUNK

RESENT_MS: Final = 30_000
"""How long chunks of a message without an end are recognised: half of the minute after which consumers, unless told
otherwise, acknowledge such chunks and forget them. Then the message has to be stored from its beginning."""

MAX_CHUNKS: Final = 1000
"""Of a message with more of them they are not recognised; with those of 5 MiB no client takes so large a one."""


class Deduplication:
    """Deduplication of one persistent topic; ``connected`` has the names of its producers."""

    def __init__(self, core: Core, stored: StoredTopic, connected: Container[str]) -> None:
        self.stored = stored
        self._sequences = stored.sequences
        self._open = stored.sequences.open
        self._connected = connected
        self._commits = core.commits
        self._started = core.started
        self._timeout = core.settings.brokerDeduplicationProducerInactivityTimeoutMinutes * 60_000
        self._max = core.settings.brokerDeduplicationMaxNumberOfProducers

    # Publishing

    def takes(
        self,
        producer: Producer,
        ids: tuple[int, int],
        flags: int,
        parsed: ParsedEntry,
        payload: bytes,
        now: Now,
    ) -> bool:
        """Whether the message is to be stored, in the open batch and at once; if not, its receipt is on its way.

        ``ids`` are the sequence id of its SEND and the highest one there, 0 for none; ``flags`` are those of its entry.
        Raises PersistenceError where a message with its sequence id is on its way to the disk, and may not get there.
        """
        name, sequence_id = producer.name, _signed(ids[0])
        pushed = self._open.get(name)
        if pushed is None:
            pushed = self._sequences.last_pushed(name)
        is_higher = pushed is None or sequence_id > pushed
        if is_higher and not flags & IN_PARTS:
            self._open[name] = max(sequence_id, _signed(ids[1])) if ids[1] else sequence_id
        elif self._is_new(name, sequence_id, is_higher, parsed, payload, now):
            self._push(name, sequence_id, _signed(ids[1]), parsed, payload, now)
        else:
            self._answer(producer, ids, now)
            return False
        self._commits.open.sequenced[self] = None
        return True

    def _is_new(
        self, name: str, sequence_id: int, is_higher: bool, parsed: ParsedEntry, payload: bytes, now: Now
    ) -> bool:
        """The same of anything; ``is_higher`` says whether its sequence id is above all that were sent."""
        if is_higher:
            if parsed.metadata.num_chunks_from_msg <= 1:
                return True
            has, is_stored = self._has_chunk(name, sequence_id, parsed, payload, now)
            if not has:
                return True
        else:
            persisted = self._sequences.last_persisted(name)
            is_stored = persisted is not None and sequence_id <= persisted
        if not is_stored:
            raise PersistenceError("Cannot determine whether the message is a duplicate at this time")
        return False

    def _answer(self, producer: Producer, ids: tuple[int, int], now: Now) -> None:
        """The receipt of a duplicate. Clients take receipts in the order they have sent in."""
        waits = producer.pending > 0
        producer.published(0, 0)
        if waits:
            self._commits.open.receipts.append((producer, *ids, NOWHERE, NOWHERE))
        else:
            producer.receipt(*ids, NOWHERE, NOWHERE, now)

    def _has_chunk(
        self, name: str, sequence_id: int, parsed: ParsedEntry, payload: bytes, now: Now
    ) -> tuple[bool, bool]:
        """Whether a chunk of a message without an end was appended already; whether that is durable."""
        pushed, number = self._sequences.begun_pushed(name), parsed.metadata.chunk_id
        if pushed is None or pushed.sequence_id != sequence_id or number >= len(pushed.sums):
            return False, False
        if now.wall - pushed.since > RESENT_MS or pushed.sums[number] != _checksum(parsed, payload):
            return False, False  # another attempt: it begins anew
        persisted = self._sequences.begun_persisted(name)
        return True, persisted is not None and persisted[:2] == pushed[:2] and number < len(persisted.sums)

    def _push(self, name: str, sequence_id: int, highest: int, parsed: ParsedEntry, payload: bytes, now: Now) -> None:
        """The message is in the open batch."""
        metadata = parsed.metadata
        chunks = metadata.num_chunks_from_msg
        if chunks > 1 and metadata.chunk_id < chunks - 1:
            self._begin(name, sequence_id, parsed, payload, now)
            return
        is_told = highest > sequence_id or metadata.num_messages_in_batch <= 1
        last = None if is_told else partial(_last_of_batch, parsed, payload)
        self._sequences.push(name, max(sequence_id, highest), last)

    def _begin(self, name: str, sequence_id: int, parsed: ParsedEntry, payload: bytes, now: Now) -> None:
        """A chunk is in the open batch, and others are to follow."""
        begun, number = self._sequences.begun_pushed(name), parsed.metadata.chunk_id
        if number == 0:
            begun = Begun(sequence_id, now.wall, (_checksum(parsed, payload),))
        elif begun is None or begun.sequence_id != sequence_id or not number <= len(begun.sums) < MAX_CHUNKS:
            begun = Begun(sequence_id, now.wall, ())  # how it began is not known
        else:
            begun = begun._replace(sums=(*begun.sums[:number], _checksum(parsed, payload)))
        self._sequences.push_chunk(name, begun)

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
    return word - (1 << 64) if word > MOST else word


def _checksum(parsed: ParsedEntry, payload: bytes) -> int:
    """Of a chunk and what its message is; not of its time, for it may be a new process that sends it again."""
    metadata = parsed.metadata
    whole = f"{metadata.uuid} {metadata.num_chunks_from_msg} {metadata.total_chunk_msg_size} ".encode()
    return extend(crc32c(whole), payload[parsed.body_offset :])


def _last_of_batch(parsed: ParsedEntry, payload: bytes) -> int | None:
    """The sequence id of the last message of a batch; None where it has none, or cannot be seen.

    Java clients tell it in the SEND. Those in C++, Python, Node.js and Go do not: it stands with the message. Without
    that a producer that comes back would be told the first one of its last batch, and send the others again.
    """
    metadata = parsed.metadata
    if metadata.encryption_keys:
        return None
    body = payload[parsed.body_offset :]
    try:
        body = decompress(metadata.compression, body, metadata.uncompressed_size)
        last = last_sequence_id(body, metadata.num_messages_in_batch)
    except (CodecMissing, NotUnpacked, MalformedMetadata):
        return None
    return None if last is None else _signed(last)
