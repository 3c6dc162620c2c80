"""Murmur3, x86, 32 bits, seed 0: what clients offer as Murmur3_32Hash, and what brokers use for Key_Shared."""

from typing import ClassVar

from mmh3 import hash as murmur3_32

from pulsarbox.plugins.contracts import HASH_MAX


class Murmur3:
    """Without its sign bit, as Pulsar takes it."""

    api: ClassVar = 1
    name: ClassVar = "murmur3"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        return murmur3_32(key, 0, False) & HASH_MAX
