"""Conformance checks of compression plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.plugins.conformance.examples import noise, records, side_by_side
from pulsarbox.plugins.contracts import Codec, Compression, ManyAtOnce

_BODIES: Final = (
    b"",
    b"\0",
    b"a",
    b"a" * 100_000,
    bytes(range(256)) * 40,
    noise(1_000),
    noise(65_537, 1),
    b"\n".join(records(400)),
)
_GROWTH_MAX: Final = 1.1
"""Incompressible data may grow by a tenth plus ``_GROWTH_BYTES``."""
_GROWTH_BYTES: Final = 64
_DICTIONARY: Final = 4096


def _there_and_back(plugin: Compression) -> Iterator[str]:
    for codec, what in _codecs(plugin):
        for body in _BODIES:
            packed: Any = codec.compress(body)
            if type(packed) is not bytes:
                yield f"compress returned {type(packed).__name__}, expected bytes"
                return
            if codec.decompress(packed, len(body)) != body:
                yield f"decompress does not restore {len(body)} bytes{what}"
                return


def _growth(plugin: Compression) -> Iterator[str]:
    for codec, what in _codecs(plugin):
        for body in _BODIES:
            size = len(codec.compress(body))
            if size > _GROWTH_MAX * len(body) + _GROWTH_BYTES:
                yield f"{len(body)} incompressible bytes grow to {size}{what}"
                return


def _check_size_limit(plugin: Compression) -> Iterator[str]:
    """Check that decompression never returns more than the size it is given."""
    codec = plugin.open()
    body = b"a" * 1_000_000
    packed = codec.compress(body)
    for told in (0, 1, 1_000, len(body) - 1, len(body) + 1):
        try:
            found = codec.decompress(packed, told)
        except Exception:
            continue
        if len(found) > told:
            yield f"decompress returned {len(found)} bytes for a size of {told}"
            return


def _junk(plugin: Compression) -> Iterator[str]:
    """Check that damaged input raises an exception or yields bytes within the size; it must not end the process."""
    codec = plugin.open()
    packed = codec.compress(_BODIES[-1])
    damaged = [packed[: len(packed) // 2], packed[1:], noise(100), b"", packed[:-1] + b"\0", packed * 2]
    for each in damaged:
        try:
            found: Any = codec.decompress(each, len(_BODIES[-1]))
        except Exception:
            continue
        if type(found) is not bytes or len(found) > len(_BODIES[-1]):
            yield f"decompress returned {type(found).__name__} of length {len(found)} for {len(each)} damaged bytes"
            return


def _repeats(plugin: Compression) -> Iterator[str]:
    """Check that one instance reads what another has written, as after a restart."""
    packed = [plugin.open().compress(body) for body in _BODIES]
    other = type(plugin)().open()
    for each, body in zip(packed, _BODIES, strict=True):
        if other.decompress(each, len(body)) != body:
            yield f"another instance does not restore {len(body)} bytes"
            return


def _threads(plugin: Compression) -> Iterator[str]:
    def all_of_them() -> bool:
        codec = plugin.open()
        return all(codec.decompress(codec.compress(body), len(body)) == body for body in _BODIES * 3)

    if not all(side_by_side(all_of_them)):
        yield "codecs of two threads interfere with each other"


def _dictionary(plugin: Compression) -> Iterator[str]:
    samples = records(2_000)
    trained = plugin.train(samples, _DICTIONARY)
    if trained is None:
        return
    if type(trained) is not bytes or not 0 < len(trained) <= _DICTIONARY:
        yield f"train returned {trained!r:.40}, expected a dictionary of at most {_DICTIONARY} bytes"
        return
    writer, reader = plugin.trained(trained), plugin.trained(trained)
    if writer is None or reader is None:
        yield "train returns a dictionary, but trained does not accept it"
        return
    for body in samples[:200]:
        if reader.decompress(writer.compress(body), len(body)) != body:
            yield "decompress does not restore data compressed with a dictionary"
            return


def _many(plugin: Compression) -> Iterator[str]:
    """Check that bulk methods agree with the single ones and respect sizes as well."""
    for codec, what in _codecs(plugin):
        if not isinstance(codec, ManyAtOnce):
            continue
        packed = codec.compress_many(_BODIES)
        if [codec.decompress(each, len(body)) for each, body in zip(packed, _BODIES, strict=True)] != list(_BODIES):
            yield f"decompress does not restore the output of compress_many{what}"
            return
        alone = [codec.compress(body) for body in _BODIES]
        if codec.decompress_many(alone, [len(body) for body in _BODIES]) != list(_BODIES):
            yield f"decompress_many does not restore the output of compress{what}"
            return
        try:
            found = codec.decompress_many(alone, [max(0, len(body) - 1) for body in _BODIES])
        except Exception:
            continue
        if any(len(each) >= len(body) > 0 for each, body in zip(found, _BODIES, strict=True)):
            yield f"decompress_many returned more bytes than the given sizes{what}"
            return


def _codecs(plugin: Compression) -> Iterator[tuple[Codec, str]]:
    yield plugin.open(), ""
    trained = plugin.train(records(2_000), _DICTIONARY)
    codec = plugin.trained(trained) if trained else None
    if codec is not None:
        yield codec, ", with a dictionary"


CHECKS: Final = {
    "round trip": _there_and_back,
    "growth": _growth,
    "sizes": _check_size_limit,
    "junk": _junk,
    "repeatable": _repeats,
    "threads": _threads,
    "dictionary": _dictionary,
    "bulk": _many,
}
