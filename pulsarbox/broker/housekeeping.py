"""Chores beside the commits: checkpoints, and giving disk back. Asked for here, carried out by a thread of the shell.

There is one at a time. A checkpoint is made with a batch and handed out once that is committed; so the log that a start
has to read again is bounded by how often they are made, in bytes of the log. Disk is given back after a checkpoint, and
when a volume may have been closed.
"""

import logging
from typing import Final

from pulsarbox.broker.compression_policy import AtRest
from pulsarbox.broker.events import Events
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.storage.engine import Checkpoint, Compressing, Engine, Reclaimed
from pulsarbox.storage.recovery import Store

log = logging.getLogger(__name__)


class Reclaim:
    """The chore of one step of giving disk back; ``compressing``: what is to be compressed with it."""

    def __init__(self, compressing: Compressing | None = None) -> None:
        self.compressing = compressing


class CheckRoom:
    """The chore of finding out whether there is room for messages again."""


CHECK_ROOM: Final = CheckRoom()
Chore = Checkpoint | Reclaim | CheckRoom

FULL_SECONDS = 1.0
"""How often it is looked whether a full disk has room again."""
ROWS_MAX = 10_000
"""Rows that a checkpoint waits for at most: they are in memory until then, and a start has to read them again."""
DROPPED_SECONDS = 2.0
"""How long after a ledger was dropped a checkpoint is made for its sake: only then its disk comes back."""
RETRY_SECONDS = 1.0
"""Pause after a chore that failed."""
LAG_FACTOR = 4
"""Times the bytes between two checkpoints that may stand in the log without one; then nothing more is published."""


class Housekeeping:
    """Which chore is next."""

    def __init__(self, store: Store, settings: Settings, timers: Timers, events: Events) -> None:
        self.at_rest: AtRest | None = None
        """What is to be compressed; None for nothing."""
        self._store = store
        self._events = events
        self._timers = timers
        self.checkpoint_every = settings.journalCheckpointMbytes << 20
        self._written = store.replayed_bytes
        """Bytes of the log since the start, those that were read again included."""
        self._made_at = self._covered = 0
        """How many of them the last checkpoint speaks for, and the last one on the disk."""
        self._dropped = store.dropped
        # What went shortly before the last start is in no checkpoint yet, and the timer that would have seen to it is
        # gone. The first batch of a start carries one.
        self._asked = bool(self._dropped)
        self._taken: Checkpoint | None = None
        """A checkpoint that is made and not on the disk yet."""
        self._committed = False
        """The batch that it goes with is committed, and the one that it may need behind it."""
        self._said_by = 0
        """Which one that is."""
        self._reclaim = True
        self._under_way: Chore | None = None
        self._not_before = 0.0
        self._failed = ""
        self._waiting_for_drop = False
        self._full = ""
        """Why the store takes no messages."""
        self._check_room = False
        self.refusal: str | None = None
        """Why no messages are taken right now, None where they are."""

    @property
    def idle(self) -> bool:
        """Whether no checkpoint is asked for or under way."""
        return self._taken is None and not self._asked

    @property
    def busy(self) -> bool:
        """Whether a chore is being carried out."""
        return self._under_way is not None

    @property
    def lag(self) -> int:
        """Bytes of the log that no checkpoint speaks for."""
        return self._written - self._covered

    def _judge(self) -> None:
        """Whether messages can be taken: there is room, and the log has not outgrown its checkpoint by far."""
        lag = self.lag
        if self._full:
            self.refusal = self._full
        elif self._failed and lag >= LAG_FACTOR * self.checkpoint_every:
            grown = f"the log has grown by {lag >> 20} MiB"
            self.refusal = f"{grown} and no checkpoint can be written: {self._failed}"
        else:
            self.refusal = None

    def ask_checkpoint(self) -> None:
        """Make a checkpoint with the next batch, however little there is to write."""
        self._asked = True

    def ask_reclaim(self) -> None:
        """Look once more whether disk can be given back, or something be compressed."""
        self._reclaim = True

    def ledger_dropped(self, ledger_id: int, now: Now) -> None:
        """A ledger is no more: with the next checkpoint its disk can be given back."""
        self._dropped.append(ledger_id)
        if not self._waiting_for_drop:
            self._waiting_for_drop = True
            self._timers.at(now.monotonic + DROPPED_SECONDS, self._drop_has_waited)

    def _drop_has_waited(self, now: Now) -> None:
        self._waiting_for_drop = False
        if self._dropped:
            self._asked = True

    def appended(self, size: int) -> bool:
        """A batch of ``size`` bytes is about to be committed; whether a checkpoint is to be made with it."""
        self._written += size
        if self._failed:
            self._judge()
        due = self._written - self._made_at >= self.checkpoint_every or self._store.catalog.fresh >= ROWS_MAX
        return self._taken is None and (self._asked or due)

    @property
    def asked(self) -> bool:
        """Whether a checkpoint is wanted however little there is in the log."""
        return self._asked and self._taken is None

    @property
    def waiting(self) -> bool:
        """Whether a checkpoint is made that waits for a batch to be committed."""
        return self._taken is not None and not self._committed

    @property
    def is_ready(self) -> bool:
        """Whether a checkpoint could be written, were there nothing under way. Any thread may ask."""
        return self._taken is not None and self._committed

    def needs(self, position: int) -> None:
        """The checkpoint that was just made lacks something that the batch at ``position`` will say: it waits."""
        self._said_by = position

    def made(self, position: int) -> None:
        """The state up to the batch at ``position`` is in the rows: they become the checkpoint."""
        dropped, self._dropped = tuple(self._dropped), []
        self._taken = Checkpoint(position, self._store.catalog.take(), dropped)
        self._said_by = position
        self._committed = self._asked = False
        self._made_at = self._written
        if self.at_rest is not None:
            self.at_rest.made()

    def committed(self, position: int) -> None:
        """The batch at ``position`` is committed, or there is nothing to be said in it."""
        if self._taken is not None and position >= self._said_by:
            self._committed = True

    def commit_failed(self, position: int) -> None:
        """The batch at ``position`` is not stored."""
        if self._taken is not None and self._taken.position == position:
            self._give_back()

    def _give_back(self) -> None:
        assert self._taken is not None
        self._store.catalog.give_back()
        self._dropped = [*self._taken.dropped, *self._dropped]
        self._taken = None
        self._asked = True

    def store_is_full(self, reason: str, now: Now) -> None:
        """The store had no room for messages: look every second whether it has."""
        if not self._full:
            self._events.tell("disk-full", "", f"{reason}: messages are refused until there is room", now)
            self._timers.at(now.monotonic + FULL_SECONDS, self._look_for_room)
        self._full = reason
        self._judge()

    def _look_for_room(self, now: Now) -> None:
        self._check_room = True

    def take(self, now: Now) -> Chore | None:
        """The next chore; None while one is under way, or nothing is to be done."""
        if self._under_way is not None or now.monotonic < self._not_before:
            return None
        if self._taken is not None and self._committed:
            self._under_way = self._taken
        elif self._check_room:
            self._check_room = False
            self._under_way = CHECK_ROOM
        elif self._reclaim:
            self._reclaim = False
            at_rest = self.at_rest
            self._under_way = Reclaim(None if at_rest is None or at_rest.held else at_rest.compressing())
        return self._under_way

    def done(self, chore: Chore, now: Now, error: Exception | None, reclaimed: Reclaimed | None) -> None:
        """A chore has been carried out, or could not be."""
        assert chore is self._under_way
        self._under_way = None
        if isinstance(chore, CheckRoom):
            if error is None:
                log.info("there is room for messages again")
                self._events.tell("disk-room", "", "there is room for messages again", now)
                self._full = ""
                self._judge()
            else:
                self._timers.at(now.monotonic + FULL_SECONDS, self._look_for_room)
            return
        if error is not None:
            log.error("%s: trying again in %g s", error, RETRY_SECONDS)
            self._not_before = now.monotonic + RETRY_SECONDS
            self._timers.at(self._not_before, _wake)
        if isinstance(chore, Reclaim):
            self._reclaim = error is not None or reclaimed is not None
            if reclaimed is not None:
                names = ", ".join(reclaimed.volumes)
                sizes = reclaimed.bytes_before >> 10, reclaimed.bytes_after >> 10
                log.info("storage: %s %s, %d KiB are %d KiB now", reclaimed.what, names, *sizes)
        elif error is not None:
            self._failed = str(error)
            self._give_back()
        else:
            self._failed = ""
            self._covered = self._made_at
            self._taken = None
            self._store.catalog.stored()
            if self.at_rest is not None:
                self.at_rest.stored()
            self._reclaim = True
        self._judge()


def carry_out(chore: Chore, engine: Engine) -> Reclaimed | None:
    """Carry out a chore, in the shell's thread; what was given back, if that was the chore. Raises PersistenceError."""
    if isinstance(chore, Checkpoint):
        engine.checkpoint(chore)
    elif isinstance(chore, Reclaim):
        return engine.reclaim(chore.compressing)
    else:
        engine.check_room()
    return None


def _wake(now: Now) -> None:
    """A timer that only makes the shell look for a chore again."""
