"""Scrub: reads all entries of each member in the order of its index and verifies their checksums.

A damaged copy is replaced while intact ones exist, long before a consumer reads it. The progress is stored in the
directory, so that a restart goes on.
"""

import json
from collections.abc import Callable
from typing import Final

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.ensemble.keeping.fragments import READABLE, Run
from pulsarbox.storage.ensemble.keeping.pace import Pace
from pulsarbox.storage.ensemble.keeping.repair import RETRY_SECONDS, Damage, covers_first, read_verified
from pulsarbox.storage.ensemble.keeping.upkeep import Ensemble, Held, Maintained
from pulsarbox.storage.ensemble.status import Fragment, ScrubStatus

STEP_BYTES: Final = 4 << 20
STEP_ENTRIES: Final = 10_000
STEP_LEDGERS: Final = 200
"""Limits of one step."""
NOTED_BYTES: Final = 256 << 20
"""Bytes after which the progress is stored."""
KNOWN_MAX: Final = 10_000
"""Damaged runs of a member that are remembered until the next scrub."""
_DAY_MS: Final = 86_400_000


class _Progress:
    """The progress in one member."""

    def __init__(self, note: bytes) -> None:
        """An unreadable note starts a new scrub."""
        known: dict[str, int] = {}
        try:
            loaded = json.loads(note)
            known = {name: int(loaded[name]) for name in self.FIELDS}
        except (ValueError, KeyError, TypeError):
            pass
        self.ledger = known.get("ledger", 0)
        """The next entry: all ledgers before this one are done."""
        self.entry = known.get("entry", 0)
        self.done = known.get("done", 0)
        """Bytes of entries verified."""
        self.total = known.get("total", 0)
        """Bytes expected; 0 if no scrub is running."""
        self.started = known.get("started", 0)
        self.finished = known.get("finished", 0)
        self.found = 0
        """Runs of damaged entries since the start of the process, each once while it stays damaged."""
        self._before: set[Run] = set()
        self._damaged: set[Run] = set()
        """Ledger and first entry of the damaged runs, as found by the scrub before and by this one."""
        self.unnoted = 0
        self.ledgers: list[int] | None = None
        """The ledgers left, in order, the next one last; None until the index is read."""

    FIELDS: Final = ("ledger", "entry", "done", "total", "started", "finished")

    @property
    def is_running(self) -> bool:
        return self.started > self.finished

    def begin(self, wall: int, total: int) -> None:
        """Start from the first entry."""
        self.ledger = self.entry = self.done = 0
        self.started, self.total = max(wall, self.finished + 1), max(total, 1)
        self._before, self._damaged = self._damaged, set()
        self.ledgers = None

    def find(self, first: int) -> None:
        """Count a damaged run, unless the scrub before found it too."""
        run = self.ledger, first
        self.found += run not in self._before
        if len(self._damaged) < KNOWN_MAX:
            self._damaged.add(run)

    def end(self, wall: int) -> None:
        """Complete the scrub."""
        self.finished, self.total = max(wall, self.started), 0
        self.ledgers = None

    def note(self) -> bytes:
        """Return what a restart needs."""
        return json.dumps({name: getattr(self, name) for name in self.FIELDS}).encode()

    @property
    def status(self) -> ScrubStatus:
        return ScrubStatus(self.done, self.total, self.found, self.started, self.finished)


class Scrubber:
    """Scrubs one member after the other."""

    def __init__(
        self, ensemble: Ensemble, damaged: Callable[[Damage], None], bytes_per_second: int, days: float
    ) -> None:
        """A scrub of a member begins ``days`` after the end of the last one; 0 for none.

        ``damaged`` receives what is found.
        """
        self._ensemble = ensemble
        self._damaged = damaged
        self._period = int(days * _DAY_MS)
        self.pace = Pace(bytes_per_second)
        self._progress: dict[str, _Progress] = {}
        self._paused: dict[str, float] = {}
        self._requested: set[str] = set()

    def status(self, name: str) -> ScrubStatus:
        """Return the progress in a member."""
        known = self._progress.get(name)
        return ScrubStatus(0, 0, 0, 0, 0) if known is None else known.status

    def request(self, name: str) -> None:
        """Begin a scrub of a member soon, also if none is configured. Thread-safe."""
        self._requested.add(name)

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        """Verify some entries; None if no scrub is due."""
        if not self.pace.is_due(monotonic):
            return None
        held = [each for each in self._ensemble.held() if each.place.state in READABLE]
        usable = [each for each in held if monotonic >= self._paused.get(each.name, monotonic)]
        for each in sorted(usable, key=lambda one: self._turn(one.name)):
            progress = self._of(each.name)
            if progress.is_running or each.name in self._requested or self._is_due(progress, wall):
                self._requested.discard(each.name)
                return self._verify_or_pause(each, progress, monotonic, wall)
        return None

    def _turn(self, name: str) -> tuple[bool, bool, int]:
        """Return the rank of a member: first a scrub in progress, then requests, then what was verified longest ago."""
        progress = self._of(name)
        return not progress.is_running, name not in self._requested, progress.finished

    def _is_due(self, progress: _Progress, wall: int) -> bool:
        return self._period > 0 and wall - progress.finished >= self._period

    def _verify_or_pause(self, held: Held, progress: _Progress, monotonic: float, wall: int) -> Maintained:
        """Verify some entries. Raises PersistenceError if the member cannot be read, which is then left alone."""
        try:
            done = self._verify_some(held, progress, wall)
        except PersistenceError:
            self._paused[held.name] = monotonic + RETRY_SECONDS
            progress.ledgers = None
            raise
        self.pace.spend(done.bytes, monotonic)
        return done

    def save(self) -> None:
        """Store the progress, when the ensemble is closed."""
        for name, progress in self._progress.items():
            if progress.unnoted:
                self._note(name, progress)

    def _of(self, name: str) -> _Progress:
        known = self._progress.get(name)
        if known is None:
            known = self._progress[name] = _Progress(self._ensemble.read_note(name))
        return known

    def _verify_some(self, held: Held, progress: _Progress, wall: int) -> Maintained:
        if not progress.is_running:
            progress.begin(wall, held.place.bytes_used)
        if progress.ledgers is None:
            ids = [each for each in held.member.ledgers() if each >= progress.ledger]
            progress.ledgers = sorted(ids, reverse=True)
        before, found = progress.done, progress.found
        self._advance(held, progress, progress.ledgers)
        size = progress.done - before
        progress.unnoted += size
        if not progress.ledgers:
            progress.end(wall)
        if not progress.is_running or progress.found > found or progress.unnoted >= NOTED_BYTES:
            self._note(held.name, progress)
        text = f"{size} bytes of {held.name} were verified, {progress.found - found} runs of entries are damaged"
        return Maintained("scrubbed", text, size)

    def _advance(self, held: Held, progress: _Progress, ledgers: list[int]) -> None:
        """Verify entries until a limit of the step is reached."""
        size, entries = STEP_BYTES, STEP_ENTRIES
        some = ledgers[-STEP_LEDGERS:][::-1]
        coverage = held.member.coverage(some)
        for ledger_id in some:
            if progress.ledger != ledger_id:
                progress.ledger, progress.entry = ledger_id, 0
            for run in coverage.get(ledger_id, ()):
                while progress.entry < run[1] and size > 0 and entries > 0:
                    first = max(progress.entry, run[0])
                    count, read = self._verify(held, progress, (first, run[1]), (size, entries))
                    progress.entry = first + count
                    progress.done += read
                    size, entries = size - read, entries - count
            if size <= 0 or entries <= 0:
                return
            ledgers.pop()

    def _verify(self, held: Held, progress: _Progress, run: Run, limits: tuple[int, int]) -> tuple[int, int]:
        """Verify entries from the beginning of a run; return how many entries and bytes were looked at."""
        fragment = Fragment(progress.ledger, *run, (), 1)
        try:
            pieces = read_verified(held.member, fragment, *limits)
        except EntryDamaged as error:
            end = min(max(error.last + 1, run[0] + 1), run[1])
            progress.find(run[0])
            self._damaged(Damage(held.name, progress.ledger, run[0], end, error.reason))
            return end - run[0], 0
        except PersistenceError:
            if covers_first(held.member, fragment):
                raise
            return run[1] - run[0], 0  # deleted or moved meanwhile
        entries = [entry for piece in pieces for entry in piece.entries]
        return len(entries), sum(len(entry.body) for entry in entries)

    def _note(self, name: str, progress: _Progress) -> None:
        self._ensemble.write_note(name, progress.note())
        progress.unnoted = 0
