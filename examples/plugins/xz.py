"""LZMA for long-term storage: smaller than ZSTD and far slower to write, with adequate read speed."""

import lzma
from collections.abc import Sequence

from pulsarbox.plugins.contracts import Codec

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20}]


class _Raw:
    """Raw LZMA2 without the container, whose 60 bytes are significant for a small message."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return lzma.compress(data, lzma.FORMAT_RAW, filters=_FILTERS)

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
        body = unpacking.decompress(data, size + 1)  # one byte more than expected, to detect a decompression bomb
        if len(body) != size:
            raise ValueError(f"these are not {size} bytes")
        return body


class Plugin:
    """See Compression."""

    kind = "compression"
    name = "xz"
    api = 1
    wire_id = None
    rest_tag = b"xz-1"

    def open(self) -> Codec:
        """See Compression."""
        return _Raw()

    def trained(self, dictionary: bytes) -> Codec | None:
        """Return None: dictionaries are not supported."""
        return None

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        """See trained."""
        return None
