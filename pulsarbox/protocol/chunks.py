"""Reassembly of chunked messages.

Chunks that can no longer complete a message must be acknowledged, or they would stay in the backlog forever: chunks
of an attempt that the producer abandoned and restarted, chunks that were stored twice, and chunks of messages that are
still incomplete after a minute. Sources: PIP-37, and the options ``maxPendingChunkedMessage``,
``autoAckOldestChunkedMessageOnQueueFull`` and ``expireTimeOfIncompleteChunkedMessage`` of Java clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

INCOMPLETE_SECONDS: Final = 60.0
"""The default of the Java, C++ and Go clients."""
SIZE_MAX: Final = 1 << 30

Place = tuple[int, int]
"""Ledger ID and entry ID."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """Limits of incomplete messages."""

    most: int = 100
    """Maximum number of incomplete messages, as in Go clients; beyond it, the oldest is discarded."""
    acknowledge_oldest: bool = False
    """Whether the chunks of a message discarded for ``most`` are acknowledged. Otherwise they are redelivered."""
    seconds: float = INCOMPLETE_SECONDS
    """Time after its first chunk when a message is discarded and its chunks are acknowledged."""
    size: int = SIZE_MAX
    """Maximum bytes of a message; a larger one is discarded."""


USUAL: Final = Chunking()


class LostChunk(NamedTuple):
    """A chunk of an incomplete message."""

    place: Place
    number: int
    """Number of the chunk, from 1."""
    of: int
    """Total number of chunks."""


ORPHANS_MAX: Final = 1000
"""Maximum number of remembered chunks whose message start is missing."""


class _Parts:
    __slots__ = ("count", "ids", "since", "size", "texts")

    def __init__(self, now: float, count: int) -> None:
        self.count = count
        self.texts: list[bytes] = []
        self.ids: list[Place] = []
        self.size = 0
        self.since = now


class Chunks:
    """The incomplete messages of one consumer."""

    def __init__(self, options: Chunking = USUAL) -> None:
        self._options = options
        self._parts: dict[str | bytes, _Parts] = {}
        """Oldest first."""
        self._useless: list[Place] = []
        self._orphans: list[LostChunk] = []

    def add(
        self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes, now: float, wall: float
    ) -> tuple[bytes, list[Place]] | None:
        """Add a chunk, received at ``now`` (monotonic, s) and ``wall`` (since 1970, s).

        For the last one, return the body and all chunk positions.
        """
        uuid, index, place = metadata.uuid, metadata.chunk_id, (ledger, entry)
        if index == 0:
            self._begin(uuid, place, now, metadata.num_chunks_from_msg)
        parts = self._parts.get(uuid)
        if parts is None or index > len(parts.ids):
            self._without_beginning(place, metadata, wall)
            return None
        if index < len(parts.ids):
            if place != parts.ids[index]:  # otherwise a redelivery
                self._useless.append(place)
            return None
        parts.texts.append(body)
        parts.ids.append(place)
        parts.size += len(body)
        if parts.size > self._options.size:
            del self._parts[uuid]
            return None
        if index < metadata.num_chunks_from_msg - 1:
            return None
        del self._parts[uuid]
        return b"".join(parts.texts), parts.ids

    def _begin(self, uuid: str | bytes, place: Place, now: float, count: int) -> None:
        before = self._parts.pop(uuid, None)
        if before is not None and before.ids[0] != place:
            self._useless += before.ids  # an abandoned attempt, which will never be complete
        while len(self._parts) >= self._options.most:
            given_up = self._parts.pop(next(iter(self._parts)))
            if self._options.acknowledge_oldest:
                self._useless += given_up.ids
        self._parts[uuid] = _Parts(now, count)

    def _without_beginning(self, place: Place, metadata: MessageMetadata, wall: float) -> None:
        """Record a chunk without a start: another consumer may still give the start back, but not forever."""
        if len(self._orphans) < ORPHANS_MAX:
            self._orphans.append(LostChunk(place, metadata.chunk_id + 1, metadata.num_chunks_from_msg))
        if wall > metadata.publish_time / 1000 + self._options.seconds:
            self._useless.append(place)

    def expire(self, now: float) -> None:
        """Discard messages that have been incomplete for too long."""
        while self._parts:
            uuid, oldest = next(iter(self._parts.items()))
            if now < oldest.since + self._options.seconds:
                return
            self._useless += self._parts.pop(uuid).ids

    @property
    def first(self) -> Place | None:
        """The earliest position of the retained chunks; None if no message is incomplete."""
        return min((parts.ids[0] for parts in self._parts.values()), default=None)

    @property
    def incomplete(self) -> list[LostChunk]:
        """The last received chunk of each incomplete message."""
        return [LostChunk(parts.ids[-1], len(parts.ids), parts.count) for parts in self._parts.values()]

    def take_orphans(self) -> list[LostChunk]:
        """Return, once, the chunks whose message starts before the read range."""
        orphans, self._orphans = self._orphans, []
        return orphans

    @property
    def firsts(self) -> list[Place]:
        """The first chunk of each incomplete message."""
        return [parts.ids[0] for parts in self._parts.values()]

    def take_useless(self) -> list[Place]:
        """Return the positions to acknowledge because they cannot complete a message."""
        useless, self._useless = self._useless, []
        return useless

    def clear(self) -> None:
        """Discard everything; all of it will be redelivered."""
        self._parts.clear()
        self._useless.clear()
        self._orphans.clear()
