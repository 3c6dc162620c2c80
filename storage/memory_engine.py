"""The in-memory storage engine of the simulation, as deterministic as the program around it.

To simulate a crash, discard the engine and create a new one on the same disk, which holds what was committed.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from sortedcontainers import SortedDict, SortedSet

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.rest import TAGS, RestCodecs
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.compression.decompressed_cache import DecompressedCache
from pulsarbox.storage.compression.encoder import EntryEncoder, NewDictionaries
from pulsarbox.storage.compression.topic_usage import CompressedTopic, by_owner, topics_of
from pulsarbox.storage.compression.volume_usage import Usage
from pulsarbox.storage.engine import Checkpoint, Compressing, CompressionChoice, ReadRequest, Reclaimed, Recovery
from pulsarbox.storage.entry_index import UnindexedRuns, runs_of
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.packing.live_records import live_entries, put_together, wall_of
from pulsarbox.storage.record import Entry, check_batch

_SEGMENTS_AT_ONCE = 256


class MemoryDisk:
    """The state that survives a crash. ``before_commit`` sees every batch first and may raise to reject it."""

    def __init__(self, before_commit: Callable[[Batch], None] | None = None) -> None:
        self.before_commit = before_commit
        self.log: dict[int, bytes] = {}
        self.index = UnindexedRuns()
        self.rows: SortedDict[bytes, bytes] = SortedDict()
        self.mark = 0
        self.next_position = 1
        """The position of the next batch."""
        self.dropped: set[int] = set()
        self.suspects: SortedSet[int] = SortedSet()
        """Positions of batches that may hold dead entries."""
        self.untried: SortedSet[int] = SortedSet()
        """Positions of batches that may hold entries to compress."""
        self.usage: dict[int, dict[tuple[int, bytes, int], Usage]] = {}
        """Compression result of each batch that was tried."""
        self.generation = 0
        """Generation of the compression choices that ``untried`` refers to."""


class NoMore:
    """StoredCodecs of a store without dictionaries and with built-in codecs only."""

    def name_of(self, tag: bytes) -> str:
        """See StoredCodecs."""
        return ""

    def dictionary(self, number: int) -> Dictionary | None:
        """See StoredCodecs."""
        return None


class _HasRows(Protocol):
    @property
    def rows(self) -> "SortedDict[bytes, bytes]": ...


class MemoryRows:
    """The rows of a disk."""

    def __init__(self, disk: _HasRows) -> None:
        self._disk = disk

    def get(self, key: bytes) -> bytes | None:
        """See Rows."""
        value: bytes | None = self._disk.rows.get(key)
        return value

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See Rows."""
        rows = self._disk.rows
        for key in list(rows.irange(max(prefix, after), inclusive=(after < prefix, True))):
            if not key.startswith(prefix):
                return
            yield key, rows[key]

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows."""
        rows = self._disk.rows
        key = next(rows.irange(prefix, through, reverse=True), None)
        return (key, rows[key]) if key is not None and key.startswith(prefix) else None


class MemoryEngine:
    """An Engine on a MemoryDisk."""

    def __init__(self, disk: MemoryDisk | None = None, codecs: RestCodecs | None = None) -> None:
        """``codecs`` are those that may compress entries; the built-in ones if omitted."""
        self.disk = MemoryDisk() if disk is None else disk
        self.codecs = RestCodecs() if codecs is None else codecs
        self._compressed: tuple[CompressedTopic, ...] = ()
        self._count_again = True
        self._reading = RestUnpacker(self.codecs, NoMore())
        self._unpacked = DecompressedCache()
        self._packing = RestUnpacker(self.codecs, NoMore())

    def recover(self) -> Recovery:
        """Return the content of the disk."""
        disk = self.disk
        batches = self._batches(disk.mark + 1, disk.next_position)
        return Recovery(
            MemoryRows(disk), batches, disk.next_position, lambda: self._compressed, lambda: self._unpacked.use
        )

    def commit(self, batch: Batch) -> None:
        """Store the value of a batch.

        Raises ValueError if its position is not the next, and any exception of the disk's ``before_commit``; nothing of
        the batch is stored then.
        """
        disk = self.disk
        if batch.position != disk.next_position:
            raise ValueError(f"batch {batch.position} was committed, but {disk.next_position} is next")
        if disk.before_commit is not None:
            disk.before_commit(batch)
        disk.log[batch.position] = batch.value()
        disk.next_position += 1
        disk.index.add(batch.position, batch.runs)
        (disk.untried if batch.runs else disk.suspects).add(batch.position)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Engine. Raises ValueError if the batch is not committed."""
        disk = self.disk
        if checkpoint.position >= disk.next_position:
            raise ValueError(f"checkpoint at {checkpoint.position}, but {disk.next_position} is the next batch")
        for key, value in checkpoint.rows.items():
            if value is None:
                disk.rows.pop(key, None)
            else:
                disk.rows[key] = value
        for ledger_id in checkpoint.dropped:
            disk.suspects.update(disk.index.positions(ledger_id))
        disk.dropped.update(checkpoint.dropped)
        disk.mark = checkpoint.position

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine. Every batch counts as a volume; they have too few bodies for a dictionary."""
        disk = self.disk
        if compressing is not None and disk.generation != compressing.generation:
            disk.generation = compressing.generation
            disk.untried = SortedSet(disk.log)
        what, positions = "packed", disk.suspects
        if not positions or positions[0] > disk.mark:
            what, positions = "compressed", disk.untried
            if compressing is None or not positions or positions[0] > disk.mark:
                self._count_compressed()
                return None
        position = positions.pop(0)
        value = disk.log.get(position)
        if value is None:
            return self.reclaim(compressing)
        entries = live_entries(value, lambda ledger_id, _: ledger_id not in disk.dropped)
        for ledger_id in runs_of(value):
            if ledger_id in disk.dropped:
                disk.index.forget(ledger_id)
        name = (f"batches/{position}",)
        self._count_again = True
        disk.usage.pop(position, None)
        if not entries:
            del disk.log[position]
            return Reclaimed("removed", name, len(value), 0)
        choose = _none_wanted if compressing is None else compressing.chooser(MemoryRows(disk))
        press = EntryEncoder(self.codecs, choose, NewDictionaries(_none, 0), self._packing, _unthrottled)
        press.press(entries)
        if press.usage:
            disk.usage[position] = press.usage
        if compressing is not None:
            disk.untried.discard(position)
        packed = put_together(entries, wall_of(value))
        disk.log[position] = packed[0]
        disk.index.replace(position, dict(packed[1]))
        return Reclaimed(what, name, len(value), len(packed[0]))

    def _count_compressed(self) -> None:
        if self._count_again:
            disk = self.disk
            given = [(*key, usage) for of in disk.usage.values() for key, usage in of.items()]
            names = {tag: name for name, tag in TAGS.items()}
            self._compressed = topics_of(given, by_owner(MemoryRows(disk).get), names, {})
            self._count_again = False

    def read(self, request: ReadRequest) -> list[Entry]:
        """Return the requested entries. Raises PersistenceError if the first one cannot be read."""
        answer = Answer(request, self._reading, self._unpacked)
        while answer.open:
            segments = self.disk.index.find(request.ledger_id, answer.next_entry, _SEGMENTS_AT_ONCE)
            if segments:
                answer.collect(segments, self._value)
            else:
                answer.nothing_more()
        return request.answer(answer.entries)

    def check_room(self) -> None:
        """Do nothing: memory is never full."""

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _value(self, position: int) -> bytes:
        value = self.disk.log.get(position)
        if value is None:
            raise PersistenceError(f"batch {position} is missing")
        return value

    def _batches(self, first: int, end: int) -> Iterator[bytes]:
        for position in range(first, end):
            value = self._value(position)
            check_batch(value)
            yield value


def _none_wanted(ledger_id: int) -> CompressionChoice | None:
    return None


def _none(topic_id: int, tag: bytes) -> Dictionary | None:
    return None


def _unthrottled() -> None:
    """Do not throttle."""
