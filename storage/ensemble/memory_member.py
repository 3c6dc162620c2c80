"""A member of an ensemble in memory, as deterministic as the program around it.

To simulate a crash, discard the member and create a new one on the same disk. Faults are injected into the disk.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sortedcontainers import SortedDict, SortedSet

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.compression.decompressed_cache import DecompressedCache
from pulsarbox.storage.compression.encoder import EntryEncoder, NewDictionaries
from pulsarbox.storage.engine import Checkpoint, Compressing, CompressionChoice, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.member import NOT_THERE, MemberContent, MemberLate, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.stored_ledgers import is_dropped
from pulsarbox.storage.entry_index import IndexSegment
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.journal import Batch, JournalRun
from pulsarbox.storage.memory_engine import MemoryRows, NoMore
from pulsarbox.storage.packing.live_records import live_entries, put_together, wall_of
from pulsarbox.storage.record import Entry, check_batch, pack_entry, verify_entry

PACKED_FROM: Final = 1 << 48
"""First key of the values that hold adopted entries; log positions are below."""
_SEGMENTS_AT_ONCE = 256


class FaultOutcome:
    """The outcome that a fault hook chooses for an operation; it raises PersistenceError or StoreFull to refuse it."""

    DONE: Final = "done"
    LIE: Final = "lie"
    """Report success, and lose the write at the next power failure."""
    LATE: Final = "late"
    """Complete the write only at ``MemberDisk.settle``."""


Faults = Callable[[str, Any], str]
"""Called with the name of an operation of Member and its argument before it; returns a Verdict."""


def no_faults(operation: str, argument: Any) -> str:
    """Return DONE for every operation."""
    return FaultOutcome.DONE


class MemberDisk:
    """The state of one directory that survives a crash."""

    def __init__(self, name: str, device: int = 0, faults: Faults = no_faults) -> None:
        self.name = name
        self.device = device
        self.faults = faults
        self.present = True
        """False while the disk is unplugged."""
        self.incarnation = 0
        """Raised when the directory is replaced by another one."""
        self._clear()

    def _clear(self) -> None:
        self.box = ""
        self.membership: Membership | None = None
        self.log: SortedDict[int, bytes] = SortedDict()
        self.packed: dict[int, bytes] = {}
        """Values with adopted entries, by keys from PACKED_FROM on."""
        self.positions: dict[int, int] = {}
        """The positions of the batches that the adopted entries of these values are from."""
        self.index: dict[int, SortedDict[int, IndexSegment]] = {}
        """Disjoint segments by ledger and first entry."""
        self.rows: SortedDict[bytes, bytes] = SortedDict()
        self.mark = 0
        self.dropped: set[int] = set()
        self.suspects: SortedSet[int] = SortedSet()
        self.untried: SortedSet[int] = SortedSet()
        self.generation = 0
        self.unsynced: set[int] = set()
        """Positions that a power failure loses."""
        self.waiting: list[PackedBatch] = []
        """Late writes."""

    def copy(self) -> "MemberDisk":
        """Return a disk with the same contents; values that never change are shared."""
        other = MemberDisk(self.name, self.device)
        other.__dict__.update(
            {name: value.copy() if hasattr(value, "copy") else value for name, value in self.__dict__.items()}
        )
        other.faults = no_faults
        other.index = {ledger_id: segments.copy() for ledger_id, segments in self.index.items()}
        return other

    def wipe(self) -> None:
        """Replace the directory by an empty one."""
        self._clear()
        self.incarnation += 1

    def power_failure(self) -> None:
        """Lose the writes that were reported but not made, and those that are late."""
        self.waiting = []
        for position in self.unsynced:
            self.remove(position)
        self.unsynced = set()

    def settle(self) -> None:
        """Complete the late writes."""
        waiting, self.waiting = self.waiting, []
        for batch in waiting:
            self.store(batch)

    @property
    def newest(self) -> int:
        """The position of the last batch, or of the checkpoint if that is later."""
        last: int = self.log.peekitem(-1)[0] if self.log else 0
        return max(last, self.mark)

    def value(self, key: int) -> bytes:
        """Return a stored value. Raises PersistenceError."""
        found: bytes | None = self.log.get(key) if key < PACKED_FROM else self.packed.get(key)
        if found is None:
            raise PersistenceError(f"{self.name}: batch {key} is missing")
        return found

    def position_of(self, key: int) -> int:
        """Return the position of the batch that a value was made from."""
        return self.positions.get(key, key)

    def store(self, batch: PackedBatch) -> None:
        """Add a batch to the log."""
        self.log[batch.position] = batch.value
        self.add(batch.position, batch.runs)
        (self.untried if batch.runs else self.suspects).add(batch.position)

    def add(self, key: int, runs: Mapping[int, JournalRun]) -> None:
        """Add runs to the index."""
        for ledger_id, run in runs.items():
            segments = self.index.get(ledger_id)
            if segments is None:
                segments = self.index[ledger_id] = SortedDict()
            segments[run.first_entry] = IndexSegment(key, run.first_entry, run.offsets)

    def remove(self, key: int) -> None:
        """Remove a value and its entries."""
        for ledger_id, segments in list(self.index.items()):
            for first in [first for first, segment in segments.items() if segment.position == key]:
                del segments[first]
            if not segments:
                del self.index[ledger_id]
        (self.log if key < PACKED_FROM else self.packed).pop(key, None)
        self.positions.pop(key, None)
        self.suspects.discard(key)
        self.untried.discard(key)

    def find(self, ledger_id: int, entry: int) -> list[IndexSegment]:
        """Return consecutive segments from ``entry`` on; none if it is not there."""
        segments = self.index.get(ledger_id)
        at = -1 if segments is None else segments.bisect_right(entry) - 1
        if segments is None or at < 0:
            return []
        found: list[IndexSegment] = []
        for first in segments.islice(at, at + _SEGMENTS_AT_ONCE):
            key, _, offsets = segments[first]
            if not first <= entry < first + len(offsets):
                break
            found.append(IndexSegment(key, entry, offsets[entry - first :]))
            entry = first + len(offsets)
        return found

    def segment_of(self, ledger_id: int, entry: int) -> IndexSegment | None:
        """Return the first of the segments that ``find`` returns."""
        segments = self.index.get(ledger_id)
        at = -1 if segments is None else segments.bisect_right(entry) - 1
        if segments is None or at < 0:
            return None
        key, first, offsets = segments.peekitem(at)[1]
        return IndexSegment(key, entry, offsets[entry - first :]) if entry < first + len(offsets) else None

    def cut(self, ledger_id: int, first: int, end: int) -> None:
        """Remove entries from the index."""
        segments = self.index.get(ledger_id, SortedDict())
        for key, begin, offsets in list(segments.values()):
            stop = begin + len(offsets)
            if begin >= end or stop <= first:
                continue
            del segments[begin]
            if begin < first:
                segments[begin] = IndexSegment(key, begin, offsets[: first - begin])
            if end < stop:
                segments[end] = IndexSegment(key, end, offsets[end - begin :])
        if not segments:
            self.index.pop(ledger_id, None)


class MemoryMember:
    """A Member on a MemberDisk."""

    is_remote = False

    def __init__(self, disk: MemberDisk, codecs: RestCodecs | None = None) -> None:
        """``codecs`` are those that may compress entries; the built-in ones if omitted."""
        self.disk = disk
        self.name = disk.name
        self.device = disk.device
        self._incarnation = disk.incarnation
        self._codecs = RestCodecs() if codecs is None else codecs
        self._reading = RestUnpacker(self._codecs, NoMore())
        self._packing = RestUnpacker(self._codecs, NoMore())
        self._unpacked = DecompressedCache()

    def open(self) -> MemberContent:
        """See Member."""
        self._incarnation = self.disk.incarnation
        self._begin("open", None)
        disk = self.disk
        disk.settle()  # a directory is locked until the writes of its former process have ended
        return MemberContent(disk.membership, MemoryRows(disk), disk.mark, disk.newest, disk.box)

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """See Member."""
        self._begin("batches", after)
        for position in list(self.disk.log.irange(after, inclusive=(False, True))):
            value = self.disk.value(position)
            check_batch(value)
            yield position, value

    def write_membership(self, membership: Membership) -> None:
        """See Member."""
        self._begin("write_membership", membership)
        self.disk.membership = membership
        self.disk.box = self.disk.box or membership.box

    def commit(self, batch: PackedBatch) -> None:
        """See Member. Raises MemberLate if a fault delays the write."""
        verdict = self._begin("commit", batch)
        disk = self.disk
        if batch.position <= disk.newest or (disk.waiting and batch.position <= disk.waiting[-1].position):
            raise ValueError(f"{self.name}: batch {batch.position} was committed after {disk.newest}")
        if verdict == FaultOutcome.LATE or disk.waiting:
            disk.waiting.append(batch)
            raise MemberLate(f"{self.name}: batch {batch.position} is late")
        disk.store(batch)
        if verdict == FaultOutcome.LIE:
            disk.unsynced.add(batch.position)
        self._require_presence()

    def erase_from(self, position: int) -> None:
        """See Member."""
        self._begin("erase_from", position)
        disk = self.disk
        disk.waiting = [batch for batch in disk.waiting if batch.position < position]
        for each in list(disk.log.irange(position)):
            disk.remove(each)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Member."""
        self._begin("read", request)
        answer = Answer(request, self._reading, self._unpacked)
        while answer.open:
            segments = self.disk.find(request.ledger_id, answer.next_entry)
            if segments:
                answer.collect(segments, self.disk.value)
            else:
                answer.nothing_more()
        return request.answer(answer.entries)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Member."""
        self._begin("checkpoint", checkpoint)
        disk = self.disk
        for key, value in checkpoint.rows.items():
            if value is None:
                disk.rows.pop(key, None)
            else:
                disk.rows[key] = value
        self._drop(checkpoint.dropped)
        disk.mark = checkpoint.position

    def _drop(self, ledger_ids: Iterable[int]) -> None:
        disk = self.disk
        for ledger_id in ledger_ids:
            disk.dropped.add(ledger_id)
            disk.suspects.update(segment.position for segment in disk.index.get(ledger_id, SortedDict()).values())

    def replace_rows(self, rows: Iterable[tuple[bytes, bytes]], mark: int) -> None:
        """See Member."""
        self._begin("replace_rows", mark)
        disk = self.disk
        disk.rows = SortedDict(rows)
        disk.mark = mark
        dropped = is_dropped(disk.rows.items())
        self._drop([ledger_id for ledger_id in disk.index if dropped(ledger_id)])

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Member. Every value counts as a volume."""
        self._begin("reclaim", compressing)
        disk = self.disk
        if compressing is not None and disk.generation != compressing.generation:
            disk.generation = compressing.generation
            disk.untried = SortedSet([*disk.log, *disk.packed])
        while (due := self._next_to_reclaim(compressing)) is not None:
            what, key = due
            if key in disk.log or key in disk.packed:
                return self._rewrite(what, key, compressing)
        return None

    def _next_to_reclaim(self, compressing: Compressing | None) -> tuple[str, int] | None:
        """Return the kind of step that is due, and the key of the value."""
        for what, keys in (("packed", self.disk.suspects), ("compressed", self.disk.untried)):
            if what == "compressed" and compressing is None:
                break
            if keys and (keys[0] <= self.disk.mark):
                return what, keys.pop(0)
            packed = next(keys.irange(PACKED_FROM), None)
            if packed is not None:
                keys.remove(packed)
                return what, packed
        return None

    def _rewrite(self, what: str, key: int, compressing: Compressing | None) -> Reclaimed:
        """Keep the live entries of a value only, and compress them."""
        disk = self.disk
        value = disk.value(key)
        entries = live_entries(value, lambda ledger, entry: self._is_live(key, ledger, entry))
        name = (f"batches/{key}",)
        position = disk.position_of(key)
        disk.remove(key)
        if not entries:
            return Reclaimed("removed", name, len(value), 0)
        choose = _none_wanted if compressing is None else compressing.chooser(MemoryRows(disk))
        EntryEncoder(self._codecs, choose, NewDictionaries(_none, 0), self._packing, _unthrottled).press(entries)
        new, runs = put_together(entries, wall_of(value))
        (disk.log if key < PACKED_FROM else disk.packed)[key] = new
        disk.positions |= {} if key == position else {key: position}
        for ledger_id, run in runs:
            disk.add(key, {ledger_id: run})
        if compressing is None:
            disk.untried.add(key)
        return Reclaimed(what, name, len(value), len(new))

    def _is_live(self, key: int, ledger_id: int, entry_id: int) -> bool:
        found = self.disk.segment_of(ledger_id, entry_id)
        return ledger_id not in self.disk.dropped and found is not None and found.position == key

    def check_room(self) -> None:
        """See Member."""
        self._begin("check_room", None)

    def is_there(self) -> bool:
        """See Member."""
        return self.disk.present and self.disk.incarnation == self._incarnation

    def ledgers(self) -> list[int]:
        """See Member."""
        self._begin("ledgers", None)
        return sorted(ledger_id for ledger_id in self.disk.index if ledger_id not in self.disk.dropped)

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """See Member."""
        self._begin("coverage", ledger_ids)
        found = {each: self._runs(each) for each in ledger_ids if each not in self.disk.dropped}
        return {ledger_id: runs for ledger_id, runs in found.items() if runs}

    def _runs(self, ledger_id: int) -> list[tuple[int, int]]:
        runs: list[tuple[int, int]] = []
        for first, segment in self.disk.index.get(ledger_id, SortedDict()).items():
            end = first + len(segment.offsets)
            if runs and runs[-1][1] == first:
                runs[-1] = runs[-1][0], end
            else:
                runs.append((first, end))
        return runs

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """See Member. The pieces of adopted entries have the positions of the batches that they were copied from."""
        self._begin("pieces", (ledger_id, first, end))
        answer = Answer(ReadRequest(0, ledger_id, first, end - 1, max_bytes), self._reading, self._unpacked)
        while answer.open:
            segments = self.disk.find(ledger_id, answer.next_entry)
            if segments:
                answer.collect(segments, self.disk.value)
            else:
                answer.nothing_more()
        pieces: list[Piece] = []
        entries = answer.entries
        while entries:
            segment = self.disk.segment_of(ledger_id, entries[0].entry_id)
            assert segment is not None
            count = len(segment.offsets)
            pieces.append(Piece(self.disk.position_of(segment.position), entries[:count]))
            entries = entries[count:]
        return pieces

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """See Member."""
        verdict = self._begin("adopt", None)
        size = 0
        for position, entries in [(each.position, each.entries) for each in pieces]:
            for entry in entries:
                verify_entry(entry)
            missing = [entry for entry in entries if self.disk.segment_of(entry.ledger_id, entry.entry_id) is None]
            if missing and missing[0].ledger_id not in self.disk.dropped:
                size += self._adopt(position, missing, verdict)
        return size

    def _adopt(self, position: int, entries: Sequence[Entry], verdict: str) -> int:
        """Store entries of one ledger, which need not be consecutive."""
        disk = self.disk
        size = 0
        for _, run in groupby(enumerate(entries), lambda each: each[1].entry_id - each[0]):
            batch = Batch(position)
            for _, entry in run:
                batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
            key = max(disk.packed, default=PACKED_FROM - 1) + 1
            disk.packed[key] = batch.value()
            disk.positions[key] = position
            disk.add(key, batch.runs)
            disk.untried.add(key)
            if verdict == FaultOutcome.LIE:
                disk.unsynced.add(key)
            size += len(disk.packed[key])
        return size

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """See Member."""
        self._begin("forget", (ledger_id, first, end))
        self.disk.cut(ledger_id, first, end)

    def statistics(self) -> dict[str, Any]:
        """See Member."""
        self._begin("statistics", None)
        return {"bytes": sum(map(len, (*self.disk.log.values(), *self.disk.packed.values())))}

    def release_inherited_lock(self) -> None:
        """Do nothing: no lock is held."""

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _begin(self, operation: str, argument: Any) -> str:
        """Return the verdict of an injected fault. Raises PersistenceError."""
        self._require_presence()
        return self.disk.faults(operation, argument)

    def _require_presence(self) -> None:
        if not self.is_there():
            raise PersistenceError(f"{self.name} is no longer there: {NOT_THERE}")


def _none_wanted(ledger_id: int) -> CompressionChoice | None:
    return None


def _none(topic_id: int, tag: bytes) -> Dictionary | None:
    return None


def _unthrottled() -> None:
    """Do not throttle."""
