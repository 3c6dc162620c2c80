"""Murmur3 (x86, 32 bits, seed 0): Murmur3_32Hash in clients, and the hash of Key_Shared in brokers."""

from typing import ClassVar

from mmh3 import hash as murmur3_32

from pulsarbox.plugins.contracts import HASH_MAX


class Murmur3:
    """The hash without its sign bit, as in Pulsar."""

    api: ClassVar = 1
    name: ClassVar = "murmur3"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        return murmur3_32(key, 0, False) & HASH_MAX
