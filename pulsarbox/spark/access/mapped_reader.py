"""Reader of a data directory that another process serves: its LMDB environments, mapped read-only.

The box determines which entries may be read (``Segment``); the tables of ``meta`` locate them. Those are consulted
again whenever an entry has moved, as volumes are sealed, packed and removed concurrently. Nothing is written except a
slot in LMDB's reader table. Read transactions are short, so pages are reclaimed soon. A killed process leaves its slot
behind; the box clears it at its next checkpoint.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from struct import error as error_of_struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import lmdb

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.registry import get
from pulsarbox.spark.access.extractor import Entry, Extractor, NotInPlace, Run, position_in_row, runs_of_row, take_batch
from pulsarbox.spark.access.volume_blocks import BatchWalk, Block, WantedEntries
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.entry_index import IndexSegment, UnindexedRuns, runs_of
from pulsarbox.storage.format import ENSEMBLE, INDEX_KEY, LOG_KEY, PACKED
from pulsarbox.storage.lmdb.directory import DATA_FILE, EnvironmentDamaged, read_identity
from pulsarbox.storage.lmdb.environment import is_damage, open_environment
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.volume import INDEXED, seek_at_or_before
from pulsarbox.storage.record import (
    check_batch,
)

if TYPE_CHECKING:
    Txn = lmdb.Transaction[memoryview]

SWEEP_ROWS: Final = 8192
SWEEP_BYTES: Final = 8 << 20
"""Size limit of one step of a sweep, with SWEEP_ROWS."""
SPARSE_ROWS: Final = 2048
"""Unwanted records to skip before reconsidering whether the walk is worthwhile."""
NEAR: Final = 16
"""Batches to walk through even if they hold few wanted records."""
BLOCK_BYTES: Final = 1 << 20
"""Bytes of batches to process together, unless a single batch is larger."""
OPEN_MAX: Final = 8
"""Volumes open at once."""
_WORTH: Final = 4
"""A walk through batches requires that one record in this many is wanted, and starts where one ledger in this many has
begun. Otherwise the index locates the records."""
_TRIES: Final = 4
_POSITION_MAX: Final = 1 << 64
_NO_RUNS: Final[list[Run]] = []
_RUNS_AT_ONCE: Final = 256
_FORGET: Final = 200_000
"""Unindexed entries kept in memory before the runs are rebuilt."""
_T = TypeVar("_T")


class Want(NamedTuple):
    """Requested entries of one ledger."""

    ledger: int
    first: int
    last: int
    whole: bool = True
    """Whether all messages of these entries are requested."""


Piece = Block | tuple[int, list[Entry], int]
"""Result of one step: a block of entries of several wants; or a want's number, some of its entries, and the next entry.
The latter, without entries, also follows the last block of a want."""


class Gone(PersistenceError):
    """No volume has the next entry."""


class MappedStore:
    """Data directory that another process serves."""

    def __init__(self, path: Path, instance: str, plugins: str = "") -> None:
        """Open ``meta``; ``plugins`` is the codec directory. Raises NotInPlace if unreadable or of another box."""
        self.path = path
        self.plugins = plugins
        self.instance = instance
        _check(path, instance)
        self._volumes: OrderedDict[int, _Volume] = OrderedDict()
        try:
            self._meta = MetaEnvironment(path / "meta", beside=True)
        except (lmdb.Error, OSError, PersistenceError) as error:
            raise NotInPlace(f"{path / 'meta'} cannot be read in place: {error}") from error
        self._unpacker = RestUnpacker(
            RestCodecs(partial(get, directory=Path(plugins) if plugins else None)), _Codecs(self._meta)
        )

    def close(self) -> None:
        """Close all environments."""
        for volume in self._volumes.values():
            volume.close()
        self._volumes.clear()
        self._meta.close()

    def forget_removed(self) -> None:
        """Close volumes whose files were deleted, to free their disk space."""
        for number in [number for number, volume in self._volumes.items() if volume.is_removed()]:
            self._volumes.pop(number).close()

    def read(self, ledger: int, first: int, last: int) -> tuple[list[Entry], int]:
        """Return entries from ``first`` on, up to ROWS_MAX or BYTES_MAX, at least one, and the next entry to read.

        Raises EntryDamaged if the first one is damaged, Gone, NotInPlace.
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
        raise Gone(f"no volume has entry {ledger}:{first}")

    def sweep(self, wants: Mapping[int, Want]) -> Iterator[Piece]:
        """Yield entries of several ledgers in disk order. Each batch is looked up once, however many ledgers share it.

        A want ends early at any error, for ``read`` to report. Raises NotInPlace.
        """
        left = dict(wants)
        while left:
            volumes: dict[int, list[int]] = {}
            unsealed: list[tuple[int, int]] = []
            for number, want in list(left.items()):
                volume = self._volume_of(want, unsealed)
                if volume is None:
                    del left[number]
                else:
                    volumes.setdefault(volume, []).append(number)
            if not volumes:
                return
            first = min(volumes)
            here = {number: left[number] for number in volumes[first]}
            ends: dict[int, int] = {}
            try:
                for piece in self._open(first).sweep(here, self._unpacker):
                    yield piece
                    if not isinstance(piece, Block):
                        ends[piece[0]] = piece[2]
            except NotInPlace:
                raise
            except (PersistenceError, lmdb.Error, OSError, ValueError, IndexError, error_of_struct):
                for number in here:
                    del left[number]
                continue
            for number, before in here.items():
                end = ends.get(number, before.first)
                if before.first < end <= before.last:
                    left[number] = before._replace(first=end)
                else:
                    del left[number]

    def _volume_of(self, want: Want, unsealed: list[tuple[int, int]]) -> int | None:
        """Return a volume that may have the next entry; None if none does. ``unsealed`` caches the unsealed volumes."""
        places = self._places(want.ledger, want.first, unsealed)
        if len(places) == 1:  # reading will show whether the volume has the entry
            return places[0][0]
        for number, _ in places:
            try:
                if self._open(number).has(want.ledger, want.first):
                    return number
            except (FileNotFoundError, PersistenceError, lmdb.Error, OSError):
                continue
        return None

    def _places(self, ledger: int, entry: int, unsealed: list[tuple[int, int]] | None = None) -> list[tuple[int, int]]:
        """Return the volumes that may hold an entry, each with the end of its range. ``unsealed``, if given, caches the
        unsealed volumes across calls."""
        try:
            stretch = self._asked(lambda: self._meta.stretch_of(ledger, entry))
            if stretch is not None:
                return [(stretch.volume, stretch.end)]
            if unsealed:
                return unsealed
            sealed = self._asked(self._meta.marks)[1]
            numbers = [int(path.name) for path in (self.path / "volumes").iterdir() if path.name.isdigit()]
        except (lmdb.Error, OSError) as error:
            raise NotInPlace(f"{self.path} cannot be read in place: {error}") from error
        found = unsealed if unsealed is not None else []
        found += [(number, 1 << 62) for number in sorted(numbers, reverse=True) if number > sealed]
        return found

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
    """Codec names and dictionaries from the tables of ``meta``: implements StoredCodecs."""

    def __init__(self, meta: MetaEnvironment) -> None:
        self._meta = meta

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        return {known: name for (known, _), name in self._meta.needs().items()}.get(tag, "")

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        return self._meta.dictionary(number)


class _Volume:
    """One volume, sealed or open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # 0 adopts the map size of the writer.
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
        """The last batch in ``_runs`` or covered by the index."""

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def is_removed(self) -> bool:
        """Return whether its file was deleted."""
        try:
            return (self.path / DATA_FILE).stat().st_ino != self._file
        except OSError:
            return True

    def take(self, ledger: int, first: int, last: int, unpacker: RestUnpacker) -> tuple[list[Entry], int] | None:
        """Return entries from ``first`` on and the next entry to read; None if the volume does not have the first.

        Raises EntryDamaged if the first one is damaged, PersistenceError, lmdb.Error.
        """
        taking = Extractor(ledger, first, last)
        with self._begin() as txn:
            while taking.open:
                runs = self._find(txn, ledger, taking.next)
                if not runs:
                    break
                taking.extract(runs, lambda position: txn.get(LOG_KEY.pack(position), db=self._log))
        if taking.next == first:
            return None
        found = taking.entries(unpacker)
        return found, taking.next

    def has(self, ledger: int, entry: int) -> bool:
        """Return whether the volume has an entry."""
        with self._begin() as txn:
            return self._position(txn, ledger, entry) >= 0

    def sweep(self, wants: Mapping[int, Want], unpacker: RestUnpacker) -> Iterator[Piece]:
        """Yield the wanted entries in this volume, as Store.sweep does. Raises as ``take`` does."""
        left = dict(wants)
        begin = yield from self._until_many_begin(left, unpacker)
        is_worth = yield from self._blocks(left, begin)
        for walk in (self._walk, self._by_index) if is_worth else (self._by_index,):
            yield from _unpacked(walk(_not_over(left)), left, unpacker)

    def _until_many_begin(self, wants: dict[int, Want], unpacker: RestUnpacker) -> Generator[Piece, None, int]:
        """Yield entries of the few ledgers that begin well before the others; return the position where many begin, or
        -1 if none does. ``wants`` is updated to the rest."""
        numbers, positions = self._firsts({number: want for number, want in wants.items() if want.whole})
        there = sorted(position for position in positions if position >= 0)
        many = there[(len(there) - 1) // _WORTH] if there else -1
        if not there or many - there[0] <= NEAR:
            return there[0] if there else -1
        both = zip(numbers.values(), positions, strict=True)
        early = {number: wants[number] for number, position in both if 0 <= position < many}
        yield from _unpacked(self._by_index(early, many), wants, unpacker)
        return many

    def _firsts(self, wants: Mapping[int, Want]) -> tuple[dict[int, int], list[int]]:
        """Return the want numbers by ledger (see ``_numbers_of``), and the position of each first entry, or -1."""
        numbers = _numbers_of(wants)
        with self._begin() as txn:
            return numbers, [self._position(txn, ledger, wants[number].first) for ledger, number in numbers.items()]

    def _blocks(self, wants: dict[int, Want], position: int) -> Generator[Piece, None, bool]:
        """Yield entries batch by batch from ``position`` on while enough are wanted; return whether they were to the
        end. ``wants`` is updated to the rest. Entries may remain even so."""
        numbers = _numbers_of({number: want for number, want in _not_over(wants).items() if want.whole})
        walk = BatchWalk(
            {wants[number].ledger: WantedEntries(number, *wants[number][1:3]) for number in numbers.values()}
        )
        taken = before = 0
        is_worth = True
        try:
            while position >= 0 and is_worth and not walk.is_over:
                data, ends, position = self._joined(position)
                block = walk.collect(data, ends)
                if block.entries:
                    yield block
                taken += len(block.entries)
                others = walk.others - before
                if others > SPARSE_ROWS:
                    if position >= 0 and taken * (_WORTH - 1) < others:
                        nearest = self._nearest(walk.nexts)
                        is_worth, position = nearest > position, max(nearest, position)
                    taken, before = 0, walk.others
        except (PersistenceError, lmdb.Error, OSError, error_of_struct):
            pass  # the following reads meet the error too
        for number, end in walk.ends.items():
            wants[number] = wants[number]._replace(first=end)
            yield number, [], end
        return is_worth

    def _nearest(self, entries: Iterable[tuple[int, int]]) -> int:
        """Return the lowest position of these entries; -1 if the index lacks one."""
        with self._begin() as txn:
            found = [self._by_row(txn, ledger, entry, position_in_row) for ledger, entry in entries]
        return min((-1 if position is None else position for position in found), default=-1)

    def _joined(self, position: int) -> tuple[bytes, list[int], int]:
        """Return consecutive batches from ``position`` on, joined, the end of each, and the next position or -1."""
        parts: list[memoryview] = []
        ends: list[int] = []
        size = 0
        with self._begin() as txn, txn.cursor(db=self._log) as cursor:
            found = iter(cursor) if cursor.set_range(LOG_KEY.pack(position)) else iter(())
            position = -1
            for key, value in found:
                if size >= BLOCK_BYTES:
                    position = int(LOG_KEY.unpack(key)[0])
                    break
                parts.append(value)
                size += len(value)
                ends.append(size)
            return b"".join(parts), ends, position

    def _walk(self, wants: Mapping[int, Want]) -> Iterator[tuple[int, Extractor]]:
        """Yield entries batch by batch, including unusual ones."""
        numbers, positions = self._firsts(wants)
        position = _least(positions)
        firsts = {ledger: wants[number].first for ledger, number in numbers.items()}
        while firsts and position >= 0:
            takings = {each: Extractor(each, first, wants[numbers[each]].last) for each, first in firsts.items()}
            open_ones = dict(takings)
            position = self._step(open_ones, position)
            firsts = {ledger: taking.next for ledger, taking in open_ones.items()}
            yield from ((numbers[ledger], taking) for ledger, taking in takings.items() if taking.rows)

    def _step(self, takings: dict[int, Extractor], position: int) -> int:
        """Collect from batches from ``position`` on until the step is full; return the next position, or -1 at the end
        or if few records were wanted."""
        size = rows = records = 0
        with self._begin() as txn, txn.cursor(db=self._log) as cursor:
            if not cursor.set_range(LOG_KEY.pack(position)):
                return -1
            for key, value in cursor:
                if not takings:
                    return -1
                if size >= SWEEP_BYTES or rows >= SWEEP_ROWS:
                    return int(LOG_KEY.unpack(key)[0])
                seen, taken = take_batch(bytes(value), takings)
                size, rows, records = size + len(value), rows + taken, records + seen
                if records > SWEEP_ROWS and rows * _WORTH < records:
                    return -1
        return -1

    def _by_index(self, wants: Mapping[int, Want], before: int = _POSITION_MAX) -> Iterator[tuple[int, Extractor]]:
        """Yield entries located by the index, from batches before a position."""
        runs = self._sorted_runs(wants, before)
        at = 0
        while at < len(runs):
            takings: dict[int, Extractor] = {}
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
                        taking = takings[number] = Extractor(wants[number].ledger, first, wants[number].last)
                    if value is None or taking.next != first:
                        raise EnvironmentDamaged(f"{self.path}: batch {position} does not match the index")
                    before = taking.size
                    taking.extract_at(value, offsets)
                    size += taking.size - before
                    rows += len(offsets)
            yield from takings.items()

    def _sorted_runs(self, wants: Mapping[int, Want], before: int) -> list[tuple[int, int, int, Sequence[int]]]:
        """Return runs of all ``wants`` before a position, sorted: position, want number, first entry, offsets."""
        found: list[tuple[int, int, int, Sequence[int]]] = []
        with self._begin() as txn:
            for number, (ledger, begin, last, _) in wants.items():
                entry, runs = begin, _NO_RUNS
                while entry <= last and (not runs or runs[-1][0] < before) and (runs := self._find(txn, ledger, entry)):
                    found += [
                        (position, number, first, offsets[: last - first + 1])
                        for position, first, offsets in runs
                        if first <= last and position < before
                    ]
                    entry = runs[-1][1] + len(runs[-1][2])
        found.sort()  # the first three elements are unique
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
        found = self._by_row(txn, ledger, entry, runs_of_row)
        if found:
            return found
        return [(each.position, each.first_entry, each.offsets) for each in self._unindexed(txn, ledger, entry)]

    def _position(self, txn: "Txn", ledger: int, entry: int) -> int:
        """Return the position of the batch with an entry; -1 if none."""
        found = self._by_row(txn, ledger, entry, position_in_row)
        if found is not None and found >= 0:
            return found
        return next((each.position for each in self._unindexed(txn, ledger, entry)), -1)

    def _by_row(self, txn: "Txn", ledger: int, entry: int, ask: Callable[[int, memoryview, int], _T]) -> _T | None:
        with txn.cursor(db=self._index) as cursor:
            if seek_at_or_before(cursor, INDEX_KEY.pack(ledger, entry)):
                found, first = INDEX_KEY.unpack(cursor.key())
                if found == ledger:
                    try:
                        return ask(first, cursor.value(), entry)
                    except (IndexError, ValueError, error_of_struct) as error:
                        raise EnvironmentDamaged(f"{self.path}: the index row of {ledger}:{first}: {error}") from error
        return None

    def _unindexed(self, txn: "Txn", ledger: int, entry: int) -> list[IndexSegment]:
        known = self._runs.find(ledger, entry, _RUNS_AT_ONCE)
        if not known and self._index_tail(txn):
            known = self._runs.find(ledger, entry, _RUNS_AT_ONCE)
        return known

    def _index_tail(self, txn: "Txn") -> bool:
        """Index the batches after the index mark in memory; return whether there were any."""
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


def _unpacked(
    found: Iterable[tuple[int, Extractor]], wants: dict[int, Want], unpacker: RestUnpacker
) -> Iterator[Piece]:
    """Yield the collected entries, decompressed, and update ``wants`` to the rest. Raises EnvironmentDamaged after the
    intact entries, and NotInPlace."""
    for number, taking in found:
        end = taking.next
        entries = taking.entries(unpacker)
        wants[number] = wants[number]._replace(first=taking.next)
        yield number, entries, taking.next
        if taking.next != end:
            raise EnvironmentDamaged(f"entry {taking.next} is damaged")


def _numbers_of(wants: Mapping[int, Want]) -> dict[int, int]:
    """Return the want number by ledger; the earliest if several share it."""
    numbers: dict[int, int] = {}
    for number in sorted(wants, key=lambda number: wants[number].first):
        numbers.setdefault(wants[number].ledger, number)
    return numbers


def _not_over(wants: Mapping[int, Want]) -> dict[int, Want]:
    return {number: want for number, want in wants.items() if want.first <= want.last}


def _least(positions: Iterable[int]) -> int:
    """Return the lowest valid position; -1 if none."""
    return min((position for position in positions if position >= 0), default=-1)


def _name(number: int) -> str:
    return f"packed/{number - PACKED:08d}" if number >= PACKED else f"volumes/{number:08d}"


def _check(path: Path, instance: str) -> None:
    if not instance:
        raise NotInPlace("the broker keeps its data in memory, or is not a box")
    try:
        known = read_identity(path).instance
    except (OSError, PersistenceError) as error:
        raise NotInPlace(f"{path} cannot be read as a data directory: {error}") from None
    if known != instance:
        raise NotInPlace(f"{path} is the data directory of another box: {known}, not {instance}")
    if (path / ENSEMBLE).exists():
        raise NotInPlace(f"{path} is one of several data directories of its box, and each has only some of the entries")


class _OfProcess:
    """Stores opened by this process: LMDB permits opening an environment once per process and never across a fork."""

    def __init__(self) -> None:
        self._pid = 0
        self._stores: dict[str, MappedStore] = {}

    def store(self, directory: str, instance: str, plugins: str) -> MappedStore:
        """Return the store of a data directory, opened on first use. Raises NotInPlace."""
        if self._pid != os.getpid():
            for store in self._stores.values():
                store.close()  # inherited from the parent, which keeps its own
            self._stores, self._pid = {}, os.getpid()
        path = str(Path(directory).expanduser().resolve())
        known = self._stores.get(path)
        if known is not None and (known.instance, known.plugins) != (instance, plugins):
            self._stores.pop(path).close()
            known = None
        if known is None:
            known = self._stores[path] = MappedStore(Path(path), instance, plugins)
        known.forget_removed()
        return known


_of_process: Final = _OfProcess()


def store_of(directory: str, instance: str, plugins: str = "") -> MappedStore:
    """Return this process's store of a data directory. ``plugins``: see Store. Raises NotInPlace."""
    return _of_process.store(directory, instance, plugins)


def close_all() -> None:
    """Close all stores of this process."""
    for store in _of_process._stores.values():
        store.close()
    _of_process._stores.clear()
