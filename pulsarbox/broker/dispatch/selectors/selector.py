"""What all selectors have in common.

A key is hashed (``key_hash``), the hash gives a slot, and a slot has at most one consumer. Slot 0 is never used: to
Pulsar's dispatchers a 0 means that no hash is known. Sources: Pulsar 4.2, StickyKeyConsumerSelector and
StickyKeyConsumerSelectorUtils.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from mmh3 import hash as murmur3_32

from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta

RANGE_SIZE: Final = 65536
"""Slots, slot 0 among them."""

MASK: Final = 0x7FFFFFFF
"""Pulsar takes hashes without their sign bit."""


class KeySharedConsumer(Protocol):
    """As much of a consumer as a selector looks at. Consumers are told apart by identity, not by name."""

    @property
    def name(self) -> str:
        """Consumer name; several consumers may have the same."""

    @property
    def key_shared(self) -> KeySharedMeta | None:
        """What it asked for."""


ConsumerT = TypeVar("ConsumerT", bound=KeySharedConsumer)


class StickyKeySelector(Protocol[ConsumerT]):
    """Divides the slots among the consumers of one subscription."""

    def slot(self, key_hash: int) -> int:
        """The slot, from 1 to 65535, of a key by its hash (Murmur3 x86, 32 bits, seed 0; without the sign bit)."""

    def add(self, consumer: ConsumerT) -> Iterable[ConsumerT]:
        """A consumer has come; those that lost slots to it. Raises ConsumerAssignError where it cannot have any."""

    def remove(self, consumer: ConsumerT) -> Iterable[ConsumerT] | None:
        """A consumer has gone: others have its slots, or nobody. Those that stay and lost slots all the same, if any.

        One that is not here does not matter.
        """

    def select(self, slot: int) -> ConsumerT | None:
        """The consumer that has the slot; None where nobody has it."""

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """The slots of each consumer as ranges, first and last, in order; as statistics show them."""


def key_hash(key: bytes) -> int:
    """Murmur3 of a key as Pulsar's brokers and Java clients compute it: x86, 32 bits, seed 0, sign bit cleared."""
    return murmur3_32(key, 0, False) & MASK


def slot_from_zero(hash_: int) -> int:
    """The slot of a hash for selectors whose ranges begin at 0: slots 0 and 1 are one."""
    return hash_ % RANGE_SIZE or 1
