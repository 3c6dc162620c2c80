"""Batches of which a client has acknowledged some messages."""

from typing import Final

from pulsarbox.protocol.chunks import Place

BATCH_MAX: Final = 1_000_000
"""Maximum number of messages of a batch, which a client may claim in a message ID."""
BITS_MAX: Final = 8_000_000
"""Maximum number of messages of all batches, a bit each; the broker remembers those that are discarded here."""


class PartialBatches:
    """The unacknowledged messages of partially acknowledged batches, as bits."""

    def __init__(self) -> None:
        self._left: dict[Place, tuple[int, int]] = {}
        """Bits of the unacknowledged messages, and the number of messages of the batch."""
        self._size = 0

    def __len__(self) -> int:
        return len(self._left)

    def acknowledge(self, place: Place, index: int, count: int) -> int:
        """Acknowledge message ``index`` of a batch of ``count``; return the bits of the others that are not.

        Raises ValueError if the batch is too large.
        """
        if count > BATCH_MAX:
            raise ValueError(f"a batch has at most {BATCH_MAX:,} messages, not {count:,}")
        left, count = self._left.get(place, ((1 << count) - 1, count))
        left &= ~(1 << index)
        self.discard(place)
        if left:
            self._left[place] = left, count
            self._size += count
            while self._size > BITS_MAX:
                self.discard(next(iter(self._left)))
        return left

    def discard(self, place: Place) -> None:
        """Forget a batch."""
        _, count = self._left.pop(place, (0, 0))
        self._size -= count

    def clear(self) -> None:
        """Forget all batches."""
        self._left.clear()
        self._size = 0
