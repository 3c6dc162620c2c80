"""Execution of a job in steps: read entries, decide what to do with each, and apply that in one batch.

At most one step is uncommitted. The messages it publishes, its acknowledgements and the job's progress are in one
batch, so they agree after any crash. If the commit fails, the job returns to the state before the step and retries.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from pulsarbox.broker.replay.circuit_breaker import CircuitBreaker
from pulsarbox.broker.replay.job import NOWHERE, REPLAY, Job, JobProgress
from pulsarbox.broker.replay.job_states import DONE, FAILED, PAUSED
from pulsarbox.broker.replay.schema_check import SchemaCheck
from pulsarbox.broker.replay.transform import Outcome, Worked, work_on
from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.timers import Timer
from pulsarbox.broker.topic.internal_publisher import QuotaReached
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.topic.topic_schemas import StillComparing
from pulsarbox.broker.transactions.visibility import visible_runs
from pulsarbox.clock import Now
from pulsarbox.errors import (
    EntryDamaged,
    PersistenceError,
    PulsarBoxError,
    ServiceNotReady,
    TopicNotFound,
)
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.storage.format import MOVED
from pulsarbox.storage.record import BatchAcked, Entry, Position, pack_batch_acked, pack_moved

if TYPE_CHECKING:
    from pulsarbox.broker.replay.job_services import JobServices

log = logging.getLogger(__name__)

READ_ENTRIES: Final = 200
READ_BYTES: Final = 1 << 20
"""Entries and bytes per read; a single entry may be larger."""
TURN_ENTRIES: Final = 50
TURN_BYTES: Final = 1 << 20
"""Entries and bytes published in one turn, so that other clients are served in between."""
STEP_SECONDS: Final = 0.1
"""A step moves at most this many seconds' worth of the rate."""
AGAIN_SECONDS: Final = 1.0
"""Pause before a retry."""
KEEP_ENTRIES: Final = 2000
"""Entries processed after which the progress is stored even if none was moved."""


class EntryStep:
    """One entry that is being moved."""

    __slots__ = ("cursor_resets", "entry", "left", "subscription")

    def __init__(self, subscription: Subscription, entry: Entry, left: int) -> None:
        self.subscription = subscription
        self.cursor_resets = subscription.resets
        self.entry = entry
        self.left = left
        """Bits of its messages that stay unacknowledged."""

    def acked(self, cursor_id: int) -> bytes:
        """See group_commit.Move."""
        if not self.left:
            return pack_moved(cursor_id, self.entry)
        partly = BatchAcked(cursor_id, self.entry.position, self.entry.num_messages, self.left)
        return pack_batch_acked(partly, MOVED)


class JobStopped(Exception):
    """The job cannot continue and enters ``state``."""

    def __init__(self, state: str, why: str) -> None:
        super().__init__(why)
        self.state = state


class JobMustWait(Exception):
    """The operation is not possible now and is retried; the text says why."""


class RunOwner(Protocol):
    """The registry of jobs, which learns how a run goes."""

    def stopped(self, run: "JobRun", state: str, why: str, now: Now) -> None:
        """Handle a job that has finished or cannot continue."""

    def tripped(self, run: "JobRun", why: str, now: Now) -> None:
        """Stop a job whose circuit breaker has tripped."""

    def store_progress(self, job: Job) -> None:
        """Store the progress of a job in the open batch."""


class JobRun:
    """The execution of one job."""

    def __init__(self, jobs: RunOwner, services: "JobServices", job: Job) -> None:
        self._jobs = jobs
        self._catalog = services.catalog
        self._commits = services.commits
        self._timers = services.timers
        self._reads = services.reads
        self._authorization = services.authorization
        self._quarantine = services.quarantine
        self._topics = services.topics
        self._schemas = services.schemas
        self._dead_letters = services.dead_letters
        self._max_message_size = services.max_message_size
        self.job = job
        self.read_entries = READ_ENTRIES
        self.turn_entries = TURN_ENTRIES
        self._over = False
        self._timer: Timer | None = None
        self._reading = False
        self._queue: list[Outcome] = []
        """Outcomes still to be applied."""
        self._before: JobProgress | None = None
        """Progress before the uncommitted step; None without one."""
        self._not_before = 0.0
        self._kept = 0
        """Value of ``_passed`` when the progress was last stored."""
        self._passed = 0
        self._known: dict[TopicName, PersistentTopic] = {}
        """Cache of the target topics of this turn."""
        self._fitting = SchemaCheck(services.schemas, job.spec.edit)
        watched = job.moves and job.spec.kind == REPLAY
        self._returns = CircuitBreaker(services, job, self._seen) if watched else None

    # Start and stop

    def begin(self, now: Now) -> None:
        """Start or continue the job in the next turn."""
        self._over = False
        self._again(now.monotonic)

    def end(self) -> None:
        """Halt the job; an uncommitted step is still completed or reverted."""
        self._over = True
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _again(self, monotonic: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.at(monotonic, self._step)

    def _stop(self, state: str, why: str, now: Now) -> None:
        self._jobs.stopped(self, state, why, now)

    # Steps

    def _step(self, now: Now) -> None:
        self._timer = None
        if self._over or self._reading or self._before is not None:
            return
        try:
            self._continue(now)
        except JobStopped as stopped:
            self._stop(stopped.state, str(stopped), now)
        except JobMustWait as reason:
            self._wait(str(reason), now)

    def _wait(self, why: str, now: Now) -> None:
        if self.job.error != why:
            log.info("job %d is waiting: %s", self.job.number, why)
        self.job.error = why
        self._again(now.monotonic + AGAIN_SECONDS)

    def _continue(self, now: Now) -> None:
        refusal = self._commits.housekeeping.refusal
        if refusal is not None and self.job.moves:
            raise JobMustWait(refusal)
        if self._returns is not None and self._returns.due(now):
            self._reading = True
            self._returns.check(self._returned, now)
            return
        if now.monotonic < self._not_before:
            self._again(self._not_before)
        elif self.job.progress.part >= len(self.job.parts):
            self._finish(now)
        elif self._queue:
            self._work(now)
        else:
            self._read(now)

    def _finish(self, now: Now) -> None:
        if self._returns is not None and not self._returns.last_check:
            self._returns.last_check = self._reading = True
            self._returns.check(self._returned, now)
            return
        self._stop(DONE, "", now)

    def _returned(self, found: int, now: Now) -> None:
        """Handle the result of a circuit breaker check."""
        self._reading = False
        if found:
            self._jobs.store_progress(self.job)
        if self._over:
            return
        assert self._returns is not None
        tripped = self._returns.tripped()
        if tripped:
            self._jobs.tripped(self, tripped, now)
            return
        self._again(now.monotonic)

    # Topic and subscription

    def _topic_of_part(self, name: str, now: Now) -> PersistentTopic:
        """Return the topic of a part. Raises Stopped, NotNow."""
        try:
            topic = self._topics.open(parse_topic(name), now, create=False)
        except ServiceNotReady as error:
            raise JobMustWait(str(error)) from None
        except TopicNotFound:
            raise JobStopped(FAILED, f"{name} was deleted") from None
        except PulsarBoxError as error:
            raise JobStopped(FAILED, str(error)) from None
        assert isinstance(topic, PersistentTopic)
        return topic

    def _seen(self, name: str, now: Now) -> PersistentTopic | None:
        """Return the topic of a part, None if it is not available; the job itself will report why."""
        try:
            return self._topic_of_part(name, now)
        except (JobStopped, JobMustWait):
            return None

    def _place(self, now: Now) -> tuple[PersistentTopic, Subscription | None]:
        """Return the current topic and subscription. Raises Stopped, NotNow."""
        spec = self.job.spec
        topic = self._topic_of_part(self.job.parts[self.job.progress.part].topic, now)
        subscription = topic.subscriptions.get(spec.subscription) if spec.subscription else None
        if subscription is None:
            if self.job.moves or spec.subscription:
                raise JobStopped(FAILED, f"the subscription {spec.subscription} of {topic.name} was deleted")
        elif subscription.fenced:
            raise JobMustWait(f"the subscription {spec.subscription} is being reset")
        elif subscription.moving:  # by a job cancelled just now, or to a dead letter topic
            raise JobMustWait(f"messages moved from {spec.subscription} are still being committed")
        elif subscription.consumers and self.job.moves:
            raise JobStopped(
                PAUSED, f"the subscription {spec.subscription} has consumers, which would receive the same messages"
            )
        authorization = self._authorization
        try:
            authorization.require_on_topic(spec.principal, topic.name, (CONSUME,), spec.subscription)
        except PulsarBoxError as error:
            raise JobStopped(PAUSED, str(error)) from None
        return topic, subscription

    # Reading

    def _read(self, now: Now) -> None:
        topic, subscription = self._place(now)
        progress, part = self.job.progress, self.job.parts[self.job.progress.part]
        ledger = topic.ledger
        at = ledger.next(*progress.at)
        if subscription is not None:
            at = subscription.cursor.next_unacked(at)
        limit = ledger.read_end
        if not progress.chunks:
            limit = min(part.end, limit)
        info = ledger.ledgers.get(at.ledger_id)
        if at > limit or info is None:
            self.job.progress = JobProgress(progress.part + 1, NOWHERE, progress.counts)
            self._again(now.monotonic)
            return
        last = min(at.entry_id + self.read_entries, info.confirmed) - 1
        if at.ledger_id == limit.ledger_id:
            last = min(last, limit.entry_id)
        if subscription is None and topic.stored.has_aborted:
            first, end = next(
                visible_runs(topic.stored, self._catalog, at.ledger_id, at.entry_id, last + 1),
                (last + 1, last + 1),
            )
            if first > at.entry_id:  # skip entries of aborted transactions
                self.job.progress.at = Position(at.ledger_id, first - 1)
                self._again(now.monotonic)
                return
            last = end - 1
        unacked: dict[tuple[int, int], int] = {}
        if subscription is not None:
            partly = subscription.cursor.batch_acks
            found = ((each, partly.get(each)) for each in [(at.ledger_id, i) for i in range(at.entry_id, last + 1)])
            unacked = {each: bits[1] for each, bits in found if bits is not None}
        schemas = self._schemas.by_version(topic.name)
        task = self.job.task(part.topic, self._max_message_size)
        work = partial(work_on, task, schemas, unacked, progress.chunks, part.end)
        self._reading = True
        self._reads.ask_for_work(at.ledger_id, at.entry_id, last, READ_BYTES, self._answer, work)

    def _answer(self, found: Worked | None, error: Exception | None, now: Now) -> None:
        self._reading = False
        if self._over:
            return
        if found is not None:
            self._queue = found.outcomes
        elif isinstance(error, EntryDamaged):
            self._quarantine.report(error, now)
            counts = self.job.progress.counts
            lost = error.counts[0] if error.counts is not None else error.last - error.first + 1
            counts.seen, counts.failed = counts.seen + lost, counts.failed + lost
            counts.tally(counts.reasons, "it is damaged and cannot be read", lost)
            self.job.progress.at = Position(error.ledger_id, error.last)
            self._jobs.store_progress(self.job)
        else:
            self._not_before = now.monotonic + AGAIN_SECONDS  # trimmed meanwhile, or the read failed
        self._again(now.monotonic)

    # Applying outcomes

    def _work(self, now: Now) -> None:
        """Apply queued outcomes, as many as one turn allows."""
        topic, subscription = self._place(now)
        job, before = self.job, self.job.progress.copy()
        most = max(1, job.spec.rate * STEP_SECONDS) if job.spec.rate and job.moves else float("inf")
        steps: list[EntryStep] = []
        size, looked = 0, 0
        stopped: JobStopped | JobMustWait | None = None
        done_before = before.counts.done
        self._known.clear()
        while self._queue and looked < self.turn_entries and size < TURN_BYTES:
            if job.progress.counts.done - done_before >= most:
                break
            outcome = self._queue[0]
            if not self._is_current(outcome, subscription):
                self._queue.clear()  # partly acknowledged since it was read: read it again
                break
            try:
                step = self._do(outcome, topic, subscription, now)
            except (JobMustWait, JobStopped) as reason:
                stopped = reason
                break
            self._queue.pop(0)
            looked, size = looked + 1, size + len(outcome.entry.body)
            if step is not None:
                steps.append(step)
        self._passed += looked
        sent = job.progress.counts.done - done_before
        if job.spec.rate and job.moves:
            self._not_before = max(self._not_before, now.monotonic) + sent / job.spec.rate
        if steps:
            self._send(steps, before, now)
        elif self._passed - self._kept >= KEEP_ENTRIES:
            self._store_progress()
        if stopped is not None:
            raise stopped
        if not steps:
            self._again(now.monotonic)

    def _is_current(self, outcome: Outcome, subscription: Subscription | None) -> bool:
        """Return whether an entry's acknowledgement state is the same as when it was read."""
        if subscription is None:
            return True
        partly = subscription.cursor.batch_acks.get(outcome.entry.position)
        return outcome.unacked == (None if partly is None else partly[1])

    def _do(
        self, outcome: Outcome, topic: PersistentTopic, subscription: Subscription | None, now: Now
    ) -> EntryStep | None:
        """Apply the outcome of one entry. Raises Stopped, NotNow without having changed anything."""
        job, entry = self.job, outcome.entry
        progress, counts = job.progress, job.progress.counts
        if subscription is not None and subscription.cursor.is_acked(entry.ledger_id, entry.entry_id):
            progress.at = entry.position
            return None
        done, refused = outcome.done, dict(outcome.refused)
        why = self._post(outcome, topic, now) if outcome.back else ""
        if why:
            refused[why] = refused.get(why, 0) + done
            done = 0
        progress.at = entry.position
        counts.done += done
        counts.skipped += outcome.skipped
        counts.failed += sum(refused.values())
        counts.seen += done + outcome.skipped + sum(refused.values())
        for each, count in refused.items():
            counts.tally(counts.reasons, each, count)
        for back in outcome.back if done else ():
            counts.tally(counts.targets, back.target, back.messages)
        if outcome.chunk is not None and done:
            uuid = {outcome.chunk.uuid}
            progress.chunks = progress.chunks - uuid if outcome.chunk.last else progress.chunks | uuid
        return EntryStep(subscription, entry, outcome.left) if done and job.moves and subscription is not None else None

    def _post(self, outcome: Outcome, topic: PersistentTopic, now: Now) -> str:
        """Publish the messages of an outcome; return why they were rejected if the job continues. Raises as ``_do``."""
        spec = self.job.spec
        letters = [(parse_topic(back.target), back.letter) for back in outcome.back]
        try:
            for target, _ in letters:
                self._authorization.require_on_topic(spec.principal, target, (PRODUCE,))
            self._dead_letters.put_back(
                letters, topic.name, self._fitting.check, now, dry=spec.dry_run, known=self._known
            )
        except PulsarBoxError as error:
            later = isinstance(error, ServiceNotReady | PersistenceError) and not isinstance(error, QuotaReached)
            if later and (self.job.moves or isinstance(error, StillComparing)):
                raise JobMustWait(str(error)) from None
            if not self.job.moves or spec.skip_refused:
                return str(error)
            at = outcome.entry.position
            raise JobStopped(
                PAUSED, f"message {at.ledger_id}:{at.entry_id} was rejected and stays in place: {error}"
            ) from None
        return ""

    # Outcome of the commit

    def _send(self, steps: list[EntryStep], before: JobProgress, now: Now) -> None:
        self._before = before
        for step in steps:
            step.subscription.job_moves += 1
            self._commits.move(step.subscription.cursor, self, step)
        if self._returns is not None:
            self._returns.notice(before.counts.targets, now)
        self._store_progress()

    def _store_progress(self) -> None:
        self._kept = self._passed
        self._jobs.store_progress(self.job)

    def moved(self, moves: list[EntryStep], now: Now) -> None:
        """See group_commit.Mover."""
        self._before = None
        subscription = self._arrived(moves)
        if subscription is not None:
            whole = [step.entry for step in moves if self._acknowledge(step)]
            subscription.moved_on(whole, now)
        if not self._over:
            self.job.error = ""
            self._again(now.monotonic)

    def _acknowledge(self, step: EntryStep) -> bool:
        """Acknowledge a moved entry; return whether all its messages are acknowledged now."""
        cursor, entry = step.subscription.cursor, step.entry
        if step.cursor_resets != step.subscription.resets:
            return False
        if step.left and not cursor.acknowledge_batch(entry.position, entry.num_messages, step.left):
            return False
        size, total = len(entry.body), (entry.total_messages, entry.total_bytes)
        cursor.acknowledge(entry.ledger_id, entry.entry_id, entry.num_messages, size, *total)
        return True

    def not_moved(self, moves: list[EntryStep], now: Now) -> None:
        """See group_commit.Mover."""
        assert self._before is not None
        self.job.progress, self._before = self._before, None
        self._arrived(moves)
        self._queue.clear()
        self._store_progress()
        if not self._over:
            self._wait("its last step could not be stored and is retried", now)

    def _arrived(self, moves: list[EntryStep]) -> Subscription | None:
        """End these moves; return their subscription, None if it was deleted."""
        subscription = moves[0].subscription
        subscription.job_moves -= len(moves)
        return subscription if subscription.is_current else None
