"""Copies of entries from another data directory: stored in a packed volume, which the tables list once it is complete.

The batches in it have the positions of those that the entries are from, so that packing may merge them with others.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from pulsarbox.storage.entry_index import VolumeRun
from pulsarbox.storage.lmdb.coverage import coverage, missing
from pulsarbox.storage.lmdb.environment import disk_bytes, make_environment, publish_environment
from pulsarbox.storage.lmdb.meta_environment import VolumeContent
from pulsarbox.storage.lmdb.volume import Volume
from pulsarbox.storage.lmdb.volume_set import VolumeSet
from pulsarbox.storage.packing.listing import list_packed
from pulsarbox.storage.packing.live_records import LiveRecord
from pulsarbox.storage.record import Entry, pack_entry, verify_entry

_SLICE: Final = 4 << 20
"""Bytes copied between two syncs."""


class AdoptedRun(Protocol):
    """Consecutive entries of a ledger that are in the batch at ``position``."""

    @property
    def position(self) -> int:
        """The position of the batch in the log of the box."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries as clients sent them."""


class Adoption:
    """Stores copies in new volumes, each complete and durable before it is listed."""

    def __init__(self, volumes: VolumeSet, next_packed: Iterator[int], tables: AbstractContextManager[object]) -> None:
        """``next_packed`` yields numbers of new packed volumes; ``tables`` is held while the tables change."""
        self._volumes = volumes
        self._next_packed = next_packed
        self._tables = tables

    def adopt(self, copies: Iterable[AdoptedRun]) -> int:
        """Store copies; return the bytes of those that were missing. Copies of a ledger come in order.

        Raises PersistenceError, lmdb.Error, OSError; volumes completed by then stay.
        """
        waiting = iter(copies)
        total = 0
        for first in waiting:
            total += self._store(first, waiting)
        return total

    def _store(self, first: AdoptedRun, waiting: Iterator[AdoptedRun]) -> int:
        """Store copies until a volume is full."""
        volumes = self._volumes
        number = next(self._next_packed)
        path = volumes.directory.volume(number)
        new = make_environment(path, Volume.TABLES)
        try:
            target = _Target(new, volumes)
            try:
                target.fill(first, waiting)
            finally:
                target.volume.close()
            volumes.step("copies written")
            with self._tables:
                return self._list(number, new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _list(self, number: int, new: Path, target: "_Target") -> int:
        volumes = self._volumes
        wanted = list(self._missing(number, target.runs))
        if not wanted:
            return 0
        path = volumes.directory.volume(number)
        content = VolumeContent(*target.positions, disk_bytes(new), 0, 0)
        publish_environment(new, path)
        volumes.step("copies renamed")
        list_packed(volumes, number, lambda meta: meta.add_packed(number, content, wanted))
        volumes.step("copies listed")
        return sum(one.bytes for one in wanted)

    def _missing(self, number: int, runs: list[VolumeRun]) -> Iterator[VolumeRun]:
        """Yield the stretches to list: what no other volume has."""
        known = coverage(self._volumes, sorted({one.ledger_id for one in runs}))
        for one in runs:
            for first, end in missing((one.first, one.end), known.get(one.ledger_id, ())):
                size = one.bytes * (end - first) // one.entries
                yield VolumeRun(one.ledger_id, first, number, end - first, size)


class _Target:
    """The volume being written."""

    def __init__(self, path: Path, volumes: VolumeSet) -> None:
        self.volume = Volume(path, volumes.sizes.map, volumes.sizes.flush_at)
        self.positions = 0, 0
        self.runs: list[VolumeRun] = []
        """The runs written so far; those of each ledger are in order."""
        self._room = volumes.sizes.volume
        self._ends: dict[int, int] = {}
        """Index of the last run of a ledger."""
        self._written = 0

    def fill(self, first: AdoptedRun, waiting: Iterator[AdoptedRun]) -> None:
        """Take copies until the volume is full, and complete it."""
        records: dict[int, list[LiveRecord]] = {}
        size = self._take(first, records)
        while self._written + size < self._room and (copies := next(waiting, None)) is not None:
            size += self._take(copies, records)
            if size >= _SLICE:
                self._write(records, size)
                records, size = {}, 0
        self._write(records, size)
        self.volume.flush_index()
        self.volume.note_written(sum(one.bytes for one in self.runs))
        self.positions = self.volume.first_position, self.volume.last_position

    def _take(self, copies: AdoptedRun, records: dict[int, list[LiveRecord]]) -> int:
        size = 0
        for entry in copies.entries:
            verify_entry(entry)
            record = LiveRecord(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
            if self._note(record):
                records.setdefault(copies.position, []).append(record)
                size += record.size
        return size

    def _note(self, record: LiveRecord) -> bool:
        """Extend the runs by an entry; return whether it is new."""
        at = self._ends.get(record.ledger_id)
        last = None if at is None else self.runs[at]
        if last is not None and record.entry_id < last.end:
            return False
        if at is not None and last is not None and record.entry_id == last.end:
            self.runs[at] = last._replace(entries=last.entries + 1, bytes=last.bytes + record.size)
        else:
            self._ends[record.ledger_id] = len(self.runs)
            self.runs.append(VolumeRun(record.ledger_id, record.entry_id, 0, 1, record.size))
        return True

    def _write(self, records: dict[int, list[LiveRecord]], size: int) -> None:
        if records:
            self.volume.merge_packed(records)
            self._written += size
