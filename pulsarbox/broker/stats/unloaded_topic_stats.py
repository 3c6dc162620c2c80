"""What is known of topics that are not in memory: their backlogs and sizes, from their rows.

A topic that nobody uses does not change, so its rows are read once, of some topics at a time. Where they are few they
are known all the time, for graphs and the history; of more, ``KEPT_MAX`` at most, while somebody watches.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.broker.dead_letter.retention_warning import for_dead_letters
from pulsarbox.broker.stats.topic_samples import SubscriptionSample, TopicSample, letters_of
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import topic_key

if TYPE_CHECKING:
    from pulsarbox.broker.topic.registry import Topics
    from pulsarbox.storage.recovery import Store, StoredTopic

KEPT_MAX: Final = 100_000
"""Topics that are known at most."""
KEPT_ALWAYS: Final = 2_000
"""Where there are no more, they are known whether somebody watches or not. One takes a kilobyte or two."""
A_SECOND: Final = 50
"""Of how many the rows are read a second where nobody watches."""
KEPT_SECONDS: Final = 600.0
"""So long after the last request what was found is kept."""
_PAGE: Final = 500


class StoredSamples:
    """The topics that are not in memory."""

    def __init__(self, topics: "Topics", store: "Store") -> None:
        self._topics = topics
        self._store = store
        self.topics: dict[str, TopicSample] = {}
        """By name."""
        self.totals = Totals()
        """Of all of them."""
        self._active = False
        self._after: str | None = None
        """The last key that was looked at; None: all were."""
        self._names: list[str] = []
        """What is left of the page, and what has changed since, the next at the end."""
        self.found = False
        """All were looked at; some of them may have changed since."""
        self._used_at = 0.0
        self._many = False
        """There were more than are known all the time."""
        topics.rows_changed = self.changed

    def begin(self, now: Now) -> None:
        """Somebody is watching: find out what is not known yet."""
        self._used_at = now.monotonic
        if not self._active:
            self._active = True
            self._after = ""

    def keep(self, now: Now) -> None:
        """A second has passed: see that they are known where they are few, and let go what nobody wants."""
        if not self._many and len(self.topics) <= KEPT_ALWAYS:
            self.begin(now)
            self.step(A_SECOND)
        self.tidy(now)

    @property
    def complete(self) -> bool:
        """Whether all topics are known."""
        return self._active and self._after is None and not self._names

    @property
    def active(self) -> bool:
        """Whether what is stored is known, or being found out."""
        return self._active

    def tidy(self, now: Now) -> None:
        """Let go what nobody has wanted for a while."""
        if self._active and now.monotonic - self._used_at > KEPT_SECONDS:
            self._active = self.found = False
            self._many = len(self.topics) > KEPT_ALWAYS
            self.topics.clear()
            self.totals = Totals()
            self._names.clear()
            self._after = None

    def changed(self, name: str) -> None:
        """The rows of a topic that is not in memory have changed, or it has just left it."""
        if self._active:
            self._names.append(name)

    def step(self, at_once: int) -> bool:
        """Look at some topics; whether that is all."""
        for _ in range(at_once):
            name = self._next()
            if name is None:
                self.found |= self.complete
                return True
            self._look_at(name)
        self.found |= self.complete
        return self._after is None and not self._names

    def _next(self) -> str | None:
        if not self._names and self._after is not None and len(self.topics) < KEPT_MAX:
            keys, self._after = self._store.catalog.page(topic_key(""), self._after, _PAGE)
            self._names += [key.partition("/")[2] for key in reversed(keys)]
        return self._names.pop() if self._names else None

    def _look_at(self, name: str) -> None:
        self.came(name)
        if self._topics.in_memory(name):
            return
        parsed = parse_topic(name)
        row = self._store.catalog.get(topic_key(name))
        if row is None:
            return
        was_there = row["id"] in self._store.topics
        stored = self._store.topic(name)
        assert stored is not None
        found = self.topics[name] = _sample_of(stored, name, parsed.namespace)
        if for_dead_letters(parsed, row):
            found.stored_letters = letters_of(stored)
        self.totals.count(found)
        if not was_there:
            self._store.forget(stored)  # it was looked at and is what it was: there is nothing to be written

    def came(self, name: str) -> None:
        """A topic is in memory now, or is no more."""
        gone = self.topics.pop(name, None)
        if gone is not None:
            self.totals.uncount(gone)


def _sample_of(stored: "StoredTopic", name: str, namespace: str) -> TopicSample:
    found = TopicSample(name, namespace, 0.0)
    for cursor in stored.cursors.values():
        sample = SubscriptionSample(found, cursor.name, 0.0, backlog=cursor.backlog_messages)
        found.subscriptions[cursor.name] = sample
        found.backlog += sample.backlog
    found.size = stored.ledger.size
    return found
