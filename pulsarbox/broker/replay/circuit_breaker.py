"""Circuit breaker of replay jobs: stops a job when too many replayed messages become dead letters again.

A replayed message has its job's number as a property. The box and the Java, C++, Python and Go clients keep it when
they move the message to a dead letter topic again. Once a second, the new entries of the dead letter topics are read:
the one that the job replays, and those of all subscriptions of its target topics, as set by the box's policy or by the
clients' naming convention.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.replay.job import NOWHERE, OTHERS, SHARE_FROM, Job
from pulsarbox.broker.replay.transform import Returned, count_returned
from pulsarbox.broker.security.authorization import CONSUME
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.transactions.visibility import next_visible
from pulsarbox.clock import Now
from pulsarbox.errors import InvalidTopicName, PulsarBoxError
from pulsarbox.names import DEAD_LETTER_SUFFIX, TopicName, parse_topic
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.replay.job_services import JobServices
    from pulsarbox.broker.topic.topic import PersistentTopic

LOOK_SECONDS: Final = 1.0
TOPICS_A_SECOND: Final = 20
"""With more topics, the interval between checks grows."""
READ_ENTRIES: Final = 500
READ_BYTES: Final = 1 << 20
READS_MAX: Final = 20
"""Reads per check, but at least one per topic; the next check continues."""
OTHERS_MAX: Final = 100
"""Dead letter topics or partitions watched in addition to the job's own."""
SUBSCRIPTIONS_MAX: Final = 1000
"""Subscriptions of the target topics whose dead letter topics are watched."""
ELSEWHERE: Final = "elsewhere"
"""Shown in place of a topic that the job's creator has no permission to consume."""

Look = Callable[[str, Now], "PersistentTopic | None"]
Told = Callable[[int, Now], None]


class CircuitBreaker:
    """Detects messages of one job that return as dead letters."""

    def __init__(self, services: "JobServices", job: Job, find: Look) -> None:
        self._catalog = services.catalog
        self._reads = services.reads
        self._authorization = services.authorization
        self._topics = services.topics
        self._max_message_size = services.max_message_size
        self._job = job
        self._find = find
        self._next_at = 0.0
        self._ends = {part.topic: part.end for part in job.parts}
        self._places: list[str] = []
        self.last_check = False
        """Whether the final check after the job's last message has started."""

    def due(self, now: Now) -> bool:
        """Return whether the next check is due."""
        return now.monotonic >= self._next_at and self._job.progress.counts.done > 0

    def notice(self, before: Collection[str], now: Now) -> None:
        """Start watching the dead letter topics of new targets, those not in ``before``, from their current end."""
        new = [name for name in self._job.progress.counts.targets if name not in before]
        for name in self._letter_topics(new):
            topic = self._find(name, now)
            if topic is not None:
                self._watch(name, topic.ledger.last_confirmed)

    def check(self, told: Told, now: Now) -> None:
        """Read new dead letters, and pass the number of the job's messages among them to ``told``."""
        job = self._job
        for name in self._letter_topics(job.progress.counts.targets):
            self._watch(name, NOWHERE)  # created meanwhile
        goals = self._goals()
        self._places = [name for name in self._ends | job.watched if parse_topic(name).base not in goals]
        self._next_at = now.monotonic + LOOK_SECONDS * max(1, len(self._places) / TOPICS_A_SECOND)
        self._read(0, 0, max(READS_MAX, len(self._places)), told, now)

    # Watched topics

    def _watch(self, name: str, since: Position) -> None:
        watched = self._job.watched
        if name not in watched and len(watched.keys() - self._ends.keys()) < OTHERS_MAX:
            watched[name] = since

    def _letter_topics(self, targets: Collection[str]) -> Iterator[str]:
        """Yield the existing dead letter topics of these topics, except the job's own topic and targets."""
        known = self._goals() | {self._job.spec.topic.base}
        for subscription in islice(self._subscriptions(targets), SUBSCRIPTIONS_MAX):
            for name in letter_topics_of(subscription):
                if name.base in known:
                    continue
                known.add(name.base)
                parts = [name.partition(i) for i in range(self._topics.partitions(name))] or [name]
                yield from (str(part) for part in parts if self._topics.exists(part))

    def _goals(self) -> set[TopicName]:
        """Return the job's target topics, as far as they are counted individually."""
        return {parse_topic(name).base for name in self._job.progress.counts.targets if name != OTHERS}

    def _subscriptions(self, targets: Collection[str]) -> Iterator[Subscription]:
        """Yield the subscriptions of those topics that are in memory; others have no consumers."""
        for target in targets:
            if target == OTHERS:
                continue
            base = parse_topic(target).base
            for name in [base.partition(i) for i in range(self._topics.partitions(base))] or [base]:
                yield from getattr(self._topics.loaded(name), "subscriptions", {}).values()

    # Reading

    def _read(self, part: int, found: int, reads: int, told: Told, now: Now) -> None:
        job = self._job
        for number in range(part, len(self._places) if reads else 0):
            name = self._places[number]
            topic = self._find(name, now)
            if topic is None:
                continue
            at = topic.ledger.next(*(job.watched.get(name) or self._ends[name]))
            visible = next_visible(topic.stored, self._catalog, at)
            if visible is None:
                continue
            at, behind = visible
            last = min(at.entry_id + READ_ENTRIES, behind) - 1
            work = partial(count_returned, job.number, name, self._max_message_size)
            answer = partial(self._answer, number, at, found, reads, told)
            self._reads.ask_for_work(at.ledger_id, at.entry_id, last, READ_BYTES, answer, work)
            return
        told(found, now)

    def _answer(
        self, part: int, at: Position, found: int, reads: int, told: Told, read: Returned | None,
        error: Exception | None, now: Now,
    ) -> None:  # fmt: skip
        name, counts = self._places[part], self._job.progress.counts
        if read is None:  # damaged or trimmed: the next check skips it or retries
            last = getattr(error, "last", None)
            if last is not None:
                self._job.watched[name] = Position(at.ledger_id, last)
            self._read(part + 1, found, reads - 1, told, now)
            return
        self._job.watched[name] = Position(at.ledger_id, read.next_entry - 1)
        if read.messages:
            counts.returned += read.messages
            counts.tally(counts.returned_in, self.shown(name), read.messages)
        self._read(part, found + read.messages, reads - 1, told, now)

    def shown(self, name: str) -> str:
        """Return the topic's name, or ELSEWHERE if the job's creator must not see it."""
        spec, topic = self._job.spec, parse_topic(name)
        own = topic.base == spec.topic.base
        try:
            self._authorization.require_on_topic(spec.principal, topic, (CONSUME,), spec.subscription if own else "")
        except PulsarBoxError:
            return ELSEWHERE
        return str(topic.base)

    def tripped(self) -> str:
        """Return why the job must stop; empty if it need not."""
        spec, counts = self._job.spec, self._job.progress.counts
        returned, done = counts.returned - self._job.forgiven[0], counts.done - self._job.forgiven[1]
        where = ", ".join(counts.returned_in)
        told = f"{returned} of {done} replayed messages became dead letters again, in {where}"
        if 0 < spec.max_returned <= returned:
            return f"{told}; the job stops at {spec.max_returned}: {_ADVICE}"
        if 0 < spec.max_share * done < returned and returned >= SHARE_FROM:
            return f"{told}; the job stops above {spec.max_share:.0%}: {_ADVICE}"
        return ""


_ADVICE: Final = "fix the cause, then resume or cancel the job"


def letter_topics_of(subscription: Subscription) -> Iterator[TopicName]:
    """Yield the possible dead letter topics of a subscription: by the box's policy and by the clients' convention."""
    policy, topic, name = subscription.dead_letters.policy, subscription.topic_name.base, subscription.name
    if policy is not None:
        yield policy.topic
    for local in (f"{topic.local}-{name}", name):  # the second by old clients
        with suppress(InvalidTopicName):
            yield parse_topic(str(topic._replace(local=local + DEAD_LETTER_SUFFIX)))
