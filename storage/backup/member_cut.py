"""A cut of one of several data directories, read entry by entry."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.backup.cut import Cut, GrowingVolume, SealedVolume
from pulsarbox.storage.backup.entry_files import NeededEntries
from pulsarbox.storage.backup.manifest import BackupError
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.ensemble.member import Piece
from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.format import DICTIONARY_KEY, PACKED, RecordKind
from pulsarbox.storage.inspection.box import OpenEnvironment, number_of, read_tables
from pulsarbox.storage.inspection.scan import batches, entry_ids, records
from pulsarbox.storage.lmdb.directory import DATA_FILE
from pulsarbox.storage.lmdb.meta_environment import unpack_dictionary
from pulsarbox.storage.record import Entry, NotNow, check_batch, unpack_entry

_TABLES_MAX: Final = 16


class HeldVolume(NamedTuple):
    """A volume of a cut."""

    number: int
    last: int
    """The position of its last batch."""
    runs: Sequence[VolumeRun]
    """The entries that the tables list in it; empty for an unsealed one, whose entries are not listed."""
    volume: SealedVolume | GrowingVolume

    @contextmanager
    def open(self) -> Iterator[OpenEnvironment]:
        """Open it. The file may be deleted by now. Raises PersistenceError, lmdb.Error, OSError."""
        if isinstance(self.volume, GrowingVolume):
            yield self.volume.environment
            return
        path = f"/proc/self/fd/{self.volume.descriptor}"
        environment = OpenEnvironment(
            lmdb.open(path, subdir=False, readonly=True, lock=False, create=False, map_size=0, max_dbs=_TABLES_MAX)
        )
        try:
            yield environment
        finally:
            environment.close()


class MemberCut:
    """The tables and volumes of a directory."""

    def __init__(self, cut: Cut, codecs: RestCodecs) -> None:
        """Read the tables; the snapshot of ``meta`` must be held. Raises PersistenceError."""
        self.cut = cut
        tables = read_tables(cut.meta)
        self.mark = tables.mark
        self.runs = [run for run in tables.stretches if run.ledger_id not in tables.dropped]
        """The entries in sealed and packed volumes."""
        runs = {number: list(found) for number, found in groupby(sorted(self.runs, key=_volume_of), _volume_of)}
        self.volumes = [_sealed(each, runs) for each in cut.sealed]
        self.volumes.sort(key=lambda each: (each.number < PACKED, each.number))
        self.volumes += [HeldVolume(each.number, each.last, (), each) for each in cut.growing]
        self._unpacker = RestUnpacker(codecs, _StoredCodecs(cut.meta, {tag: n for (tag, _), n in tables.needs.items()}))

    def pieces(self, volume: HeldVolume, needed: NeededEntries, last: int) -> Iterator[Piece]:
        """Yield the needed entries of a volume that are intact and in batches up to ``last``, in log order.

        Raises PersistenceError, lmdb.Error, OSError.
        """
        with volume.open() as environment:
            for chunk in batches(environment, 0, last):
                for position, value in chunk:
                    for _, entries in groupby(self._intact(value, needed), _Consecutive()):
                        yield Piece(position, list(entries))

    def _intact(self, value: bytes, needed: NeededEntries) -> Iterator[Entry]:
        try:
            check_batch(value)
        except PersistenceError:
            return
        for record in records(value):
            if record.kind == RecordKind.ENTRY and needed.has(*entry_ids(value, record.offset)):
                try:
                    yield unpack_entry(value, record.offset, unpacker=self._unpacker)
                except NotNow as error:
                    raise BackupError(f"{self.cut.path}: {error}") from error
                except PersistenceError:
                    continue

    def log(self, after: int) -> Iterator[tuple[int, bytes]]:
        """Yield the batches after a position. Raises PersistenceError at a damaged one, lmdb.Error, OSError."""
        for volume in self.volumes:
            if volume.number < PACKED and volume.last > after:
                with volume.open() as environment:
                    for chunk in batches(environment, after + 1, volume.last):
                        for position, value in chunk:
                            check_batch(value)
                            yield position, value


class _Consecutive:
    """Key of groupby: changes where the next entry does not follow the last one in the same ledger."""

    def __init__(self) -> None:
        self._next = (-1, -1)
        self._group = 0

    def __call__(self, entry: Entry) -> int:
        if (entry.ledger_id, entry.entry_id) != self._next:
            self._group += 1
        self._next = entry.ledger_id, entry.entry_id + 1
        return self._group


class _StoredCodecs:
    """StoredCodecs read from a snapshot, for use after it."""

    def __init__(self, meta: OpenEnvironment, names: dict[bytes, str]) -> None:
        self._names = names
        self._dictionaries: dict[int, Dictionary] = {}
        for key, value in meta.rows(b"dictionaries"):
            number = DICTIONARY_KEY.unpack(key)[0]
            self._dictionaries[number] = unpack_dictionary(number, value)

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        return self._names.get(tag, "")

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        return self._dictionaries.get(number)


def _volume_of(run: VolumeRun) -> int:
    return run.volume


def _sealed(volume: SealedVolume, runs: dict[int, list[VolumeRun]]) -> HeldVolume:
    number = number_of(volume.path.removesuffix(f"/{DATA_FILE}"))
    return HeldVolume(number, volume.last, runs.get(number, ()), volume)
