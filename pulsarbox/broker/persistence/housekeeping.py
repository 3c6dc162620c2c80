"""Chores beside the commits: checkpoints, reclaiming disk space, and room checks.

Chores are requested here and carried out by a thread of the shell, one at a time. A checkpoint is made with a batch and
handed out once that batch is committed. The bytes of log between checkpoints bound what a start has to replay. Disk
space is reclaimed after a checkpoint, and when a volume may have been sealed.
"""

import logging
from collections.abc import Callable
from typing import Final

from pulsarbox.broker.compression_policy import CompressionPolicy
from pulsarbox.broker.events import Events
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.storage.engine import Checkpoint, Compressing, Engine, Reclaimed
from pulsarbox.storage.recovery import Store

log = logging.getLogger(__name__)


class Reclaim:
    """One step of reclaiming disk space, with compression as ``compressing`` specifies."""

    def __init__(self, compressing: Compressing | None = None) -> None:
        self.compressing = compressing


class CheckRoom:
    """A check whether a full store has room for messages again."""


CHECK_ROOM: Final = CheckRoom()
Chore = Checkpoint | Reclaim | CheckRoom

FULL_SECONDS = 1.0
"""Interval between room checks of a full store."""
ROWS_MAX = 10_000
"""Metadata rows that trigger a checkpoint: they stay in memory until it is made, and a start has to replay them."""
DROPPED_SECONDS = 2.0
"""Delay from dropping a ledger to the checkpoint that allows its disk space to be reclaimed."""
RETRY_SECONDS = 1.0
"""Pause after a failed chore."""
LAG_FACTOR = 4
"""Publishing stops if checkpoints fail and the log since the last one exceeds this many checkpoint intervals."""


class Housekeeping:
    """Schedules chores."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        timers: Timers,
        events: Events,
        at_rest: CompressionPolicy,
        is_short: Callable[[], bool] = bool,
    ) -> None:
        """``is_short``: whether some of several data directories cannot be written."""
        self._is_short = is_short
        self._at_rest = at_rest
        self._store = store
        self._events = events
        self._timers = timers
        self.checkpoint_every = settings.journalCheckpointMbytes << 20
        self._written = store.replayed_bytes
        """Log bytes written since the start, including replayed ones."""
        self._made_at = self._covered = 0
        """Values of ``_written`` at the last checkpoint made, and at the last one on disk."""
        self._dropped = store.dropped
        # Ledgers dropped shortly before the last stop are in no checkpoint yet, and their timer is lost. The first
        # batch after a start carries a checkpoint.
        self._asked = bool(self._dropped)
        self._taken: Checkpoint | None = None
        """Checkpoint that is made but not on disk yet."""
        self._committed = False
        """Whether the batch at ``_said_by`` is committed."""
        self._said_by = 0
        """Position of the last batch that the checkpoint depends on."""
        self._reclaim = True
        self._under_way: Chore | None = None
        self._not_before = 0.0
        self._failed = ""
        self._waiting_for_drop = False
        self._full = ""
        """Why the store has no room for messages; empty if it has."""
        self._check_room = self._is_watching = False
        """``_check_room``: a check is due. ``_is_watching``: one is due, under way or scheduled."""
        self.refusal: str | None = None
        """Why messages are rejected right now; None if they are accepted."""
        at_rest.changed.add(self.ask_checkpoint)

    @property
    def idle(self) -> bool:
        """Whether no checkpoint is requested or under way."""
        return self._taken is None and not self._asked

    @property
    def busy(self) -> bool:
        """Whether a chore is being carried out."""
        return self._under_way is not None

    @property
    def lag(self) -> int:
        """Log bytes since the last checkpoint on disk."""
        return self._written - self._covered

    def _judge(self) -> None:
        """Update ``refusal`` from the room in the store and the log since the last checkpoint."""
        lag = self.lag
        if self._full:
            self.refusal = self._full
        elif self._failed and lag >= LAG_FACTOR * self.checkpoint_every:
            grown = f"the log has grown by {lag >> 20} MiB"
            self.refusal = f"{grown} and no checkpoint can be written: {self._failed}"
        else:
            self.refusal = None

    def ask_checkpoint(self) -> None:
        """Request a checkpoint with the next batch, however little there is to write."""
        self._asked = True

    def ask_reclaim(self) -> None:
        """Request another reclaim step, which may also compress."""
        self._reclaim = True

    def ledger_dropped(self, ledger_id: int, now: Now) -> None:
        """Note a dropped ledger; its disk space can be reclaimed after the next checkpoint."""
        self._dropped.append(ledger_id)
        if not self._waiting_for_drop:
            self._waiting_for_drop = True
            self._timers.at(now.monotonic + DROPPED_SECONDS, self._drop_has_waited)

    def _drop_has_waited(self, now: Now) -> None:
        self._waiting_for_drop = False
        if self._dropped:
            self._asked = True

    def appended(self, size: int) -> bool:
        """Count a batch of ``size`` bytes about to be committed; return whether a checkpoint is due with it."""
        self._written += size
        if self._failed:
            self._judge()
        due = self._written - self._made_at >= self.checkpoint_every or self._store.catalog.fresh >= ROWS_MAX
        return self._taken is None and (self._asked or due)

    @property
    def asked(self) -> bool:
        """Whether a checkpoint is requested however small the log is."""
        return self._asked and self._taken is None

    @property
    def waiting(self) -> bool:
        """Whether a checkpoint is made and waits for a commit."""
        return self._taken is not None and not self._committed

    @property
    def is_ready(self) -> bool:
        """Whether a checkpoint is ready to be written. Safe to call from any thread."""
        return self._taken is not None and self._committed

    def needs(self, position: int) -> None:
        """Delay the checkpoint just made until the batch at ``position`` is committed: it depends on that batch."""
        self._said_by = position

    def made(self, position: int) -> None:
        """Turn the rows, which hold the state up to the batch at ``position``, into a checkpoint."""
        dropped, self._dropped = tuple(self._dropped), []
        self._taken = Checkpoint(position, self._store.catalog.take(), dropped)
        self._said_by = position
        self._committed = self._asked = False
        self._made_at = self._written
        self._at_rest.made()

    def committed(self, position: int) -> None:
        """Note that the batch at ``position`` is committed or not needed."""
        if self._taken is not None and position >= self._said_by:
            self._committed = True

    def commit_failed(self, position: int) -> None:
        """Discard the checkpoint if it was made with the failed batch at ``position``."""
        if self._taken is not None and self._taken.position == position:
            self._start_reclaim()

    def _start_reclaim(self) -> None:
        assert self._taken is not None
        self._store.catalog.restore()
        self._dropped = [*self._taken.dropped, *self._dropped]
        self._taken = None
        self._asked = True

    def store_is_full(self, reason: str, now: Now) -> None:
        """Reject messages and check every second whether the store has room again."""
        if not self._full:
            self._events.report("disk-full", "", f"{reason}: messages are rejected until disk space is available", now)
        self._full = reason
        self.watch_room(now)
        self._judge()

    def watch_room(self, now: Now) -> None:
        """Check every second for disk space while the store, or some data directory, has none."""
        if not self._is_watching and (self._full or self._is_short()):
            self._is_watching = True
            self._timers.at(now.monotonic + FULL_SECONDS, self._check_disk_space)

    def _check_disk_space(self, now: Now) -> None:
        self._check_room = True

    def take(self, now: Now) -> Chore | None:
        """Return the next chore; None while one is under way or nothing is due."""
        if self._under_way is not None or now.monotonic < self._not_before:
            return None
        if self._taken is not None and self._committed:
            self._under_way = self._taken
        elif self._check_room:
            self._check_room = False
            self._under_way = CHECK_ROOM
        elif self._reclaim:
            self._reclaim = False
            self._under_way = Reclaim(self._at_rest.compressing(lambda: self.is_ready))
        return self._under_way

    def done(self, chore: Chore, now: Now, error: Exception | None, reclaimed: Reclaimed | None) -> None:
        """Complete a chore, successfully or with ``error``."""
        assert chore is self._under_way
        self._under_way = None
        if isinstance(chore, CheckRoom):
            self._is_watching = False
            if error is None and self._full:
                log.info("disk space is available for messages again")
                self._events.report("disk-room", "", "disk space is available for messages again", now)
                self._full = ""
                self._judge()
            self.watch_room(now)
            return
        if error is not None:
            log.error("%s; retrying in %g s", error, RETRY_SECONDS)
            self._not_before = now.monotonic + RETRY_SECONDS
            self._timers.at(self._not_before, _wake)
        if isinstance(chore, Reclaim):
            self._reclaim = error is not None or reclaimed is not None
            if reclaimed is not None:
                names = ", ".join(reclaimed.volumes)
                sizes = reclaimed.bytes_before >> 10, reclaimed.bytes_after >> 10
                log.info("storage: %s %s, from %d KiB to %d KiB", reclaimed.what, names, *sizes)
        elif error is not None:
            self._failed = str(error)
            self._start_reclaim()
        else:
            self._failed = ""
            self._covered = self._made_at
            self._taken = None
            self._store.catalog.stored()
            self._at_rest.stored()
            self._reclaim = True
        self._judge()


def carry_out(chore: Chore, engine: Engine) -> Reclaimed | None:
    """Carry out a chore in the shell's thread and return what a reclaim step did. Raises PersistenceError."""
    if isinstance(chore, Checkpoint):
        engine.checkpoint(chore)
    elif isinstance(chore, Reclaim):
        return engine.reclaim(chore.compressing)
    else:
        engine.check_room()
    return None


def _wake(now: Now) -> None:
    """Do nothing: the timer only makes the shell call ``take_chore``."""
