"""One compaction: reads a topic twice, first to find the latest message of every key, then to copy these.

Both passes read the current view, then the log after its horizon, up to its end at the start of the run. Reads are
bounded steps, processed in the reading thread, and each is followed by an equally long pause. Output goes into the
batches that everything else uses, one step at a time, in a ledger that is not referenced until the run ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.compaction.compaction_history import Compactions
from pulsarbox.broker.compaction.copy_pass import Copied, copy
from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.broker.compaction.scan_pass import EntryRules, Examined, Seen, examine
from pulsarbox.broker.persistence.replication import ReplicatedTopic
from pulsarbox.broker.services import HasCatalog, HasCommits, HasQuarantine, HasReads, HasSettings, HasTimers
from pulsarbox.broker.transactions.visibility import visible_runs
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged, PersistenceError, PulsarBoxError
from pulsarbox.storage.catalog import Catalog, compacted_key, compacting_key
from pulsarbox.storage.compacted_ledger import CompactedView, Original, pack_compacted
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.recovery import StoredTopic

STEP_ENTRIES: Final = 1000
STEP_BYTES: Final = 256 << 10
"""Maximum bytes read, processed and written per step: a few milliseconds."""
TURN_ENTRIES: Final = 250
"""Maximum entries examined or written per turn of the core: about 0.3 ms of the shared event loop."""


class CompactionSegment(NamedTuple):
    """A range of entries in a ledger, compacted or of the log."""

    ledger_id: int
    first: int
    end: int
    compacted: bool


class CompactionProgress(NamedTuple):
    """Progress of a compaction."""

    phase: str
    """``waiting``, ``reading`` or ``writing``."""
    read: int
    """Entries read, in all passes."""
    to_read: int
    """Entries to read per pass."""
    passes: int
    """Completed passes."""
    keys: int
    written: int
    """Entries."""


class CompactionFailed(PulsarBoxError):
    """A compaction cannot continue; the previous view stays in use."""


def segments_of(stored: StoredTopic, catalog: Catalog, view: CompactedView | None) -> list[CompactionSegment]:
    """Return the segments to compact: the view, then the confirmed log after its horizon."""
    found = [CompactionSegment(view.ledger_id, 0, view.entries, True)] if view is not None and view.entries else []
    behind = view.horizon if view is not None else Position(-1, -1)
    for info in stored.ledger.ledgers.values():
        first = behind.entry_id + 1 if info.ledger_id == behind.ledger_id else 0
        if info.ledger_id >= behind.ledger_id and first < info.confirmed:
            found.append(CompactionSegment(info.ledger_id, first, info.confirmed, False))
    return _visible(stored, catalog, found) if stored.open or stored.has_aborted else found


def _visible(stored: StoredTopic, catalog: Catalog, segments: list[CompactionSegment]) -> list[CompactionSegment]:
    """Exclude entries of aborted transactions and those after the start of the first open transaction."""
    found = []
    for segment in segments:
        if segment.compacted:
            found.append(segment)
        else:
            runs = visible_runs(stored, catalog, segment.ledger_id, segment.first, segment.end)
            found += [segment._replace(first=first, end=end) for first, end in runs]
    return found


class CompactionServices(HasSettings, HasCatalog, HasCommits, HasTimers, HasReads, HasQuarantine, Protocol):
    """The services of the broker that a compaction uses."""

    @property
    def compactions(self) -> Compactions:
        """Statistics and queue of compactions."""


class CompactionRun:
    """A running compaction. ``ended`` is called once: with the new view when that is durable, or with an error."""

    def __init__(
        self,
        services: CompactionServices,
        topic: ReplicatedTopic,
        stored: StoredTopic,
        view: CompactedView | None,
        switch: Callable[[CompactedView, Now], None],
        ended: Callable[[CompactedView | None, Exception | None, Now], None],
    ) -> None:
        """``switch`` writes the rows that replace the old view with the new one."""
        self._topic = topic
        self._stored = stored
        self._ledger = stored.ledger
        self._catalog = services.catalog
        self._commits = services.commits
        self._timers = services.timers
        self._reads = services.reads
        self._quarantine = services.quarantine
        self._compactions = services.compactions
        self._services = services
        self._before = view
        self._switch = switch
        self._ended = ended
        self._rules = EntryRules()
        self._winners = LatestByKey(0)
        self._segments: list[CompactionSegment] = []
        self._left: list[CompactionSegment] = []
        self._damaged: dict[Position, int] = {}
        """First positions of unreadable ranges, with the entry ID to continue at."""
        self._copying = False
        self._at = 0
        """Messages passed in the current pass."""
        self._unseen: list[Seen] = []
        """Entries read but not examined yet."""
        self._asked_at = 0.0
        self.step_entries = STEP_ENTRIES
        """Maximum entries per read."""
        self.ledger_id = 0
        """The output ledger."""
        self._entries = self._size = 0
        self._last = (-1, -1, -1)
        self._end = Position(-1, -1)
        self._totals = (0, 0)
        self._read = self._passes = 0
        self.read_bytes = 0
        self.removed = 0
        """Messages not kept."""
        self.is_over = False
        """Whether the run has ended; its last rows may not be durable yet."""
        self._waiting = True

    @property
    def progress(self) -> CompactionProgress:
        """Current progress."""
        phase = "waiting" if self._waiting else "writing" if self._copying else "reading"
        to_read = sum(each.end - each.first for each in self._segments)
        return CompactionProgress(phase, self._read, to_read, self._passes, self._winners.keys, self._entries)

    @property
    def written_bytes(self) -> int:
        """Bytes of the compacted entries so far."""
        return self._size

    def begin(self, now: Now) -> None:
        """Start, because the run's turn has come."""
        self._waiting = False
        settings = self._services.settings
        ledger = self._ledger
        self._rules = EntryRules(settings.topicCompactionRetainNullKey, settings.maxMessageSize)
        self._winners = LatestByKey(settings.compactionMaxKeysInMemory)
        readable, durable = self._stored.open.readable, ledger.last_confirmed
        if readable is None or readable[0] > durable:  # open entries are not durable yet, nor some before them
            readable = durable, ledger.confirmed_messages, ledger.confirmed_bytes
        self._end, *totals = readable
        self._totals = totals[0], totals[1]
        self._segments = segments_of(self._stored, self._catalog, self._before)
        self._left = list(self._segments)
        self._step(now)

    def cancel(self, reason: str, now: Now) -> None:
        """Stop and leave nothing behind."""
        self._fail(CompactionFailed(reason), now)

    # Read

    def _step(self, now: Now) -> None:
        if self.is_over:
            return
        segment = self._next_segment()
        if segment is None:
            self._end_pass(now)
            return
        ledger_id, first, end, compacted = segment
        end = min([end, *(at.entry_id for at in self._damaged if at.ledger_id == ledger_id and at.entry_id > first)])
        work: Callable[[list[Entry]], Examined | Copied]
        if self._copying:
            work = partial(copy, self._rules, self._winners.bits, self._at, compacted=compacted)
        else:
            work = partial(examine, self._rules, compacted=compacted)
        self._asked_at = now.monotonic
        last = min(end, first + self.step_entries) - 1
        self._reads.ask_for_work(ledger_id, first, last, STEP_BYTES, self._answer, work)

    def _next_segment(self) -> CompactionSegment | None:
        """Return the segment to continue in; None if everything is read."""
        while self._left:
            segment = self._left[0]
            known = self._damaged.get(Position(segment.ledger_id, segment.first))
            if known is not None:
                self._left[0] = segment = segment._replace(first=known)
            if segment.first < segment.end:
                return segment
            self._left.pop(0)
        return None

    def _answer(self, found: Examined | Copied | None, error: Exception | None, now: Now) -> None:
        if self.is_over:
            return
        if found is None:
            self._unread(error, now)
            return
        segment = self._left[0]
        self._read += found.next_entry - segment.first
        self.read_bytes += found.size
        self._left[0] = segment._replace(first=found.next_entry)
        if isinstance(found, Examined):
            self._unseen = found.seen
            self._examine(now)
            return
        self._at += found.messages
        self._last = found.last or self._last
        if found.kept:
            self._write(found.kept, now)
        else:
            self._rest(now)

    def _examine(self, now: Now) -> None:
        """Examine the entries read, some in each turn, to keep turns short."""
        if self.is_over:
            return
        part, self._unseen = self._unseen[:TURN_ENTRIES], self._unseen[TURN_ENTRIES:]
        self._winners.process(part)
        if self._unseen:
            self._timers.at(now.monotonic, self._examine)
        else:
            self._rest(now)

    def _unread(self, error: Exception | None, now: Now) -> None:
        first = not self._copying and not self._passes
        segment = self._left[0]
        if isinstance(error, EntryDamaged) and first:
            # Continue after the damage, as a consumer does. Later passes do not try it again.
            self._damaged[Position(error.ledger_id, error.first)] = error.last + 1
            self._quarantine.report(error, now)
            self._step(now)
        elif not segment.compacted and segment.ledger_id not in self._ledger.ledgers:
            self._fail(CompactionFailed("the log was trimmed during the compaction: compact again"), now)
        else:
            self._fail(error or CompactionFailed("no entries could be read"), now)

    def _rest(self, now: Now) -> None:
        """Pause for as long as the last step took: publishing has priority."""
        self._timers.at(2 * now.monotonic - self._asked_at, self._step)

    def _end_pass(self, now: Now) -> None:
        if self._copying:
            self._finish(now)
            return
        self._passes += 1
        messages = self._winners.messages
        if not self._winners.end_pass():
            self._copying = True
            self.removed = messages - self._winners.kept
            self.ledger_id = self._commits.new_id()
            self._commits.put_row(compacting_key(self._ledger.topic_id, self.ledger_id), {})
        self._left = list(self._segments)
        self._step(now)

    # Write

    def _write(self, kept: list[Original], now: Now) -> None:
        commits = self._commits
        refusal = self._topic.room.refusal
        if refusal is not None:
            self._fail(CompactionFailed(f"messages cannot be stored: {refusal}"), now)
            return
        part, left = kept[:TURN_ENTRIES], kept[TURN_ENTRIES:]
        first = self._entries
        entries = [pack_compacted(each, self.ledger_id, number) for number, each in enumerate(part, first)]
        self._entries += len(entries)
        self._size += sum([len(entry.body) for entry in entries])
        began = now.monotonic

        def stored(when: Now) -> None:
            if not self.is_over:
                self._compactions.record(self._stored.name).written(when.monotonic - began)
                self._write(left, when) if left else self._rest(when)

        copies = self._topic.copies
        commits.copy(entries, stored, self._lost, None if copies is None else copies.asked)

    def _lost(self, error: Exception, now: Now) -> None:
        self._fail(error, now)

    def _finish(self, now: Now) -> None:
        """Make the durable copy the topic's view."""
        messages, size = self._totals
        view = CompactedView(self.ledger_id, self._entries, self._size, self._end, messages, size, self._last, now.wall)
        topic_id = self._ledger.topic_id
        commits = self._commits
        commits.put_row(compacted_key(topic_id, view.ledger_id), view.row)
        commits.put_row(compacting_key(topic_id, view.ledger_id), None)
        self._switch(view, now)
        self.is_over = True
        commits.after_commit(lambda when: self._ended(view, None, when))

    def _fail(self, error: Exception, now: Now) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self.ledger_id:
            self._commits.put_row(compacting_key(self._ledger.topic_id, self.ledger_id), None)
            self._commits.housekeeping.ledger_dropped(self.ledger_id, now)
        if not isinstance(error, PulsarBoxError | PersistenceError):
            error = CompactionFailed(str(error))
        self._ended(None, error, now)
