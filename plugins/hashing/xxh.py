"""xxHash (32 bits, seed 0): fast for long keys."""

from typing import ClassVar

from xxhash import xxh32_intdigest

from pulsarbox.plugins.contracts import HASH_MAX


class XxHash:
    """The low 31 bits of the hash."""

    api: ClassVar = 1
    name: ClassVar = "xxhash"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        return xxh32_intdigest(key) & HASH_MAX
