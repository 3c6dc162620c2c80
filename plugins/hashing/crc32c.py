"""CRC-32C (Castagnoli), the checksum of Pulsar's frames, as a hash: fast, and the same in every language."""

from typing import ClassVar

from google_crc32c import value

from pulsarbox.plugins.contracts import HASH_MAX


class Crc32c:
    """The low 31 bits of the checksum."""

    api: ClassVar = 1
    name: ClassVar = "crc32c"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        checksum: int = value(key)
        return checksum & HASH_MAX
