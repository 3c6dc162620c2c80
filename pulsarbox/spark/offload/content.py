"""Column checksums of content, independent of chunking: they compare a file with the rows that it was written from.

Each column is hashed as streams of plain bytes (null flags, lengths, values); records, lists and maps as the streams of
their parts.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

SIZE: Final = 16


class ColumnChecksums:
    """Running checksums of the columns of consecutive tables."""

    def __init__(self) -> None:
        self._streams: dict[str, dict[str, Any]] = {}
        self.rows = 0

    def feed(self, table: pa.Table) -> None:
        """Add rows; the columns must be the same each time."""
        self.rows += table.num_rows
        for name in table.column_names:
            streams = self._streams.setdefault(name, {})
            for chunk in table.column(name).chunks:
                _feed(streams, "", chunk)

    def checksums(self) -> dict[str, str]:
        """Return the checksum of each column, in hexadecimal."""
        return {name: _together(streams) for name, streams in self._streams.items()}

    def unlike(self, content: Mapping[str, str]) -> list[str]:
        """Return the names of the columns whose checksums differ from these, sorted."""
        made = self.checksums()
        return sorted(name for name in made.keys() | content.keys() if made.get(name) != content.get(name))


def _together(streams: dict[str, Any]) -> str:
    whole = blake2b(digest_size=SIZE)
    for path in sorted(streams):
        whole.update(f"{path}={streams[path].hexdigest()};".encode())
    return whole.hexdigest()


def _put(streams: dict[str, Any], path: str, data: Any) -> None:
    found = streams.get(path)
    if found is None:
        found = streams[path] = blake2b(digest_size=SIZE)
    found.update(data)


def _feed(streams: dict[str, Any], path: str, array: pa.Array) -> None:
    is_a = pa.types
    kind = array.type
    _put(streams, f"{path}/null", _fixed(array.is_null().cast(pa.uint8())))
    if is_a.is_null(kind):
        return
    if is_a.is_struct(kind):
        for at, child in enumerate(array.flatten()):
            _feed(streams, f"{path}/{kind.field(at).name}", child)
    elif is_a.is_map(kind) or is_a.is_list(kind):
        _feed_lists(streams, path, array)
    elif is_a.is_binary(kind) or is_a.is_string(kind):
        _feed_bytes(streams, path, array)
    elif is_a.is_decimal(kind):
        _feed_bytes(streams, path, array.cast(pa.string()))
    elif is_a.is_boolean(kind):
        _put(streams, f"{path}/value", _fixed(array.cast(pa.uint8()).fill_null(0)))
    else:
        plain = array.view({8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
        _put(streams, f"{path}/value", _fixed(plain.fill_null(0)))


def _feed_lists(streams: dict[str, Any], path: str, array: pa.Array) -> None:
    offsets = array.offsets
    if not len(array):
        return
    _put(streams, f"{path}/length", _fixed(pc.subtract(offsets[1:], offsets[:-1])))
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if pa.types.is_map(array.type):
        _feed(streams, f"{path}/key", array.keys.slice(first, last - first))
        _feed(streams, f"{path}/item", array.items.slice(first, last - first))
    else:
        _feed(streams, f"{path}/item", array.values.slice(first, last - first))


def _feed_bytes(streams: dict[str, Any], path: str, array: pa.Array) -> None:
    if array.null_count:
        array = array.fill_null("" if pa.types.is_string(array.type) else b"")
    _, offsets, data = array.buffers()
    places = memoryview(offsets).cast("i")[array.offset : array.offset + len(array) + 1] if len(array) else [0]
    _put(streams, f"{path}/length", _fixed(pc.binary_length(array).cast(pa.int32())))
    if data is not None:
        _put(streams, f"{path}/value", memoryview(data)[places[0] : places[-1]])


def _fixed(array: pa.Array) -> memoryview:
    """Return the bytes of fixed-width values without nulls."""
    if not len(array):
        return memoryview(b"")
    width = array.type.bit_width // 8
    return memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
