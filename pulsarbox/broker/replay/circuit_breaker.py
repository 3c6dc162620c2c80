"""What a job has put back and what has come back as dead letters: the circuit breaker.

A replayed message bears the mark of its job, which whoever makes a dead letter of it again takes along: the box, and
the clients of Java, C++, Python and Go. What has come into dead letter topics since the job began is read once a
second: into the one that it takes them from, and into those of all subscriptions of the topics that it puts them into,
by the policy of the box or by the name that clients give them.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.policies.kinds.dead_letter import DEAD_LETTER_SUFFIX
from pulsarbox.broker.replay.job import NOWHERE, OTHERS, SHARE_FROM, Job
from pulsarbox.broker.replay.transform import Returned, count_returned
from pulsarbox.broker.security.authorization import CONSUME
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.transactions.visibility import next_visible
from pulsarbox.clock import Now
from pulsarbox.errors import InvalidTopicName, PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core
    from pulsarbox.broker.topic.topic import PersistentTopic

LOOK_SECONDS: Final = 1.0
TOPICS_A_SECOND: Final = 20
"""Where there are more it is looked less often."""
READ_ENTRIES: Final = 500
READ_BYTES: Final = 1 << 20
READS_MAX: Final = 20
"""Of one look, but one for each topic; the next goes on from there."""
OTHERS_MAX: Final = 100
"""Dead letter topics, or partitions of them, that are watched beside the one that the job is about."""
SUBSCRIPTIONS_MAX: Final = 1000
"""Of the topics that it puts messages into: so many are asked where their dead letters go."""
ELSEWHERE: Final = "elsewhere"
"""A topic that the one who asked for the job may not look into."""

Look = Callable[[str, Now], "PersistentTopic | None"]
Told = Callable[[int, Now], None]


class Returns:
    """Of one job."""

    def __init__(self, core: "Core", topics: Topics, job: Job, find: Look) -> None:
        self._core = core
        self._topics = topics
        self._job = job
        self._find = find
        self._next_at = 0.0
        self._ends = {part.topic: part.end for part in job.parts}
        self._places: list[str] = []
        self.last_looked = False
        """The job has done all it has to do, and this is the last look."""

    def due(self, now: Now) -> bool:
        """Whether to look again."""
        return now.monotonic >= self._next_at and self._job.progress.counts.done > 0

    def notice(self, before: Collection[str], now: Now) -> None:
        """Messages are about to go to topics to which none of the job's had gone ``before``: what is in the topics for
        their dead letters by now is nothing that comes back."""
        new = [name for name in self._job.progress.counts.targets if name not in before]
        for name in self._letter_topics(new):
            topic = self._find(name, now)
            if topic is not None:
                self._watch(name, topic.ledger.last_confirmed)

    def look(self, told: Told, now: Now) -> None:
        """Read what has come, and tell how many messages of the job's are among it."""
        job = self._job
        for name in self._letter_topics(job.progress.counts.targets):
            self._watch(name, NOWHERE)  # it was made meanwhile
        goals = self._goals()
        self._places = [name for name in self._ends | job.watched if parse_topic(name).base not in goals]
        self._next_at = now.monotonic + LOOK_SECONDS * max(1, len(self._places) / TOPICS_A_SECOND)
        self._read(0, 0, max(READS_MAX, len(self._places)), told, now)

    # Where

    def _watch(self, name: str, since: Position) -> None:
        watched = self._job.watched
        if name not in watched and len(watched.keys() - self._ends.keys()) < OTHERS_MAX:
            watched[name] = since

    def _letter_topics(self, targets: Collection[str]) -> Iterator[str]:
        """The topics that there are for the dead letters of these topics, but for those that the job itself knows."""
        known = self._goals() | {self._job.spec.topic.base}
        for subscription in islice(self._subscriptions(targets), SUBSCRIPTIONS_MAX):
            for name in letter_topics_of(subscription):
                if name.base in known:
                    continue
                known.add(name.base)
                parts = [name.partition(i) for i in range(self._topics.partitions(name))] or [name]
                yield from (str(part) for part in parts if self._topics.exists(part))

    def _goals(self) -> set[TopicName]:
        """The topics that the job puts messages into, as far as they are known one by one."""
        return {parse_topic(name).base for name in self._job.progress.counts.targets if name != OTHERS}

    def _subscriptions(self, targets: Collection[str]) -> Iterator[Subscription]:
        """Those of topics in memory: others have no consumers."""
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
        name, counts = self._places[part], self._job.progress.counts
        if read is None:  # damaged, or trimmed: the next look tries again, or is past it
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
        """The topic, as far as the one who asked for the job may know of it."""
        spec, topic = self._job.spec, parse_topic(name)
        own = topic.base == spec.topic.base
        try:
            self._core.authorization.require_on_topic(
                spec.principal, topic, (CONSUME,), spec.subscription if own else ""
            )
        except PulsarBoxError:
            return ELSEWHERE
        return str(topic.base)

    def tripped(self) -> str:
        """Why the job is to stop, empty where it need not."""
        spec, counts = self._job.spec, self._job.progress.counts
        returned, done = counts.returned - self._job.forgiven[0], counts.done - self._job.forgiven[1]
        where = ", ".join(counts.returned_in)
        told = f"{returned} dead letters again of {done} messages that were put back, in {where}"
        if 0 < spec.max_returned <= returned:
            return f"{told}; {spec.max_returned} stop the job: {_ADVICE}"
        if 0 < spec.max_share * done < returned and returned >= SHARE_FROM:
            return f"{told}; more than {spec.max_share:.0%} stop the job: {_ADVICE}"
        return ""


_ADVICE: Final = "mend what makes them fail, then resume it, or cancel it"


def letter_topics_of(subscription: Subscription) -> Iterator[TopicName]:
    """The topics that dead letters of a subscription may go to: by the box's policy, and as clients call them."""
    policy, topic, name = subscription.dead_letters.policy, subscription.topic.name.base, subscription.name
    if policy is not None:
        yield policy.topic
    for local in (f"{topic.local}-{name}", name):  # the second in old clients
        with suppress(InvalidTopicName):
            yield parse_topic(str(topic._replace(local=local + DEAD_LETTER_SUFFIX)))
