"""ZLIB with its header, from Python's standard library: always available, but the slowest codec."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import ClassVar

from pulsarbox.plugins.contracts import Codec


class Zlib:
    """zlib at its default level, 6. Stateless: the plugin is its own codec."""

    api: ClassVar = 1
    name: ClassVar = "zlib"
    wire_id: ClassVar = 2
    rest_tag: ClassVar = b"zlib"

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """Return None: dictionaries are not supported."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """Return None: dictionaries are not supported."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return zlib.compress(data)

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(data, max(1, size))
        # No flush(): it would decompress all remaining input without a limit.
        if unpacker.unconsumed_tail and unpacker.decompress(unpacker.unconsumed_tail, 1):
            raise ValueError(f"expected {size} decompressed bytes, but there are more")
        if not unpacker.eof:
            raise ValueError("the compressed data is truncated")
        return unpacked
