"""Compression of packed entries: which codec, with which dictionary, and whether it is worthwhile. Pure.

A topic with similar bodies gets a dictionary: trained on some bodies, tested on others, and used if it saves more than
its own size. Each packing step measures it again, and trains another one if its ratio has declined. Every compressed
entry is decompressed and compared before it replaces the original: a faulty codec costs time, not messages.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.contracts import Codec, Compression
from pulsarbox.storage.compression.decoder import BYTES_MAX, Codecs, Dictionary, pack_with, unpack_with
from pulsarbox.storage.compression.volume_usage import Usage
from pulsarbox.storage.engine import CompressionChoice
from pulsarbox.storage.format import COMPRESSED_AS, COMPRESSED_AT, ENTRY_HEADER, PLAIN, RECORD_PREFIX, EntryFlag
from pulsarbox.storage.packing.live_records import LiveRecord
from pulsarbox.storage.record import Compressed, DecompressionError, NotNow, Unpacker, compressed_as

log = logging.getLogger(__name__)

DICTIONARY_MAX: Final = 32 << 10
DICTIONARY_SHARE: Final = 8
"""Maximum size of a dictionary, as a fraction of the samples it is trained on."""
SAMPLES_MIN: Final = 32
SAMPLE_BYTES_MAX: Final = 512 << 10
"""Sample bytes per topic; no dictionary improves with more."""
BODY_MAX: Final = 16 << 10
"""Average body size above which a dictionary gains nothing."""
RETRAIN_BELOW: Final = 0.85
"""Retrain a dictionary once its ratio falls below this fraction of the recorded one."""
BETTER_BY: Final = 1.05
"""Factor by which a new dictionary must beat no dictionary, or the previous one."""
GAIN_MIN: Final = 16
"""Entries must shrink by at least this fraction, or remain uncompressed."""
SMALL: Final = 32
"""Bodies smaller than this many bytes are not compressed."""
PART_BYTES: Final = 1 << 20
"""Bytes compressed at a time before other work may run."""

_EXTRA: Final = COMPRESSED_AS.size - len(PLAIN)


class _Method(NamedTuple):
    """The compression method for the entries of a topic."""

    tag: bytes
    dictionary: int
    writer: Codec | None
    """None if compression gains nothing."""
    reader: Codec | None


class NewDictionaries:
    """The dictionaries available to a packing step, and those it adds."""

    def __init__(self, newest: Callable[[int, bytes], Dictionary | None], last_number: int) -> None:
        """``newest`` looks up the last dictionary trained for a topic and tag."""
        self._newest = newest
        self.last_number = last_number
        self.changed: dict[int, Dictionary] = {}
        """New dictionaries, and those measured again."""

    def newest(self, topic_id: int, tag: bytes) -> Dictionary | None:
        """Return the dictionary to try first."""
        return self._newest(topic_id, tag)

    def add(self, tag: bytes, topic_id: int, ratio: float, trained: bytes) -> Dictionary:
        """Add a new dictionary. Numbers are never reused: readers may cache them."""
        self.last_number += 1
        return self.note(Dictionary(self.last_number, tag, topic_id, 0, trained), ratio)

    def note(self, dictionary: Dictionary, ratio: float) -> Dictionary:
        """Record the current ratio of a dictionary, the reference for later measurements."""
        noted = dictionary._replace(ratio=max(1, int(ratio * 1000)))
        self.changed[noted.number] = noted
        return noted


class EntryEncoder:
    """Compresses the entries of one packing step."""

    def __init__(
        self,
        codecs: Codecs,
        choose: Callable[[int], CompressionChoice | None],
        dictionaries: NewDictionaries,
        unpacker: Unpacker,
        pace: Callable[[], None],
    ) -> None:
        """``choose`` returns the choice for a ledger; ``pace`` is called between pieces of work, and may block."""
        self._codecs = codecs
        self._choose = choose
        self.dictionaries = dictionaries
        self._unpacker = unpacker
        self._pace = pace
        self.usage: dict[tuple[int, bytes, int], Usage] = {}
        """By ledger, tag and dictionary."""
        self.names: dict[bytes, str] = {}
        """Names of the codecs of new entries, by tag."""
        self._choices: dict[int, CompressionChoice | None] = {}
        self._methods: dict[CompressionChoice, _Method | None] = {}

    # Choices

    def choice(self, ledger_id: int) -> CompressionChoice | None:
        """Return the cached choice for a ledger."""
        if ledger_id not in self._choices:
            self._choices[ledger_id] = self._choose(ledger_id)
        return self._choices[ledger_id]

    def train(self, choice: CompressionChoice, samples: Sequence[bytes], expected: int) -> None:
        """Choose the compression method for the entries of a topic, of which about ``expected`` bytes follow."""
        try:
            plugin = self._codecs.named(choice.codec)
        except CodecMissing as error:
            log.warning("entries are not compressed, the codec is unavailable: %s", error)
            self._methods[choice] = None
            return
        assert plugin.rest_tag is not None
        try:
            self._methods[choice] = self._method(choice, plugin, plugin.rest_tag, samples, expected)
        except Exception as error:  # a plugin's exception
            log.warning("the codec %r cannot be used for topic %d: %s", choice.codec, choice.topic_id, error)
            self._methods[choice] = _Method(plugin.rest_tag, 0, None, None)
        self.names[plugin.rest_tag] = choice.codec

    def _method(
        self, choice: CompressionChoice, plugin: Compression, tag: bytes, samples: Sequence[bytes], expected: int
    ) -> _Method:
        known = self.dictionaries.newest(choice.topic_id, tag)
        tried = samples[1::2]
        size = sum(map(len, tried))
        if not size:
            return self._opened(plugin, tag, known)
        plain = _packed_size(plugin.open(), tried)
        best, chosen = plain, None
        self._pace()
        if known is not None:
            codec = plugin.trained(known.bytes)
            packed = _packed_size(codec, tried) if codec is not None else size
            if size / packed * 1000 >= RETRAIN_BELOW * known.ratio:
                return self._opened(plugin, tag, known)
            if packed * BETTER_BY <= plain:
                best, chosen = packed, known
        new = self._trained(choice, plugin, tag, samples, best, expected)
        if new is not None:
            return self._opened(plugin, tag, new)
        if known is not None and chosen is known:
            chosen = self.dictionaries.note(known, size / best)
        if best * GAIN_MIN > size * (GAIN_MIN - 1):
            return _Method(tag, 0, None, None)
        return self._opened(plugin, tag, chosen)

    def _trained(
        self,
        choice: CompressionChoice,
        plugin: Compression,
        tag: bytes,
        samples: Sequence[bytes],
        best: int,
        expected: int,
    ) -> Dictionary | None:
        """Train a dictionary; return it if it beats ``best`` by more than its own size."""
        learnt, tried = samples[::2], samples[1::2]
        total = sum(map(len, learnt))
        room = min(DICTIONARY_MAX, total // DICTIONARY_SHARE)
        if len(samples) < SAMPLES_MIN or total > BODY_MAX * len(learnt) or room < SMALL:
            return None
        trained = plugin.train(learnt, room)
        self._pace()
        codec = plugin.trained(trained) if trained else None
        if not trained or codec is None:
            return None
        packed, size = _packed_size(codec, tried), sum(map(len, tried))
        if packed * BETTER_BY > best or (best - packed) / size * expected < 2 * len(trained):
            return None
        return self.dictionaries.add(tag, choice.topic_id, size / packed, trained)

    def _opened(self, plugin: Compression, tag: bytes, dictionary: Dictionary | None) -> _Method:
        if dictionary is not None:
            writer, reader = plugin.trained(dictionary.bytes), plugin.trained(dictionary.bytes)
            if writer is not None and reader is not None:
                return _Method(tag, dictionary.number, writer, reader)
        return _Method(tag, 0, plugin.open(), plugin.open())

    # Compression

    def sample(self, live: LiveRecord) -> bytes | None:
        """Return the body of an entry for training; None if it is encrypted or cannot be read."""
        return None if live.header[1] & EntryFlag.ENCRYPTED else self.body(live)

    def body(self, live: LiveRecord) -> bytes | None:
        """Return the uncompressed bytes of an entry; None if they cannot be decompressed."""
        compressed = compressed_as(live.header, 0)
        if compressed is None:
            return bytes(live.body)
        try:
            return self._unpacker.unpack(compressed.tag, compressed.dictionary, [bytes(live.body)], [compressed.size])[
                0
            ]
        except (DecompressionError, NotNow):
            return None

    def press(self, entries: Iterable[LiveRecord]) -> None:
        """Compress the chosen entries in place; entries of another codec are recompressed."""
        waiting: dict[CompressionChoice, list[tuple[LiveRecord, bytes]]] = {}
        size = 0
        for live in entries:
            choice = self.choice(live.ledger_id)
            compressed = compressed_as(live.header, 0)
            method = self._method_of(choice)
            if choice is None or method is None or (compressed is not None and compressed.tag == method.tag):
                self._count(live, compressed, compressed.tag if compressed is not None else PLAIN)
                continue
            body = self.body(live)
            hopeless = method.writer is None or (body is not None and not self._is_worth_trying(live, body))
            if body is None or hopeless:
                if body is not None and compressed is not None:
                    _put_back(live, body)
                self._count(live, compressed_as(live.header, 0), method.tag)
                continue
            waiting.setdefault(choice, []).append((live, body))
            size += len(body)
            if size >= PART_BYTES:
                self._press_all(waiting)
                waiting, size = {}, 0
        self._press_all(waiting)

    def _method_of(self, choice: CompressionChoice | None) -> _Method | None:
        if choice is None:
            return None
        if choice not in self._methods:
            self.train(choice, (), 0)
        return self._methods[choice]

    def _is_worth_trying(self, live: LiveRecord, body: bytes) -> bool:
        return SMALL <= len(body) <= BYTES_MAX and not live.header[1] & EntryFlag.ENCRYPTED

    def _press_all(self, waiting: dict[CompressionChoice, list[tuple[LiveRecord, bytes]]]) -> None:
        for choice, group in waiting.items():
            method = self._methods[choice]
            assert method is not None
            packed: list[bytes] | None = None
            if method.writer is not None and method.reader is not None:  # otherwise it has failed meanwhile
                packed = self._packed(choice, method.writer, method.reader, [body for _, body in group])
            for at, (live, body) in enumerate(group):
                new = packed[at] if packed is not None else None
                if new is not None and (len(new) + _EXTRA) * GAIN_MIN <= len(body) * (GAIN_MIN - 1):
                    _put(live, new, Compressed(method.tag, len(body), method.dictionary))
                elif packed is not None:
                    _put_back(live, body)
                self._count(live, compressed_as(live.header, 0), method.tag)
            self._pace()

    def _packed(
        self, choice: CompressionChoice, writer: Codec, reader: Codec, bodies: list[bytes]
    ) -> list[bytes] | None:
        """Return the compressed bodies; None if the codec fails verification, which disables it."""
        try:
            packed = pack_with(writer, bodies)
            if unpack_with(reader, packed, [len(body) for body in bodies]) == bodies:
                return packed
            reason = "its output does not decompress to the original"
        except Exception as error:  # a plugin's exception
            reason = str(error)
        log.error("the codec %r is not used for topic %d: %s", choice.codec, choice.topic_id, reason)
        method = self._methods[choice]
        if method is not None:
            self._methods[choice] = method._replace(writer=None)
        return None

    def _count(self, live: LiveRecord, compressed: Compressed | None, tried: bytes) -> None:
        tag, dictionary = (compressed.tag, compressed.dictionary) if compressed is not None else (PLAIN, 0)
        if tag == PLAIN and tried == PLAIN:
            return
        stands = len(live.body) + (_EXTRA if compressed is not None else 0)
        known = self.usage.get((live.ledger_id, tag, dictionary)) or Usage(tried, 0, 0, 0)
        came = known.came + (compressed.size if compressed is not None else stands)
        self.usage[live.ledger_id, tag, dictionary] = Usage(tried, known.entries + 1, came, known.stands + stands)


def _put(live: LiveRecord, body: bytes, compressed: Compressed) -> None:
    header = live.header
    kind, flags, _, _ = RECORD_PREFIX.unpack_from(header)
    end = COMPRESSED_AS.pack(compressed.tag, compressed.size, compressed.dictionary)
    rest = header[_end_of(header) :]
    prefix = RECORD_PREFIX.pack(kind, flags, COMPRESSED_AT + len(end) + len(rest), len(body))
    live.header = prefix + header[RECORD_PREFIX.size : COMPRESSED_AT] + end + rest
    live.body = body


def _put_back(live: LiveRecord, body: bytes) -> None:
    """Store an entry uncompressed."""
    header = live.header
    if compressed_as(header, 0) is None:
        return
    kind, flags, _, _ = RECORD_PREFIX.unpack_from(header)
    rest = header[_end_of(header) :]
    prefix = RECORD_PREFIX.pack(kind, flags, ENTRY_HEADER.size + len(rest), len(body))
    live.header = prefix + header[RECORD_PREFIX.size : COMPRESSED_AT] + PLAIN + rest
    live.body = body


def _end_of(header: bytes) -> int:
    """Return the end of the known fields of a header."""
    return ENTRY_HEADER.size if compressed_as(header, 0) is None else COMPRESSED_AT + COMPRESSED_AS.size


def _packed_size(codec: Codec | None, bodies: Sequence[bytes]) -> int:
    assert codec is not None
    return sum(map(len, pack_with(codec, bodies))) + _EXTRA * len(bodies)
