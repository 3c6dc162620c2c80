"""Messages that came in several entries, put together.

What of them no message can be made of any more is to be acknowledged, or it would stay in the backlog for ever: chunks
of an attempt that the producer gave up and began anew, chunks that were stored twice, and those of messages whose last
chunk has not come for a minute. Source: PIP-37, and the options ``maxPendingChunkedMessage``,
``autoAckOldestChunkedMessageOnQueueFull`` and ``expireTimeOfIncompleteChunkedMessage`` of Java clients.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from pulsarbox.client.places import INCOMPLETE_MAX
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

INCOMPLETE_SECONDS: Final = 60.0
"""As with the clients of Java, C++ and Go."""
SIZE_MAX: Final = 1 << 30

Place = tuple[int, int]
"""Ledger and entry."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How much of what is not complete is kept."""

    most: int = INCOMPLETE_MAX
    """Messages that are being put together at once; beyond, the oldest is given up."""
    acknowledge_oldest: bool = False
    """Whether its chunks are acknowledged. If not they come again, to whoever comes next."""
    seconds: float = INCOMPLETE_SECONDS
    """How long after its first chunk a message is given up, and its chunks acknowledged."""


USUAL: Final = Chunking()


class Chunk(NamedTuple):
    """A chunk that no message could be made of."""

    place: Place
    number: int
    """From 1 on."""
    of: int
    """The chunks of its message."""


ORPHANS_MAX: Final = 1000
"""Chunks without their beginning that are remembered until somebody asks for them."""


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
        """The oldest first."""
        self._useless: list[Place] = []
        self._orphans: list[Chunk] = []

    def add(
        self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes, now: float
    ) -> tuple[bytes, list[Place]] | None:
        """Take a chunk, at ``now`` (monotonic, s). With the last one: the whole body, and the place of each chunk."""
        uuid, index, place = metadata.uuid, metadata.chunk_id, (ledger, entry)
        if index == 0:
            self._begin(uuid, place, now, metadata.num_chunks_from_msg)
        parts = self._parts.get(uuid)
        if parts is None or index > len(parts.ids):
            self._without_beginning(place, metadata)
            return None
        if index < len(parts.ids):
            if place != parts.ids[index]:  # else it is delivered again
                self._useless.append(place)
            return None
        parts.texts.append(body)
        parts.ids.append(place)
        parts.size += len(body)
        if parts.size > SIZE_MAX:
            del self._parts[uuid]
            return None
        if index < metadata.num_chunks_from_msg - 1:
            return None
        del self._parts[uuid]
        return b"".join(parts.texts), parts.ids

    def _begin(self, uuid: str | bytes, place: Place, now: float, count: int) -> None:
        before = self._parts.pop(uuid, None)
        if before is not None and before.ids[0] != place:
            self._useless += before.ids  # another attempt: those will never be complete
        while len(self._parts) >= self._options.most:
            given_up = self._parts.pop(next(iter(self._parts)))
            if self._options.acknowledge_oldest:
                self._useless += given_up.ids
        self._parts[uuid] = _Parts(now, count)

    def _without_beginning(self, place: Place, metadata: MessageMetadata) -> None:
        """Its first chunk may still come, where another consumer gives it back; but not for ever."""
        if len(self._orphans) < ORPHANS_MAX:
            self._orphans.append(Chunk(place, metadata.chunk_id + 1, metadata.num_chunks_from_msg))
        if time.time() > metadata.publish_time / 1000 + self._options.seconds:
            self._useless.append(place)

    def expire(self, now: float) -> None:
        """Give up what has been incomplete for too long."""
        while self._parts:
            uuid, oldest = next(iter(self._parts.items()))
            if now < oldest.since + self._options.seconds:
                return
            self._useless += self._parts.pop(uuid).ids

    @property
    def first(self) -> Place | None:
        """The first chunk in the log of those that are kept; None where nothing is incomplete."""
        return min((parts.ids[0] for parts in self._parts.values()), default=None)

    @property
    def incomplete(self) -> list[Chunk]:
        """The last chunk that has come of each message that is not complete."""
        return [Chunk(parts.ids[-1], len(parts.ids), parts.count) for parts in self._parts.values()]

    def take_orphans(self) -> list[Chunk]:
        """Return the chunks whose message begins before what was read, each once."""
        orphans, self._orphans = self._orphans, []
        return orphans

    @property
    def firsts(self) -> list[Place]:
        """The first chunk of each that is incomplete."""
        return [parts.ids[0] for parts in self._parts.values()]

    def take_useless(self) -> list[Place]:
        """The entries that are to be acknowledged, because no message will be made of them."""
        useless, self._useless = self._useless, []
        return useless

    def clear(self) -> None:
        """Everything will come again."""
        self._parts.clear()
        self._useless.clear()
        self._orphans.clear()
