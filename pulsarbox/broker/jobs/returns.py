"""What a job has put back and what has come back as dead letters: the circuit breaker.

A replayed message bears the mark of its job, which whoever makes a dead letter of it again takes along: the box, and
the clients of Java, C++, Python and Go. What has come into the dead letter topic since the job began is read once a
second.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.jobs.job import SHARE_FROM, Job
from pulsarbox.broker.jobs.replaying import Returned, count_returned
from pulsarbox.broker.transactions.visible import next_visible
from pulsarbox.clock import Now
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core
    from pulsarbox.broker.topic import PersistentTopic

LOOK_SECONDS: Final = 1.0
PARTS_A_SECOND: Final = 20
"""Of a topic with more partitions it is looked less often."""
READ_ENTRIES: Final = 500
READ_BYTES: Final = 1 << 20
READS_MAX: Final = 20
"""Of one look; the next goes on from there."""

Look = Callable[[str, Now], "PersistentTopic | None"]
Told = Callable[[int, Now], None]


class Returns:
    """Of one job."""

    def __init__(self, core: "Core", job: Job, find: Look) -> None:
        self._core = core
        self._job = job
        self._find = find
        self._next_at = 0.0
        self.last_looked = False
        """The job has done all it has to do, and this is the last look."""

    def due(self, now: Now) -> bool:
        """Whether to look again."""
        return now.monotonic >= self._next_at and self._job.progress.counts.done > 0

    def look(self, told: Told, now: Now) -> None:
        """Read what has come, and tell how many messages of the job's are among it."""
        pause = LOOK_SECONDS * max(1, len(self._job.parts) / PARTS_A_SECOND)
        self._next_at = now.monotonic + pause
        self._read(0, 0, READS_MAX, told, now)

    def _read(self, part: int, found: int, reads: int, told: Told, now: Now) -> None:
        job = self._job
        for number in range(part, len(job.parts) if reads else 0):
            name, end = job.parts[number]
            topic = self._find(name, now)
            if topic is None:
                continue
            ledger = topic.ledger
            at = ledger.next(*job.watched.get(number, end))
            visible = next_visible(topic, at)
            if visible is None:
                continue
            at, behind = visible
            last = min(at.entry_id + READ_ENTRIES, behind) - 1
            work = partial(count_returned, job.number, name, self._core.settings.maxMessageSize)
            answer = partial(self._answer, number, at, found, reads, told)
            self._core.reads.ask_for_work(at.ledger_id, at.entry_id, last, READ_BYTES, answer, work)
            return
        told(found, now)

    def _answer(
        self, part: int, at: Position, found: int, reads: int, told: Told, read: Returned | None,
        error: Exception | None, now: Now,
    ) -> None:  # fmt: skip
        if read is None:  # damaged, or trimmed: the next look tries again, or is past it
            last = getattr(error, "last", None)
            if last is not None:
                self._job.watched[part] = Position(at.ledger_id, last)
            self._read(part + 1, found, reads - 1, told, now)
            return
        self._job.watched[part] = Position(at.ledger_id, read.next_entry - 1)
        self._read(part, found + read.messages, reads - 1, told, now)

    def tripped(self) -> str:
        """Why the job is to stop, empty where it need not."""
        spec, counts = self._job.spec, self._job.progress.counts
        returned, done = counts.returned - self._job.forgiven[0], counts.done - self._job.forgiven[1]
        told = f"{returned} of {done} messages that were put back are dead letters again"
        if 0 < spec.max_returned <= returned:
            return f"{told}, {spec.max_returned} stop the job: {_ADVICE}"
        if 0 < spec.max_share * done < returned and returned >= SHARE_FROM:
            return f"{told}, more than {spec.max_share:.0%}: {_ADVICE}"
        return ""


_ADVICE: Final = "mend what makes them fail, then resume it, or cancel it"
