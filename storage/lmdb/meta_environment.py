"""The meta environment: the checkpoint's rows, and the volumes that hold live entries.

One thread writes (checkpoints and space reclamation); others read concurrently, each in separate transactions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import lmdb

from pulsarbox.storage.compression.decoder import Dictionary
from pulsarbox.storage.compression.volume_usage import Usage
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import (
    COMPRESSED_KEY,
    COMPRESSED_ROW,
    CONTENT,
    DICTIONARY_HEAD,
    DICTIONARY_KEY,
    INDEX_KEY,
    LOG_KEY,
    LONG_ROW,
    NEED,
    ROW_KEY_MAX,
    STRETCH,
)
from pulsarbox.storage.lmdb.directory import RESTORE_BACKUP, EnvironmentDamaged
from pulsarbox.storage.lmdb.environment import create_environment, open_environment
from pulsarbox.storage.lmdb.volume import seek_at_or_before

TABLES = (b"rows", b"mark", b"volumes", b"contents", b"dropped", b"compressed", b"needs", b"dictionaries")
POSITION = b"position"
SEALED = b"sealed"
DICTIONARY = b"dictionary"
"""The number of the newest dictionary."""

MAP_SIZE = 64 << 30
_ROWS_AT_FIRST = 4
_ROWS_AT_ONCE = 512
"""Maximum rows per transaction of a scan. Scans start with few, since many need only a topic's few rows."""
_BYTES_AT_ONCE = 1 << 20
_SHARED = ROW_KEY_MAX - sha256().digest_size
"""Keys that share this many bytes are adjacent, but ordered by their hash if long."""


class VolumeContent(NamedTuple):
    """Size of a sealed volume, and its live content."""

    first_position: int
    last_position: int
    size: int
    entries: int
    bytes: int


class ErasedRun(NamedTuple):
    """Entries that a volume no longer holds."""

    ledger_id: int
    first: int
    end: int
    """Exclusive."""
    volume: int = 0
    """0 for any volume."""


class PackedMove(NamedTuple):
    """The content that packing has moved into a new volume."""

    number: int
    content: VolumeContent
    old: Sequence[VolumeRun]
    """The stretches as listed before."""
    new: Sequence[VolumeRun]
    """The stretches moved, with their new sizes in bytes."""
    rest: Sequence[VolumeRun]
    """The stretches that remain in the sources."""
    sources: Mapping[int, VolumeContent | None]
    """The source volumes: their remaining content, None if empty."""
    usage: Mapping[tuple[int, bytes, int], Usage]
    """By ledger, tag and dictionary."""
    needs: Mapping[tuple[bytes, int], str]
    """Tags and dictionaries of entries in the new volume, with the codecs' names."""
    dictionaries: Sequence[Dictionary]
    """New dictionaries, and those measured again."""
    last_dictionary: int


class MetaEnvironment:
    """The tables of ``meta/``. Every call is one transaction. On lmdb.Error, nothing has changed."""

    def __init__(self, path: Path, *, readonly: bool = False, beside: bool = False) -> None:
        """Open the environment, creating it if missing. Raises PersistenceError, lmdb.Error, OSError.

        ``readonly``: without locks, if no process writes it. ``beside``: read only, while another process serves it.
        """
        if not readonly and not beside and not path.exists():
            create_environment(path, TABLES)
        self._env = open_environment(path, MAP_SIZE, sealed=readonly, beside=beside)
        try:
            tables = self._tables = [_open_table(self._env, path, name) for name in TABLES]
        except BaseException:
            self._env.close()
            raise
        self._rows, self._mark, self._volumes, self._contents, self._dropped = tables[:5]
        self._compressed, self._needs, self._dictionaries = tables[5:]

    def marks(self) -> tuple[int, int]:
        """Return the position that the checkpoint covers, and the newest sealed volume."""
        with self._env.begin() as txn:
            found = [txn.get(name, LOG_KEY.pack(0), db=self._mark) for name in (POSITION, SEALED)]
        position, sealed = [int(LOG_KEY.unpack(value)[0]) for value in found]
        return position, sealed

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a row, or None."""
        with self._env.begin() as txn:
            value = txn.get(_row_key(key), db=self._rows)
        if value is None:
            return None
        found, value = unpack_row(_row_key(key), value)
        return value if found == key else None

    def some_rows(
        self, prefix: bytes, stored: bytes, limit: int, *, behind: bool
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Return stored rows with ``prefix``, from the key ``stored`` on or ``behind`` it, and whether more follow.

        At most ``limit`` rows, fewer if they are large.
        """
        rows: list[tuple[bytes, bytes]] = []
        size = 0
        with self._env.begin() as txn, txn.cursor(db=self._rows) as cursor:
            if not cursor.set_range(stored or b"\0"):
                return rows, False
            for key, value in cursor:
                if not key.startswith(prefix):
                    return rows, False
                if behind and key == stored:
                    continue
                rows.append((key, value))
                size += len(value)
                if len(rows) >= limit or size >= _BYTES_AT_ONCE:
                    return rows, True
        return rows, False

    def last_row(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows.last."""
        with self._env.begin() as txn, txn.cursor(db=self._rows) as cursor:
            found = cursor.set_range(through)
            if not (found and cursor.key() == through) and not (cursor.prev() if found else cursor.last()):
                return None
            key, value = cursor.item()
            return (key, unpack_row(key, value)[1]) if key.startswith(prefix) else None

    def contents(self) -> dict[int, VolumeContent]:
        """Return the sealed volumes by number."""
        with self._env.begin() as txn, txn.cursor(db=self._contents) as cursor:
            return {LOG_KEY.unpack(key)[0]: VolumeContent(*CONTENT.unpack(value)) for key, value in cursor}

    def dropped(self) -> list[int]:
        """Return the deleted ledgers that may have entries in an unsealed volume."""
        with self._env.begin() as txn, txn.cursor(db=self._dropped) as cursor:
            return [LOG_KEY.unpack(key)[0] for key in cursor.iternext(keys=True, values=False)]

    def stretch_of(self, ledger_id: int, entry: int) -> VolumeRun | None:
        """Return the stretch that holds an entry, or None if no sealed volume does."""
        with self._env.begin() as txn, txn.cursor(db=self._volumes) as cursor:
            if not seek_at_or_before(cursor, INDEX_KEY.pack(ledger_id, entry)):
                return None
            found, first = INDEX_KEY.unpack(cursor.key())
            stretch = VolumeRun(found, first, *STRETCH.unpack(cursor.value()))
        return stretch if found == ledger_id and entry < stretch.end else None

    def stretches_of(self, ledger_ids: Iterable[int], volumes: frozenset[int] | None = None) -> list[VolumeRun]:
        """Return the stretches of some ledgers, in some volumes or in any; sorted if the ledgers are."""
        found: list[VolumeRun] = []
        with self._env.begin() as txn, txn.cursor(db=self._volumes) as cursor:
            for ledger_id in ledger_ids:
                found += [one for one in _stretches(cursor, ledger_id) if volumes is None or one.volume in volumes]
        return found

    def ledger_ids(self) -> list[int]:
        """Return the ledgers that have stretches, sorted."""
        found: list[int] = []
        with self._env.begin() as txn, txn.cursor(db=self._volumes) as cursor:
            more = cursor.first()
            while more:
                found.append(INDEX_KEY.unpack(cursor.key())[0])
                more = cursor.set_range(INDEX_KEY.pack(found[-1] + 1, 0))
        return found

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store the rows and the position they cover; dropped ledgers are no longer live in any volume."""
        rows = checkpoint.rows
        with self._env.begin(write=True) as txn:
            for key in sorted(rows):
                value = rows[key]
                if value is None:
                    txn.delete(_row_key(key), db=self._rows)
                else:
                    txn.put(_row_key(key), _row_value(key, value), db=self._rows)
            txn.put(POSITION, LOG_KEY.pack(checkpoint.position), db=self._mark)
            dead: dict[int, tuple[int, int]] = {}
            for ledger_id in checkpoint.dropped:
                with txn.cursor(db=self._volumes) as cursor:
                    gone = list(_stretches(cursor, ledger_id))
                for one in gone:
                    entries, size = dead.get(one.volume, (0, 0))
                    dead[one.volume] = entries + one.entries, size + one.bytes
                    txn.delete(INDEX_KEY.pack(ledger_id, one.first), db=self._volumes)
                txn.put(LOG_KEY.pack(ledger_id), b"", db=self._dropped)
            self._subtract(txn, dead)

    def add_rows(self, rows: Iterable[tuple[bytes, bytes]], bytes_at_once: int) -> None:
        """Store rows in several transactions of about this size."""
        some: list[tuple[bytes, bytes]] = []
        size = 0
        for key, value in rows:
            some.append((key, value))
            size += len(key) + len(value)
            if size >= bytes_at_once:
                self._add_rows(some)
                some, size = [], 0
        self._add_rows(some)

    def _add_rows(self, rows: list[tuple[bytes, bytes]]) -> None:
        with self._env.begin(write=True) as txn:
            for key, value in rows:
                txn.put(_row_key(key), _row_value(key, value), db=self._rows)

    def copy_volumes(self, other: "MetaEnvironment") -> None:
        """Copy all tables but the rows from another environment."""
        for table, source in zip(self._tables[1:], other._tables[1:], strict=True):
            with other._env.begin() as reading, reading.cursor(db=source) as cursor:
                items = iter(cursor)
                while some := list(islice(items, _ROWS_AT_ONCE)):
                    with self._env.begin(write=True) as txn:
                        for key, value in some:
                            txn.put(key, value, db=table)

    @property
    def environment(self) -> "lmdb.Environment":
        """The LMDB environment, for statistics."""
        return self._env

    def check_readers(self) -> None:
        """Clear the readers of killed processes, which would pin free pages."""
        self._env.reader_check()

    def seal(self, number: int, content: VolumeContent, stretches: Iterable[VolumeRun], forget: Iterable[int]) -> None:
        """List a sealed volume's content except dropped ledgers, then remove ``forget`` from the dropped ledgers."""
        with self._env.begin(write=True) as txn:
            entries, size = self._list(txn, stretches)
            value = CONTENT.pack(content.first_position, content.last_position, content.size, entries, size)
            txn.put(LOG_KEY.pack(number), value, db=self._contents)
            txn.put(SEALED, LOG_KEY.pack(number), db=self._mark)
            for ledger_id in forget:
                txn.delete(LOG_KEY.pack(ledger_id), db=self._dropped)

    def remap(self, move: "PackedMove") -> None:
        """Relocate packed entries from their source volumes to the new one."""
        with self._env.begin(write=True) as txn:
            for one in move.old:
                txn.delete(INDEX_KEY.pack(one.ledger_id, one.first), db=self._volumes)
            for one in (*joined(move.new, move.number), *move.rest):
                self._put(txn, one)
            txn.put(LOG_KEY.pack(move.number), CONTENT.pack(*move.content), db=self._contents)
            for source, content in move.sources.items():
                if content is None:
                    self._forget_volume(txn, source)
                else:
                    txn.put(LOG_KEY.pack(source), CONTENT.pack(*content), db=self._contents)
            for (ledger_id, tag, dictionary), usage in move.usage.items():
                key = COMPRESSED_KEY.pack(move.number, ledger_id, tag, dictionary)
                txn.put(key, COMPRESSED_ROW.pack(*usage), db=self._compressed)
            for (tag, number), name in move.needs.items():
                txn.put(NEED.pack(tag, number, move.number), name.encode(), db=self._needs)
            for each in move.dictionaries:
                head = DICTIONARY_HEAD.pack(each.tag, each.topic_id, each.ratio)
                txn.put(DICTIONARY_KEY.pack(each.number), head + each.bytes, db=self._dictionaries)
            txn.put(DICTIONARY, LOG_KEY.pack(move.last_dictionary), db=self._mark)

    def cut(self, cuts: Iterable[ErasedRun], ends: Mapping[int, int]) -> None:
        """Remove entries from the stretches, and set the last position of volumes.

        The remaining bytes of a stretch are estimated.
        """
        with self._env.begin(write=True) as txn:
            dead: dict[int, tuple[int, int]] = {}
            for cut in cuts:
                with txn.cursor(db=self._volumes) as cursor:
                    hit = [one for one in _stretches(cursor, cut.ledger_id) if _is_hit(one, cut)]
                for one in hit:
                    txn.delete(INDEX_KEY.pack(one.ledger_id, one.first), db=self._volumes)
                    rest = _without(one, cut)
                    for part in rest:
                        self._put(txn, part)
                    entries, size = dead.get(one.volume, (0, 0))
                    entries += one.entries - sum(part.entries for part in rest)
                    dead[one.volume] = entries, size + one.bytes - sum(part.bytes for part in rest)
            self._subtract(txn, dead)
            for number, end in ends.items():
                key = LOG_KEY.pack(number)
                content = VolumeContent(*CONTENT.unpack(txn.get(key, b"", db=self._contents)))
                last = end if end >= content.first_position else 0
                content = content._replace(first_position=content.first_position if last else 0, last_position=last)
                txn.put(key, CONTENT.pack(*content), db=self._contents)

    def add_packed(self, number: int, content: VolumeContent, stretches: Iterable[VolumeRun]) -> None:
        """List a packed volume with copies of entries, except those of dropped ledgers."""
        with self._env.begin(write=True) as txn:
            entries, size = self._list(txn, stretches)
            txn.put(
                LOG_KEY.pack(number), CONTENT.pack(*content._replace(entries=entries, bytes=size)), db=self._contents
            )

    def forget_volumes(self, numbers: Iterable[int]) -> None:
        """Remove the rows of volumes about to be deleted."""
        with self._env.begin(write=True) as txn:
            for number in numbers:
                self._forget_volume(txn, number)

    def _forget_volume(self, txn: "lmdb.Transaction[bytes]", number: int) -> None:
        txn.delete(LOG_KEY.pack(number), db=self._contents)
        with txn.cursor(db=self._compressed) as cursor:
            keys = list(_prefixed(cursor, LOG_KEY.pack(number)))
        for key in keys:
            _, _, tag, dictionary = COMPRESSED_KEY.unpack(key)
            txn.delete(key, db=self._compressed)
            txn.delete(NEED.pack(tag, dictionary, number), db=self._needs)

    # Compression

    def needs(self) -> dict[tuple[bytes, int], str]:
        """Return the tags and dictionaries of entries in packed volumes, with the codecs' names."""
        with self._env.begin() as txn, txn.cursor(db=self._needs) as cursor:
            return {NEED.unpack(key)[:2]: name.decode() for key, name in cursor}

    def usage(self, volume: int | None = None) -> dict[tuple[int, int, bytes, int], Usage]:
        """Return compression statistics by volume, ledger, tag and dictionary, of one volume or of all."""
        prefix = b"" if volume is None else LOG_KEY.pack(volume)
        with self._env.begin() as txn, txn.cursor(db=self._compressed) as cursor:
            keys = list(_prefixed(cursor, prefix))
            rows = [txn.get(key, db=self._compressed) for key in keys]
        return {
            COMPRESSED_KEY.unpack(key): Usage(*COMPRESSED_ROW.unpack(row))
            for key, row in zip(keys, rows, strict=True)
            if row is not None
        }

    def dictionary(self, number: int) -> Dictionary | None:
        """Return a dictionary by its number, or None."""
        with self._env.begin() as txn:
            value = txn.get(DICTIONARY_KEY.pack(number), db=self._dictionaries)
        return None if value is None else unpack_dictionary(number, value)

    def dictionaries(self) -> list[Dictionary]:
        """Return all dictionaries, oldest first, without their bytes."""
        with self._env.begin(buffers=True) as txn, txn.cursor(db=self._dictionaries) as cursor:
            return [
                unpack_dictionary(DICTIONARY_KEY.unpack(key)[0], bytes(value[: DICTIONARY_HEAD.size]))
                for key, value in cursor
            ]

    def dictionary_sizes(self) -> dict[int, int]:
        """Return the size of each dictionary in bytes."""
        with self._env.begin(buffers=True) as txn, txn.cursor(db=self._dictionaries) as cursor:
            return {DICTIONARY_KEY.unpack(key)[0]: len(value) - DICTIONARY_HEAD.size for key, value in cursor}

    def last_dictionary(self) -> int:
        """Return the number of the newest dictionary."""
        with self._env.begin() as txn:
            return int(LOG_KEY.unpack(txn.get(DICTIONARY, LOG_KEY.pack(0), db=self._mark))[0])

    def drop_dictionaries(self) -> list[int]:
        """Delete unused dictionaries and return their numbers."""
        with self._env.begin() as txn:
            with txn.cursor(db=self._needs) as cursor:
                needed = {NEED.unpack(key)[1] for key in cursor.iternext(keys=True, values=False)}
            with txn.cursor(db=self._dictionaries) as cursor:
                known = [DICTIONARY_KEY.unpack(key)[0] for key in cursor.iternext(keys=True, values=False)]
        gone = [number for number in known if number not in needed]
        if gone:
            with self._env.begin(write=True) as txn:
                for number in gone:
                    txn.delete(DICTIONARY_KEY.pack(number), db=self._dictionaries)
        return gone

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _list(self, txn: "lmdb.Transaction[bytes]", stretches: Iterable[VolumeRun]) -> tuple[int, int]:
        """List stretches except those of dropped ledgers; return their entries and bytes."""
        entries = size = 0
        for one in stretches:
            if txn.get(LOG_KEY.pack(one.ledger_id), db=self._dropped) is None:
                self._put(txn, one)
                entries += one.entries
                size += one.bytes
        return entries, size

    def _put(self, txn: "lmdb.Transaction[bytes]", one: VolumeRun) -> None:
        txn.put(
            INDEX_KEY.pack(one.ledger_id, one.first), STRETCH.pack(one.volume, one.entries, one.bytes), db=self._volumes
        )

    def _subtract(self, txn: "lmdb.Transaction[bytes]", dead: dict[int, tuple[int, int]]) -> None:
        for number, (entries, size) in dead.items():
            key = LOG_KEY.pack(number)
            value = txn.get(key, db=self._contents)
            if value is not None:
                old = VolumeContent(*CONTENT.unpack(value))
                new = old._replace(entries=max(old.entries - entries, 0), bytes=max(old.bytes - size, 0))
                txn.put(key, CONTENT.pack(*new), db=self._contents)


class Metas(Protocol):
    """Access to the open environment of rows, usually a Pool."""

    def using(self, number: int, /) -> AbstractContextManager[MetaEnvironment]:
        """Return the environment, which stays open inside the block."""


class MetaRows:
    """The Rows of an engine. A slow iterator holds no transaction and no open environment."""

    def __init__(self, metas: "Metas", guarded: Callable[[lmdb.Error], Exception]) -> None:
        """``guarded`` converts LMDB's errors for the core."""
        self._metas = metas
        self._guarded = guarded

    def get(self, key: bytes) -> bytes | None:
        """See Rows."""
        try:
            with self._metas.using(0) as meta:
                return meta.get(key)
        except lmdb.Error as error:
            raise self._guarded(error) from error

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See Rows."""
        group: list[tuple[bytes, bytes]] = []
        for stored, packed in self._stored(max(prefix, after)[:_SHARED], prefix[:_SHARED]):
            key, value = unpack_row(stored, packed)
            if group and (len(stored) < _SHARED or group[0][0][:_SHARED] != stored[:_SHARED]):
                yield from sorted(group)
                group = []
            if not key.startswith(prefix) or (after and key <= after):
                continue
            if len(stored) < _SHARED:
                yield key, value
            else:
                group.append((key, value))
        yield from sorted(group)

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows."""
        try:
            with self._metas.using(0) as meta:
                return meta.last_row(prefix, through)
        except lmdb.Error as error:
            raise self._guarded(error) from error

    def _stored(self, first: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        behind, more, limit = False, True, _ROWS_AT_FIRST
        while more:
            try:
                with self._metas.using(0) as meta:
                    rows, more = meta.some_rows(prefix, first, limit, behind=behind)
            except lmdb.Error as error:
                raise self._guarded(error) from error
            yield from rows
            if more:
                first, behind, limit = rows[-1][0], True, min(4 * limit, _ROWS_AT_ONCE)


def joined(stretches: Iterable[VolumeRun], number: int) -> Iterator[VolumeRun]:
    """Yield the stretches as moved to the volume ``number``; consecutive ones are merged."""
    last: VolumeRun | None = None
    for one in sorted(stretches):
        if last is not None and (one.ledger_id, one.first) == (last.ledger_id, last.end):
            last = last._replace(entries=last.entries + one.entries, bytes=last.bytes + one.bytes)
        else:
            if last is not None:
                yield last
            last = one._replace(volume=number)
    if last is not None:
        yield last


def unpack_row(stored: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Decode key and value of a stored row."""
    if len(stored) < ROW_KEY_MAX:
        return stored, value
    end = LONG_ROW.size + LONG_ROW.unpack_from(value)[0]
    return value[LONG_ROW.size : end], value[end:]


def unpack_dictionary(number: int, value: bytes) -> Dictionary:
    """Decode a stored dictionary."""
    tag, topic_id, ratio = DICTIONARY_HEAD.unpack_from(value)
    return Dictionary(number, tag, topic_id, ratio, value[DICTIONARY_HEAD.size :])


def _is_hit(one: VolumeRun, cut: ErasedRun) -> bool:
    return cut.volume in (0, one.volume) and one.first < cut.end and cut.first < one.end


def _without(one: VolumeRun, cut: ErasedRun) -> list[VolumeRun]:
    """Return the parts of a stretch before and after a cut."""
    rest: list[VolumeRun] = []
    for first, end in ((one.first, min(one.end, cut.first)), (max(one.first, cut.end), one.end)):
        if first < end:
            rest.append(one._replace(first=first, entries=end - first, bytes=one.bytes * (end - first) // one.entries))
    return rest


def _prefixed(cursor: "lmdb.Cursor[bytes]", prefix: bytes) -> Iterator[bytes]:
    found = cursor.set_range(prefix) if prefix else cursor.first()
    while found and cursor.key().startswith(prefix):
        yield cursor.key()
        found = cursor.next()


def _stretches(cursor: "lmdb.Cursor[bytes]", ledger_id: int) -> Iterator[VolumeRun]:
    if not cursor.set_range(INDEX_KEY.pack(ledger_id, 0)):
        return
    for key, value in cursor:
        found, first = INDEX_KEY.unpack(key)
        if found != ledger_id:
            return
        yield VolumeRun(found, first, *STRETCH.unpack(value))


def _open_table(env: lmdb.Environment, path: Path, name: bytes) -> "lmdb._Database":
    try:
        return env.open_db(name, create=False)
    except lmdb.NotFoundError as error:
        raise EnvironmentDamaged(
            f"{path} is damaged: its table {name.decode()} is missing; {RESTORE_BACKUP}"
        ) from error


def _row_key(key: bytes) -> bytes:
    if len(key) < ROW_KEY_MAX:
        return key
    return key[:_SHARED] + sha256(key).digest()


def _row_value(key: bytes, value: bytes) -> bytes:
    return value if len(key) < ROW_KEY_MAX else LONG_ROW.pack(len(key)) + key + value
