"""Message deduplication: a message sent again is recognized by its producer and sequence id, and not stored twice.

All chunks of a message share its sequence id, which counts as sent with the last chunk. Chunks of an incomplete message
are recognized by their checksums, so a reconnecting producer can resume it. Storing them twice would lose the message:
C++ and Python consumers discard one whose chunks are not consecutive.

The sequence ids are durable together with the entries (``storage.sequences``), so deduplication survives restarts.
"""

from collections.abc import Container
from functools import partial
from itertools import islice, takewhile
from typing import Final

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.topic_copies import TopicCopies
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.entry_body import unpack_body
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked
from pulsarbox.protocol.batch import last_sequence_id
from pulsarbox.protocol.checksum import crc32c, extend
from pulsarbox.protocol.metadata import ParsedEntry
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Begun
from pulsarbox.storage.recovery import StoredTopic

NOWHERE = 0xFFFFFFFFFFFFFFFF
"""Ledger and entry id in the receipt of a duplicate: -1 as encoded on the wire."""

MOST: Final = (1 << 63) - 1
IN_PARTS: Final = EntryFlag.BATCH | EntryFlag.CHUNK

RESENT_MS: Final = 30_000
"""How long chunks of an incomplete message are recognized: half of the minute after which consumers by default expire
incomplete chunked messages. After that the message must be stored again from its first chunk."""

MAX_CHUNKS: Final = 1000
"""Chunks recognized per message. With chunks of 5 MiB, no client accepts a message with more."""


class Deduplication:
    """Deduplication of one persistent topic; ``connected`` has the names of its producers."""

    def __init__(
        self,
        commits: GroupCommit,
        settings: Settings,
        started: int,
        stored: StoredTopic,
        connected: Container[str],
        copies: TopicCopies | None = None,
    ) -> None:
        """``started``: when the box started (ms since 1970). ``copies``: None with one data directory."""
        self._copies = copies
        self.stored = stored
        self._sequences = stored.sequences
        self._open = stored.sequences.open
        self._connected = connected
        self._commits = commits
        self._started = started
        self._timeout = settings.brokerDeduplicationProducerInactivityTimeoutMinutes * 60_000
        self._max = settings.brokerDeduplicationMaxNumberOfProducers

    # Publishing

    def accepts(
        self,
        producer: AttachedProducer,
        ids: tuple[int, int],
        flags: int,
        parsed: ParsedEntry,
        payload: bytes,
        now: Now,
    ) -> bool:
        """Return whether to store the message; the caller must add it to the open batch at once. Answer a duplicate.

        ``ids``: the sequence id of its SEND and the highest one there, 0 for none; ``flags``: those of its entry.
        Raises PersistenceError if a message with its sequence id is pending and may yet fail to become durable, or has
        too few copies.
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
            if self._copies is not None:  # a receipt promises the copies of the first attempt
                self._copies.check_complete()
            self._answer(producer, ids, now)
            return False
        self._commits.open.sequenced[self] = None
        return True

    def _is_new(
        self, name: str, sequence_id: int, is_higher: bool, parsed: ParsedEntry, payload: bytes, now: Now
    ) -> bool:
        """Return whether a message is new; ``is_higher``: its sequence id is above all received so far."""
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

    def _answer(self, producer: AttachedProducer, ids: tuple[int, int], now: Now) -> None:
        """Send the receipt of a duplicate, in its turn: clients expect receipts in the order of their messages."""
        waits = producer.pending > 0
        producer.published(0, 0)
        if waits:
            self._commits.open.receipts.append((producer, *ids, NOWHERE, NOWHERE))
        else:
            producer.receipt(*ids, NOWHERE, NOWHERE, now)

    def _has_chunk(
        self, name: str, sequence_id: int, parsed: ParsedEntry, payload: bytes, now: Now
    ) -> tuple[bool, bool]:
        """Return whether a chunk of an incomplete message was appended already, and whether that is durable."""
        pushed, number = self._sequences.begun_pushed(name), parsed.metadata.chunk_id
        if pushed is None or pushed.sequence_id != sequence_id or number >= len(pushed.sums):
            return False, False
        if now.wall - pushed.since > RESENT_MS or pushed.sums[number] != _checksum(parsed, payload):
            return False, False  # another attempt, which starts from the first chunk
        persisted = self._sequences.begun_persisted(name)
        return True, persisted is not None and persisted[:2] == pushed[:2] and number < len(persisted.sums)

    def _push(self, name: str, sequence_id: int, highest: int, parsed: ParsedEntry, payload: bytes, now: Now) -> None:
        """Record the sequence id of a message in the open batch."""
        metadata = parsed.metadata
        chunks = metadata.num_chunks_from_msg
        if chunks > 1 and metadata.chunk_id < chunks - 1:
            self._begin(name, sequence_id, parsed, payload, now)
            return
        is_told = highest > sequence_id or metadata.num_messages_in_batch <= 1
        last = None if is_told else partial(_last_of_batch, parsed, payload)
        self._sequences.push(name, max(sequence_id, highest), last)

    def _begin(self, name: str, sequence_id: int, parsed: ParsedEntry, payload: bytes, now: Now) -> None:
        """Record a chunk in the open batch that is not its message's last."""
        begun, number = self._sequences.begun_pushed(name), parsed.metadata.chunk_id
        if number == 0:
            begun = Begun(sequence_id, now.wall, (_checksum(parsed, payload),))
        elif begun is None or begun.sequence_id != sequence_id or not number <= len(begun.sums) < MAX_CHUNKS:
            begun = Begun(sequence_id, now.wall, ())  # its first chunks are unknown
        else:
            begun = begun._replace(sums=(*begun.sums[:number], _checksum(parsed, payload)))
        self._sequences.push_chunk(name, begun)

    def confirmed(self) -> None:
        """Confirm the sequence ids of the batch that became durable."""
        self._sequences.confirm()
        if len(self._sequences.persisted) > self._max:
            self._forget_oldest()

    # Producers

    def joining(self, now: Now) -> None:
        """Forget producers that have been inactive for too long, before one connects, which may be one of them."""
        sequences, oldest = self._sequences, now.wall - self._timeout
        going: list[str] = []
        if self._started >= oldest:  # downtime of the box does not count as inactivity
            return
        for name, _ in list(takewhile(lambda each: each[1].published < oldest, sequences.persisted.items())):
            if name in self._connected or sequences.is_pending(name):
                self._touch(name, now)
            else:
                going.append(name)
        if going:
            self._commits.forget_producers(self.stored, going)

    def left(self, producer: AttachedProducer, now: Now) -> None:
        """Start the inactivity of a producer that disconnected."""
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
    """Convert a sequence id to Pulsar's signed 64-bit form."""
    return word - (1 << 64) if word > MOST else word


def _checksum(parsed: ParsedEntry, payload: bytes) -> int:
    """Return the checksum of a chunk and its message's identity; excludes the time, which a resend may change."""
    metadata = parsed.metadata
    whole = f"{metadata.uuid} {metadata.num_chunks_from_msg} {metadata.total_chunk_msg_size} ".encode()
    return extend(crc32c(whole), payload[parsed.body_offset :])


def _last_of_batch(parsed: ParsedEntry, payload: bytes) -> int | None:
    """Return the sequence id of a batch's last message; None if it has none or cannot be read.

    Java clients set it in the SEND; C++, Python, Node.js and Go clients only in the message. Without it, a reconnecting
    producer would get the first sequence id of its last batch and send the other messages again.
    """
    metadata = parsed.metadata
    if metadata.encryption_keys:
        return None
    body = payload[parsed.body_offset :]
    try:
        last = last_sequence_id(unpack_body(metadata, body), metadata.num_messages_in_batch)
    except (CodecMissing, NotUnpacked, MalformedMetadata):
        return None
    return None if last is None else _signed(last)
