"""The identity codec."""

from collections.abc import Sequence
from typing import ClassVar

from pulsarbox.plugins.contracts import Codec


class Uncompressed:
    """Leaves bytes unchanged. Stateless: the plugin is its own codec."""

    api: ClassVar = 1
    name: ClassVar = "none"
    wire_id: ClassVar = 0
    rest_tag: ClassVar = b"none"

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """Return None: dictionaries are not supported."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """Return None: dictionaries are not supported."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return data

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        if len(data) != size:
            raise ValueError(f"expected {size} bytes, not {len(data)}")
        return data
