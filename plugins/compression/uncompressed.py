"""No compression, as a codec."""

from collections.abc import Sequence
from typing import ClassVar

from pulsarbox.plugins.contracts import Codec


class Uncompressed:
    """Bytes as they are; a plugin and its own codec."""

    api: ClassVar = 1
    name: ClassVar = "none"
    wire_id: ClassVar = 0
    rest_tag: ClassVar = b"none"

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """There are no dictionaries."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """There are no dictionaries."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return data

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        if len(data) != size:
            raise ValueError(f"there are {len(data)} bytes, not {size}")
        return data
