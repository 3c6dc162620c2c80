"""Codecs of message bodies, with the client's errors."""

from __future__ import annotations

from pulsarbox.client.errors import Unusable
from pulsarbox.plugins.compression import wire as compression
from pulsarbox.plugins.compression.wire import CODECS, UNCOMPRESSED_MAX
from pulsarbox.plugins.contracts import Codec

__all__ = ["CODECS", "UNCOMPRESSED_MAX", "codec", "compress", "decompress"]


def codec(number: int) -> Codec:
    """See plugins.compression.wire. Raises Unusable if the codec is unavailable."""
    try:
        return compression.codec(number)
    except compression.CodecMissing as error:
        raise Unusable(str(error)) from None


def compress(number: int, data: bytes) -> bytes:
    """See plugins.compression.wire. Raises Unusable if the codec is unavailable."""
    return codec(number).compress(data) if number else data


def decompress(number: int, data: bytes, size: int) -> bytes:
    """See plugins.compression.wire. Raises Unusable if the data cannot be decompressed."""
    try:
        return compression.decompress(number, data, size)
    except (compression.CodecMissing, compression.NotUnpacked) as error:
        raise Unusable(str(error)) from None
