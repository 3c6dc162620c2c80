"""Entries out of a data directory that another process serves: its LMDB environments, read where they stand.

What may be read the box says (``Segment``); where it stands, the tables of ``meta`` do, which are asked again whenever
something is not where it was: volumes are sealed, packed and removed meanwhile. Nothing is written but the slot of a
reader, and read transactions are short, so no page has to wait long for its end. A process that is killed leaves its
slot: the box clears it with its next checkpoint.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from struct import error as error_of_struct
from struct import unpack
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import lmdb

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.protocol.checksum import crc32c, extend_bytes
from pulsarbox.storage.directory import DATA_FILE, INSTANCE, EnvironmentDamaged
from pulsarbox.storage.format import (
    COMPACTED_PREFIX,
    ENTRY_HEADER,
    FORMAT_COMPRESSED,
    FORMAT_VERSION,
    INDEX_KEY,
    LOG_KEY,
    PACKED,
    EntryFlag,
    RecordKind,
)
from pulsarbox.storage.index import UnindexedRuns, runs_of
from pulsarbox.storage.meta import MetaEnvironment
from pulsarbox.storage.record import (
    CHECKSUM_PREFIX,
    MAGIC,
    Compressed,
    NotNow,
    NotUnpacked,
    check_batch,
    compressed_as,
)
from pulsarbox.storage.unpacking import Dictionary, RestUnpacker
from pulsarbox.storage.volume import INDEXED, is_damage, open_environment, seek_at_or_before

if TYPE_CHECKING:
    Txn = lmdb.Transaction[memoryview]

ROWS_MAX: Final = 4096
BYTES_MAX: Final = 4 << 20
"""Entries of one read transaction, and of one answer."""
SWEEP_ROWS: Final = 8192
SWEEP_BYTES: Final = 8 << 20
"""The same where topics take turns."""
OPEN_MAX: Final = 8
"""Volumes that are open at once."""
_TRIES: Final = 4
_RUNS_AT_ONCE: Final = 256
_FORGET: Final = 200_000
"""Entries behind the mark that memory may know, whether the index has them by now or not."""
_MARKER: Final = EntryFlag.MARKER
_CHECKSUM: Final = EntryFlag.CHECKSUM
_OWN_CHECKSUM: Final = EntryFlag.OWN_CHECKSUM
_ENTRY: Final = RecordKind.ENTRY
_header: Final = ENTRY_HEADER.unpack_from
_head: Final = CHECKSUM_PREFIX.unpack_from
_T = TypeVar("_T")

Entry = tuple[int, int, bytes]
"""Ledger, entry, and the bytes as the client sent them, verified."""
Run = tuple[int, int, Sequence[int]]
"""Entries that follow each other in one batch: its position, the first entry, and where each one's record starts."""


class Want(NamedTuple):
    """Entries of one ledger."""

    ledger: int
    first: int
    last: int


class NotInPlace(PersistenceError):
    """It cannot be read in place; the text says why."""


class Gone(PersistenceError):
    """No volume has the next entry."""


class Store:
    """A data directory that another process serves."""

    def __init__(self, path: Path, instance: str) -> None:
        """Raises NotInPlace where it is not that of ``instance``, or cannot be read."""
        self.path = path
        self.instance = instance
        _check(path, instance)
        self._volumes: OrderedDict[int, _Volume] = OrderedDict()
        try:
            self._meta = MetaEnvironment(path / "meta", beside=True)
        except (lmdb.Error, OSError, PersistenceError) as error:
            raise NotInPlace(f"{path / 'meta'} cannot be read in place: {error}") from error
        self._unpacker = RestUnpacker(RestCodecs(), _Codecs(self._meta))

    def close(self) -> None:
        """Let go of everything."""
        for volume in self._volumes.values():
            volume.close()
        self._volumes.clear()
        self._meta.close()

    def forget_removed(self) -> None:
        """Let go of volumes whose files are not there any more: they would take room on the disk."""
        for number in [number for number, volume in self._volumes.items() if volume.is_removed()]:
            self._volumes.pop(number).close()

    def read(self, ledger: int, first: int, last: int) -> tuple[list[Entry], int]:
        """Entries from ``first`` on, and where to go on: ROWS_MAX of them, BYTES_MAX or one entry at least.

        Raises EntryDamaged where not even the first can be given, Gone, NotInPlace.
        """
        before = None
        damage: EntryDamaged | None = None
        for _ in range(_TRIES):
            places = self._places(ledger, first)
            if places == before:
                break
            before, damage = places, None
            for number, end in places:
                try:
                    found = self._open(number).take(ledger, first, min(last, end - 1), self._unpacker)
                except FileNotFoundError:
                    continue  # packed or removed since
                except EntryDamaged as error:
                    damage = error
                    continue
                except (lmdb.Error, OSError, PersistenceError) as error:
                    if isinstance(error, NotInPlace) or not is_damage(error):
                        raise NotInPlace(f"{self.path}: volume {_name(number)} cannot be read: {error}") from error
                    damage = EntryDamaged(ledger, first, min(last, end - 1), str(error))
                    continue
                if found is not None:
                    return found
        if damage is not None:
            raise damage
        raise Gone(f"entry {ledger}:{first} is in no volume")

    def sweep(self, wants: Sequence[Want]) -> Iterator[tuple[int, list[Entry], int]]:
        """Entries of several ledgers in the order in which they stand on the disk: the number of a want, some of its
        entries, and where it goes on. Each batch is looked up once, however many take turns in it.

        It leaves out a want from where anything is the matter: that is for ``read`` to say. Raises NotInPlace.
        """
        left = dict(enumerate(wants))
        while left:
            volumes: dict[int, list[int]] = {}
            for number, want in list(left.items()):
                volume = self._volume_of(want)
                if volume is None:
                    del left[number]
                else:
                    volumes.setdefault(volume, []).append(number)
            if not volumes:
                return
            first = min(volumes)
            here = {number: left[number] for number in volumes[first]}
            try:
                for number, found, end in self._open(first).sweep(here, self._unpacker):
                    yield number, found, end
                    left[number] = here[number]._replace(first=end)
            except NotInPlace:
                raise
            except (PersistenceError, lmdb.Error, OSError, ValueError, IndexError, error_of_struct):
                for number in here:
                    del left[number]
                continue
            for number, before in here.items():
                if not before.first < left[number].first <= before.last:
                    del left[number]

    def _volume_of(self, want: Want) -> int | None:
        """The volume that has its next entry; None where none says so."""
        for number, _ in self._places(want.ledger, want.first):
            try:
                if self._open(number).has(want.ledger, want.first):
                    return number
            except (FileNotFoundError, PersistenceError, lmdb.Error, OSError):
                continue
        return None

    def _places(self, ledger: int, entry: int) -> list[tuple[int, int]]:
        """Volumes that may hold an entry, and the entry behind the last that they may hold."""
        try:
            stretch = self._asked(lambda: self._meta.stretch_of(ledger, entry))
            if stretch is not None:
                return [(stretch.volume, stretch.end)]
            sealed = self._asked(self._meta.marks)[1]
            numbers = [int(path.name) for path in (self.path / "volumes").iterdir() if path.name.isdigit()]
        except (lmdb.Error, OSError) as error:
            raise NotInPlace(f"{self.path} cannot be read in place: {error}") from error
        return [(number, 1 << 62) for number in sorted(numbers, reverse=True) if number > sealed]

    def _asked(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except lmdb.ReadersFullError:
            self._meta.environment.reader_check()
            return ask()

    def _open(self, number: int) -> "_Volume":
        volume = self._volumes.get(number)
        if volume is None:
            while len(self._volumes) >= OPEN_MAX:
                self._volumes.popitem(last=False)[1].close()
            path = self.path / _name(number)
            if not path.exists():
                raise FileNotFoundError(path)
            volume = self._volumes[number] = _Volume(path)
        else:
            self._volumes.move_to_end(number)
        return volume


class _Codecs:
    """What the tables of meta know of compressed entries: StoredCodecs."""

    def __init__(self, meta: MetaEnvironment) -> None:
        self._meta = meta

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        return {known: name for (known, _), name in self._meta.needs().items()}.get(tag, "")

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        return self._meta.dictionary(number)


def _runs_of_row(first: int, row: memoryview, entry: int) -> list[Run]:
    """The runs of a row of the index from ``entry`` on; none where it ends before. As storage.index.unpack_row, without
    an object for each: where topics take turns, every run is an entry.

    Raises ValueError and IndexError where it is damaged.
    """
    words = unpack(f">{len(row) // 4}I", row)
    found: list[Run] = []
    at = 0
    while at < len(words):
        count = words[at + 2]
        end = at + 3 + count
        if not count or end > len(words):
            raise ValueError(f"{count} offsets in {len(row)} bytes")
        if first + count > entry:
            begin = at + 3 + max(entry - first, 0)
            found.append((words[at] << 32 | words[at + 1], max(entry, first), words[begin:end]))
        at = end
        first += count
    return found


class _Pending(NamedTuple):
    """An entry that is to be unpacked: its place in the list, and what its header says."""

    at: int
    compressed: Compressed
    flags: int
    checksum: int


class _Volume:
    """One volume, be it still written or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # 0: as large as the writer has it.
        self._env = open_environment(path, 0, beside=True)
        try:
            self._log, self._index, self._mark = (
                self._env.open_db(name, create=False) for name in (b"log", b"index", b"mark")
            )
            self._file = (path / DATA_FILE).stat().st_ino
        except BaseException:
            self._env.close()
            raise
        self._runs = UnindexedRuns()
        self._known = 0
        """The last batch that is in ``_runs`` or covered by the index."""

    def close(self) -> None:
        """Let go of it."""
        self._env.close()

    def is_removed(self) -> bool:
        """Whether its file is not there any more."""
        try:
            return (self.path / DATA_FILE).stat().st_ino != self._file
        except OSError:
            return True

    def take(self, ledger: int, first: int, last: int, unpacker: RestUnpacker) -> tuple[list[Entry], int] | None:
        """Entries from ``first`` on, and where to go on; None where that one is not here.

        Raises EntryDamaged where not even the first can be given, PersistenceError, lmdb.Error.
        """
        taking = _Taking(ledger, first, last)
        with self._begin() as txn:
            while taking.open:
                runs = self._find(txn, ledger, taking.next)
                if not runs:
                    break
                taking.take(runs, lambda position: txn.get(LOG_KEY.pack(position), db=self._log))
        if taking.next == first:
            return None
        found = taking.entries(unpacker)
        return found, taking.next

    def has(self, ledger: int, entry: int) -> bool:
        """Whether an entry is here."""
        with self._begin() as txn:
            return bool(self._find(txn, ledger, entry))

    def sweep(self, wants: Mapping[int, Want], unpacker: RestUnpacker) -> Iterator[tuple[int, list[Entry], int]]:
        """What of ``wants`` is here, as Store.sweep gives it. Raises as ``take`` does."""
        runs = self._sorted_runs(wants)
        at = 0
        while at < len(runs):
            takings: dict[int, _Taking] = {}
            size = rows = 0
            with self._begin() as txn:
                position, value = -1, None
                while at < len(runs) and size < SWEEP_BYTES and rows < SWEEP_ROWS:
                    its_position, number, first, offsets = runs[at]
                    at += 1
                    if its_position != position:
                        position, value = its_position, txn.get(LOG_KEY.pack(its_position), db=self._log)
                    taking = takings.get(number)
                    if taking is None:
                        taking = takings[number] = _Taking(wants[number].ledger, first, wants[number].last)
                    if value is None or taking.next != first:
                        raise EnvironmentDamaged(f"{self.path}: batch {position} is not what the index says")
                    before = taking.size
                    taking.take_of(value, offsets)
                    size += taking.size - before
                    rows += len(offsets)
            for number, taking in takings.items():
                end = taking.next
                found = taking.entries(unpacker)
                yield number, found, taking.next
                if taking.next != end:
                    raise EnvironmentDamaged(f"{self.path}: entry {taking.next} is damaged")

    def _sorted_runs(self, wants: Mapping[int, Want]) -> list[tuple[int, int, int, Sequence[int]]]:
        """Of all ``wants``: the batch, the number of the want, the first entry, and where entries start."""
        found: list[tuple[int, int, int, Sequence[int]]] = []
        with self._begin() as txn:
            for number, (ledger, begin, last) in wants.items():
                entry = begin
                while entry <= last and (runs := self._find(txn, ledger, entry)):
                    found += [
                        (position, number, first, offsets[: last - first + 1])
                        for position, first, offsets in runs
                        if first <= last
                    ]
                    entry = runs[-1][1] + len(runs[-1][2])
        found.sort(key=_batch_and_want)
        return found

    def _begin(self) -> "Txn":
        for _ in range(_TRIES):
            try:
                return self._env.begin(buffers=True)
            except lmdb.MapResizedError:
                self._env.set_mapsize(0)
            except lmdb.ReadersFullError:
                if not self._env.reader_check():
                    raise
        return self._env.begin(buffers=True)

    def _find(self, txn: "Txn", ledger: int, entry: int) -> list[Run]:
        with txn.cursor(db=self._index) as cursor:
            if seek_at_or_before(cursor, INDEX_KEY.pack(ledger, entry)):
                found, first = INDEX_KEY.unpack(cursor.key())
                if found == ledger:
                    try:
                        runs = _runs_of_row(first, cursor.value(), entry)
                    except (IndexError, ValueError, error_of_struct) as error:
                        raise EnvironmentDamaged(f"{self.path}: the index row of {ledger}:{first}: {error}") from error
                    if runs:
                        return runs
        known = self._runs.find(ledger, entry, _RUNS_AT_ONCE)
        if not known and self._look_behind_the_mark(txn):
            known = self._runs.find(ledger, entry, _RUNS_AT_ONCE)
        return [(each.position, each.first_entry, each.offsets) for each in known]

    def _look_behind_the_mark(self, txn: "Txn") -> bool:
        """Take over the batches that no row of the index covers yet; whether there were any."""
        indexed = LOG_KEY.unpack(txn.get(INDEXED, LOG_KEY.pack(0), db=self._mark))[0]
        if indexed >= self._known or self._runs.entries > _FORGET:
            self._runs, self._known = UnindexedRuns(), indexed
        found = False
        with txn.cursor(db=self._log) as cursor:
            if not cursor.set_range(LOG_KEY.pack(self._known + 1)):
                return False
            for key, value in cursor:
                try:
                    check_batch(value)
                except PersistenceError as error:
                    raise EnvironmentDamaged(f"{self.path}: {error}") from error
                self._known = LOG_KEY.unpack(key)[0]
                self._runs.add(self._known, runs_of(value))
                found = True
        return found


class _Taking:
    """The entries of one answer."""

    def __init__(self, ledger: int, first: int, last: int) -> None:
        self.next = first
        self.open = True
        self._first = first
        self._ledger = ledger
        self._last = last
        self._found: list[Entry] = []
        self._pending: list[_Pending] = []
        self.size = 0

    def take(self, runs: list[Run], value_at: Callable[[int], memoryview | None]) -> None:
        """Take from these runs, which begin with the next entry, until there is enough."""
        for position, first, offsets in runs:
            value = value_at(position)
            wanted = offsets[: self._last - first + 1]
            try:
                if value is None:
                    raise PersistenceError(f"batch {position} is missing")
                self.take_of(value, wanted)
            except EntryDamaged as error:
                self._end(error)
            except Exception as error:  # what is not what the index says; struct.error has no other name in C
                self._end(EntryDamaged(self._ledger, self.next, first + len(offsets) - 1, str(error)))
            if self.next > self._last or self.size >= BYTES_MAX or len(self._found) >= ROWS_MAX:
                self.open = False
            if not self.open:
                return

    def _end(self, error: EntryDamaged) -> None:
        self.open = False
        if not self._found:
            raise error

    def take_of(self, value: memoryview, offsets: Sequence[int]) -> None:
        """Take the next entries, whose records start there. Raises EntryDamaged, PersistenceError, struct.error."""
        ledger, found, entry = self._ledger, self._found, self.next
        append = found.append
        size = 0
        try:
            for offset in offsets:
                (
                    kind,
                    flags,
                    header_size,
                    body_size,
                    its_ledger,
                    its_entry,
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    checksum,
                    codec,
                ) = _header(value, offset)
                start = offset + header_size
                body = bytes(value[start : start + body_size])
                if its_entry != entry or its_ledger != ledger or kind != _ENTRY or len(body) != body_size:
                    raise PersistenceError(f"the index leads to entry {its_ledger}:{its_entry}")
                if codec:
                    compressed = compressed_as(value, offset)
                    assert compressed is not None
                    self._pending.append(_Pending(len(found), compressed, flags, checksum))
                    size += compressed.size
                elif flags & _CHECKSUM:
                    if extend_bytes(0, body[6:]) != checksum or _head(body) != (MAGIC, checksum):
                        raise _damaged(ledger, entry)
                elif flags & _OWN_CHECKSUM and extend_bytes(0, body) != checksum:
                    raise _damaged(ledger, entry)
                size += body_size
                if flags & _MARKER:
                    body = b""
                append((ledger, entry, body))
                entry += 1
        finally:
            self.next = entry
            self.size += size

    def entries(self, unpacker: RestUnpacker) -> list[Entry]:
        """What was taken, unpacked, without markers; it ends before one that is damaged.

        Raises EntryDamaged where that is the first, NotInPlace.
        """
        if self._pending:
            try:
                self._unpack(unpacker)
            except EntryDamaged as error:
                self.next = error.first
                del self._found[error.first - self._first :]
                if not self._found:
                    raise
        return [entry for entry in self._found if entry[2]]

    def _unpack(self, unpacker: RestUnpacker) -> None:
        groups: dict[tuple[bytes, int], list[_Pending]] = {}
        damage: EntryDamaged | None = None
        for each in self._pending:
            groups.setdefault((each.compressed.tag, each.compressed.dictionary), []).append(each)
        for (tag, dictionary), group in groups.items():
            packed = [self._found[each.at][2] for each in group]
            bodies: Sequence[bytes | EntryDamaged]
            try:
                bodies = unpacker.unpack(tag, dictionary, packed, [each.compressed.size for each in group])
            except NotNow as error:
                raise NotInPlace(str(error)) from error
            except NotUnpacked:
                bodies = [self._unpacked(unpacker, each) for each in group]
            for each, body in zip(group, bodies, strict=True):
                ledger, entry, _ = self._found[each.at]
                if isinstance(body, EntryDamaged) or not _is_whole(each, body):
                    found = body if isinstance(body, EntryDamaged) else _damaged(ledger, entry)
                    if damage is None or found.first < damage.first:
                        damage = found
                else:
                    self._found[each.at] = (ledger, entry, body)
        if damage is not None:
            raise damage

    def _unpacked(self, unpacker: RestUnpacker, pending: _Pending) -> bytes | EntryDamaged:
        ledger, entry, packed = self._found[pending.at]
        tag, size, dictionary = pending.compressed
        try:
            return unpacker.unpack(tag, dictionary, [packed], [size])[0]
        except NotUnpacked as error:
            return EntryDamaged(ledger, entry, entry, str(error))


def _is_whole(pending: _Pending, body: bytes) -> bool:
    if pending.flags & _CHECKSUM:
        return crc32c(body[6:]) == pending.checksum and _head(body) == (MAGIC, pending.checksum)
    return not pending.flags & _OWN_CHECKSUM or crc32c(body) == pending.checksum


def compacted(entries: list[Entry]) -> list[Entry]:
    """Entries of a compacted ledger under the ids that they were published with."""
    size = COMPACTED_PREFIX.size
    return [(*COMPACTED_PREFIX.unpack_from(body)[:2], body[size:]) for _, _, body in entries]


def _batch_and_want(run: tuple[int, int, int, Sequence[int]]) -> tuple[int, int, int]:
    return run[:3]


def _damaged(ledger: int, entry: int) -> EntryDamaged:
    return EntryDamaged(ledger, entry, entry, "its bytes do not match its checksum")


def _name(number: int) -> str:
    return f"packed/{number - PACKED:08d}" if number >= PACKED else f"volumes/{number:08d}"


def _check(path: Path, instance: str) -> None:
    if not instance:
        raise NotInPlace("the box keeps its data in memory, or is none")
    try:
        known = json.loads((path / INSTANCE).read_bytes())
        if str(known["instance"]) != instance:
            raise NotInPlace(f"{path} is the data directory of another box: {known['instance']}, not {instance}")
        version = int(known["format"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotInPlace(f"{path} cannot be read as a data directory: {error}") from None
    if version not in (FORMAT_VERSION, FORMAT_COMPRESSED):
        raise NotInPlace(f"{path} has format {version}, this version of pulsarbox reads {FORMAT_COMPRESSED}")


class _OfProcess:
    """What this process has opened: LMDB lets it open an environment only once, and never use one of its parent's."""

    def __init__(self) -> None:
        self._pid = 0
        self._stores: dict[str, Store] = {}

    def store(self, directory: str, instance: str) -> Store:
        """The store of a data directory. Raises NotInPlace."""
        if self._pid != os.getpid():
            for store in self._stores.values():
                store.close()  # as the parent has opened it: that one keeps its own
            self._stores, self._pid = {}, os.getpid()
        path = str(Path(directory).expanduser().resolve())
        known = self._stores.get(path)
        if known is not None and known.instance != instance:
            self._stores.pop(path).close()
            known = None
        if known is None:
            known = self._stores[path] = Store(Path(path), instance)
        known.forget_removed()
        return known


_of_process: Final = _OfProcess()


def store_of(directory: str, instance: str) -> Store:
    """The store of a data directory, opened once a process. Raises NotInPlace."""
    return _of_process.store(directory, instance)


def close_all() -> None:
    """Let go of all that this process has opened."""
    for store in _of_process._stores.values():
        store.close()
    _of_process._stores.clear()
