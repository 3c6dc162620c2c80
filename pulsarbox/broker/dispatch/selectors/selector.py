"""The interface of Key_Shared selectors, and key hashing.

A key is hashed (``key_hash``), the hash maps to a slot, and a slot has at most one consumer. Slot 0 is never used: to
Pulsar's dispatchers, 0 means that no hash is known. Sources: Pulsar 4.2, StickyKeyConsumerSelector and
StickyKeyConsumerSelectorUtils.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from mmh3 import hash as murmur3_32

from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta

RANGE_SIZE: Final = 65536
"""Number of slots, including slot 0."""

MASK: Final = 0x7FFFFFFF
"""Pulsar clears the sign bit of hashes."""


class KeySharedConsumer(Protocol):
    """The consumer attributes that selectors use. Consumers are compared by identity, not by name."""

    @property
    def name(self) -> str:
        """Consumer name; not necessarily unique."""

    @property
    def key_shared(self) -> KeySharedMeta | None:
        """The requested Key_Shared policy."""


ConsumerT = TypeVar("ConsumerT", bound=KeySharedConsumer)


class StickyKeySelector(Protocol[ConsumerT]):
    """Divides the slots among the consumers of one subscription."""

    def slot(self, key_hash: int) -> int:
        """Return the slot, from 1 to 65535, of a key's hash (Murmur3 x86, 32 bits, seed 0; sign bit cleared)."""

    def add(self, consumer: ConsumerT) -> Iterable[ConsumerT]:
        """Add a consumer; return those that lost slots to it. Raises ConsumerAssignError if it cannot have any."""

    def remove(self, consumer: ConsumerT) -> Iterable[ConsumerT] | None:
        """Remove a consumer, if present; its slots go to others or to none.

        Returns remaining consumers that may have lost slots nevertheless, if any.
        """

    def select(self, slot: int) -> ConsumerT | None:
        """Return the consumer that owns the slot; None if none does."""

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """Return the slots of each consumer as ranges (first, last) in order, as statistics show them."""


def key_hash(key: bytes) -> int:
    """Return a key's Murmur3 as in Pulsar's brokers and Java clients: x86, 32 bits, seed 0, sign bit cleared."""
    return murmur3_32(key, 0, False) & MASK


def slot_from_zero(hash_: int) -> int:
    """Return the slot of a hash for selectors whose ranges start at 0; slot 0 is mapped to 1."""
    return hash_ % RANGE_SIZE or 1
