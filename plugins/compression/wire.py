"""Codecs of message bodies by CompressionType: ZLIB and ZSTD always, LZ4 and SNAPPY if cramjam is installed.

The metadata contains the uncompressed size; no body is decompressed beyond it. Source: Pulsar's CompressionType.
"""

from __future__ import annotations

from importlib import import_module
from threading import local
from typing import Final

from pulsarbox.plugins.contracts import Codec, Compression

CODECS: Final = {"none": 0, "lz4": 1, "zlib": 2, "zstd": 3, "snappy": 4}
_CLASSES: Final = {1: "lz4.Lz4", 2: "zlib.Zlib", 3: "zstd.Zstd", 4: "snappy.Snappy"}
_NAMES: Final = {number: name for name, number in CODECS.items()}

UNCOMPRESSED_MAX: Final = 1 << 28
"""Maximum bytes of a decompressed body, whatever its metadata says."""


class CodecMissing(Exception):
    """The codec is unknown or its library is not installed; the message suggests a fix."""


class NotUnpacked(Exception):
    """The body cannot be decompressed to the size in its metadata."""


class _OfThread(local):
    """Codecs opened by one thread: codecs are stateful, so threads do not share them."""

    def __init__(self) -> None:
        self.codecs: dict[int, Codec] = {}


_of_thread = _OfThread()


def codec(number: int) -> Codec:
    """Return this thread's codec for a CompressionType other than NONE. Raises CodecMissing."""
    found = _of_thread.codecs.get(number)
    if found is None:
        found = _of_thread.codecs[number] = _opened(number)
    return found


def _opened(number: int) -> Codec:
    if number not in _CLASSES:
        raise CodecMissing(f"unknown compression type {number}, which a newer client has used")
    module, _, name = _CLASSES[number].partition(".")
    try:
        found: Compression = getattr(import_module(f"pulsarbox.plugins.compression.{module}"), name)()
    except ImportError:
        said = f"{_NAMES[number].upper()} requires the package cramjam: pip install 'pulsarbox[codecs]'"
        raise CodecMissing(said) from None
    return found.open()


def compress(number: int, data: bytes) -> bytes:
    """Compress ``data`` with CompressionType ``number``. Raises CodecMissing."""
    return codec(number).compress(data) if number else data


def decompress(number: int, data: bytes, size: int, most: int = UNCOMPRESSED_MAX) -> bytes:
    """Decompress ``data`` to ``size`` bytes, at most ``most``. Raises CodecMissing, NotUnpacked."""
    if not number:
        return data
    if size > most:
        raise NotUnpacked(f"a message body of {size} bytes exceeds the limit of {most} bytes")
    found = codec(number)
    try:
        unpacked = found.decompress(data, size)
    except Exception as error:  # each library raises its own types
        raise NotUnpacked(f"cannot decompress a message body ({_NAMES[number]}): {error}") from None
    if len(unpacked) != size:
        raise NotUnpacked(f"a message body decompresses to {len(unpacked)} bytes, not {size} ({_NAMES[number]})")
    return unpacked
