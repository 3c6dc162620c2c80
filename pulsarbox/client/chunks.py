"""Messages that came in several entries, put together."""

from __future__ import annotations

from typing import Final

from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

INCOMPLETE_MAX: Final = 100
"""Messages that are being put together at once; beyond, the oldest is given up, as with Java clients."""
SIZE_MAX: Final = 1 << 30


class _Parts:
    __slots__ = ("ids", "size", "texts")

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.ids: list[tuple[int, int]] = []
        self.size = 0


class Chunks:
    """The incomplete messages of one consumer."""

    def __init__(self) -> None:
        self._parts: dict[str | bytes, _Parts] = {}

    def add(
        self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes
    ) -> tuple[bytes, list[tuple[int, int]]] | None:
        """Take a chunk. With the last one: the whole body, and ledger and entry of each chunk.

        A chunk that is not the next one of its message is left out: it came before, or an earlier one is missing.
        """
        uuid, index = metadata.uuid, metadata.chunk_id
        if index == 0:
            self._parts.pop(uuid, None)
            self._parts[uuid] = _Parts()
            while len(self._parts) > INCOMPLETE_MAX:
                del self._parts[next(iter(self._parts))]
        parts = self._parts.get(uuid)
        if parts is None or index != len(parts.ids):
            return None
        parts.texts.append(body)
        parts.ids.append((ledger, entry))
        parts.size += len(body)
        if parts.size > SIZE_MAX:
            del self._parts[uuid]
            return None
        if index < metadata.num_chunks_from_msg - 1:
            return None
        del self._parts[uuid]
        return b"".join(parts.texts), parts.ids

    def clear(self) -> None:
        """Everything will come again."""
        self._parts.clear()
