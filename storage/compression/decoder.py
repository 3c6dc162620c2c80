"""Giving back what is compressed on the disk. Pure.

Codecs and dictionaries are opened when they are first needed, and the longest unused ones let go: a reader of a
thousand topics needs no more memory than one of some. Each thread has an unpacker of its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.contracts import Codec, Compression
from pulsarbox.storage.record import NotNow, NotUnpacked

OPEN_MAX: Final = 32
"""Codecs that are open at once; with a dictionary each takes some 200 KiB."""
MANY: Final = 32
"""So many bodies are worth a call for many at once, which sets up anew what a codec has at hand."""
BYTES_MAX: Final = 1 << 28
"""No entry is larger, whatever its header says."""


class Dictionary(NamedTuple):
    """What bodies of a topic have in common, for one codec."""

    number: int
    tag: bytes
    topic_id: int
    ratio: int
    """In thousandths: how many times smaller it made bodies when that was measured last."""
    bytes: bytes


class Codecs(Protocol):
    """The codecs that a store may use. Both raise CodecMissing, which says what to do."""

    def named(self, name: str) -> Compression:
        """The one that policies call so."""

    def tagged(self, tag: bytes, name: str) -> Compression:
        """The one that writes a tag, and was called ``name`` when it did."""


class StoredCodecs(Protocol):
    """What a store knows of its compressed entries."""

    def name_of(self, tag: bytes) -> str:
        """What the codec of a tag was called; empty where it is not known."""

    def dictionary(self, number: int) -> Dictionary | None:
        """A dictionary, None where there is none of that number."""


class RestUnpacker:
    """An Unpacker of entries."""

    def __init__(self, codecs: Codecs, stored: StoredCodecs) -> None:
        self._codecs = codecs
        self._stored = stored
        self._open: OrderedDict[tuple[bytes, int], Codec] = OrderedDict()

    def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """See Unpacker."""
        if max(sizes) > BYTES_MAX:
            raise NotUnpacked(f"it says that it has {max(sizes)} bytes, no entry has more than {BYTES_MAX}")
        return unpack_with(self._codec(tag, dictionary), packed, sizes)

    def _codec(self, tag: bytes, number: int) -> Codec:
        known = self._open.get((tag, number))
        if known is None:
            known = self._open_now(tag, number)
            while len(self._open) >= OPEN_MAX:
                self._open.popitem(last=False)
            self._open[tag, number] = known
        else:
            self._open.move_to_end((tag, number))
        return known

    def _open_now(self, tag: bytes, number: int) -> Codec:
        try:
            plugin = self._codecs.tagged(tag, self._stored.name_of(tag))
        except CodecMissing as error:
            raise NotNow(str(error)) from error
        if not number:
            return plugin.open()
        dictionary = self._stored.dictionary(number)
        codec = plugin.trained(dictionary.bytes) if dictionary is not None else None
        if codec is None:
            raise NotUnpacked(f"dictionary {number}, with which it was compressed, is missing")
        return codec


def unpack_with(codec: Codec, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
    """What was compressed, so many bytes each. Raises NotUnpacked where one is something else."""
    many: Any = getattr(codec, "decompress_many", None)
    try:
        if many is not None and len(packed) >= MANY:
            bodies: list[bytes] = many(packed, sizes)
        else:
            bodies = [codec.decompress(data, size) for data, size in zip(packed, sizes, strict=True)]
    except Exception as error:  # each library has its own
        raise NotUnpacked(f"its bytes cannot be unpacked: {error}") from error
    if [len(body) for body in bodies] != list(sizes):
        raise NotUnpacked("it has another size than it should")
    return bodies


def pack_with(codec: Codec, bodies: Sequence[bytes]) -> list[bytes]:
    """Each body compressed by itself; raises whatever the codec does."""
    many: Callable[[Sequence[bytes]], list[bytes]] | None = getattr(codec, "compress_many", None)
    if many is not None and len(bodies) >= MANY:
        return many(bodies)
    return [codec.compress(body) for body in bodies]
