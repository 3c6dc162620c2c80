"""Samples of topics that are not in memory: their backlogs and sizes, from their rows.

Unused topics do not change, so their rows are read once, some topics per turn. If there are few, their samples are
always kept, for graphs and the history; otherwise up to ``KEPT_MAX`` are kept while a live view is open.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.broker.stats.topic_samples import SubscriptionSample, TopicSample, letters_of
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.broker.subscription.offloaded_ledgers import offloaded_bytes, stored_ranges
from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.dead_letter_topics import for_dead_letters

if TYPE_CHECKING:
    from pulsarbox.broker.topic.registry import Topics
    from pulsarbox.storage.recovery import Store, StoredTopic

KEPT_MAX: Final = 100_000
"""Maximum number of samples."""
KEPT_ALWAYS: Final = 2_000
"""Up to this many samples are kept even without a live view. A sample takes 1 to 2 KB."""
A_SECOND: Final = 50
"""Topics sampled per second without a live view."""
KEPT_SECONDS: Final = 600.0
"""How long samples are kept after the last request."""
_PAGE: Final = 500


class StoredSamples:
    """The samples of topics that are not in memory."""

    def __init__(self, topics: "Topics", store: "Store") -> None:
        self._topics = topics
        self._store = store
        self.topics: dict[str, TopicSample] = {}
        """Samples by topic name."""
        self.totals = Totals()
        """Totals of all samples."""
        self._active = False
        self._after: str | None = None
        """The last key of the pages read; None: all were read."""
        self._names: list[str] = []
        """Topics still to be sampled, the next one last: the rest of the page, and topics that have changed."""
        self.found = False
        """Whether all topics have been sampled; some may have changed since."""
        self._used_at = 0.0
        self._many = False
        """Whether there were more than KEPT_ALWAYS samples."""
        topics.rows_changed.add(self.changed)

    def begin(self, now: Now) -> None:
        """Start sampling, and keep the samples for another KEPT_SECONDS."""
        self._used_at = now.monotonic
        if not self._active:
            self._active = True
            self._after = ""

    def sample(self, now: Now) -> None:
        """Sample some topics if there are few, and drop unused samples; called once a second."""
        if not self._many and len(self.topics) <= KEPT_ALWAYS:
            self.begin(now)
            self.step(A_SECOND)
        self.tidy(now)

    @property
    def complete(self) -> bool:
        """Whether all samples are up to date."""
        return self._active and self._after is None and not self._names

    @property
    def active(self) -> bool:
        """Whether samples are kept or being collected."""
        return self._active

    def tidy(self, now: Now) -> None:
        """Drop the samples if they have not been requested for KEPT_SECONDS."""
        if self._active and now.monotonic - self._used_at > KEPT_SECONDS:
            self._active = self.found = False
            self._many = len(self.topics) > KEPT_ALWAYS
            self.topics.clear()
            self.totals = Totals()
            self._names.clear()
            self._after = None

    def changed(self, name: str) -> None:
        """Sample a topic again whose rows have changed, or which has just left memory."""
        if self._active:
            self._names.append(name)

    def step(self, at_once: int) -> bool:
        """Sample up to ``at_once`` topics; return whether none is left."""
        for _ in range(at_once):
            name = self._next()
            if name is None:
                self.found |= self.complete
                return True
            self._sample_topic(name)
        self.found |= self.complete
        return self._after is None and not self._names

    def _next(self) -> str | None:
        if not self._names and self._after is not None and len(self.topics) < KEPT_MAX:
            keys, self._after = self._store.catalog.page(topic_key(""), self._after, _PAGE)
            self._names += [key.partition("/")[2] for key in reversed(keys)]
        return self._names.pop() if self._names else None

    def _sample_topic(self, name: str) -> None:
        self.discard(name)
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
        found.offloaded = offloaded_bytes(stored.ledger, stored_ranges(stored, self._store.catalog))
        if for_dead_letters(parsed, row):
            found.stored_letters = letters_of(stored)
        self.totals.count(found)
        if not was_there:
            self._store.forget(stored)  # unchanged, so there is nothing to write back

    def discard(self, name: str) -> None:
        """Remove the sample of a topic that was loaded or deleted."""
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
