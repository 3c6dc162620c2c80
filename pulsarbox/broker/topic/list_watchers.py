"""Topic list watchers: notify pattern subscriptions of created and deleted topics.

Watchers of the same pattern and namespace share one list. Changes are batched, with a pause that grows with the lists,
because each update hashes all names of its list. So 10,000 topics created in a row cause a few updates, and lists of
any length use about a tenth of the CPU. As in Pulsar, only persistent topics are watched; clients poll for others.
Source: PIP-179, https://github.com/apache/pulsar/blob/master/pip/pip-179.md.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Protocol

from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.topics_hash import topics_hash
from pulsarbox.protocol.topics_pattern import TopicsPattern

PAUSE_SECONDS: Final = 0.01
"""Minimum pause before an update; changes within it share one update."""
PAUSE_SECONDS_A_NAME: Final = 5e-6
"""Added to the pause for each name in the changed lists: about ten times the cost of an update."""
LATE_SECONDS: Final = 1.0
"""How often to retry updates to clients whose outbox is full."""
UPDATE_NAMES: Final = 20_000
"""Names in one update, which must fit into a frame of 5 MiB; the rest follow in the next."""
LISTS_MAX: Final = 1000
"""Distinct lists watched in one box."""
WATCHERS_MAX: Final = 1000
"""Watchers per connection."""


class WatchingConnection(Protocol):
    """A connection that watches topic lists."""

    outbox: Outbox
    watched: dict[int, "TopicList"]
    """Watched topic lists by watcher ID."""

    def __hash__(self) -> int:
        """Connections are keys of dictionaries."""


class TopicList:
    """The topic names in a namespace that match a pattern, as last sent to its watchers."""

    def __init__(self, pattern: TopicsPattern, names: Iterable[str]) -> None:
        self.pattern = pattern
        self.names = dict.fromkeys(pattern.of(names))
        self.digest = topics_hash(self.names)
        self.watchers: dict[tuple[WatchingConnection, int], bool] = {}
        """Watchers, and whether each has missed updates because its outbox was full."""
        self._pending: dict[str, bool] = {}
        """Latest state of topics changed since the last update: created (True) or deleted."""
        self._missed: dict[str, None] = {}
        """Topics deleted since some watcher first missed an update."""

    def changed(self, name: str, *, exists: bool) -> None:
        """Record that a topic was created or deleted."""
        if exists == (name in self.names):
            self._pending.pop(name, None)
        else:
            self._pending[name] = exists

    @property
    def is_late(self) -> bool:
        """Whether a watcher has missed an update."""
        return any(self.watchers.values())

    @property
    def is_behind(self) -> bool:
        """Whether updates are still to be sent."""
        return bool(self._pending) or self.is_late

    def notify(self) -> None:
        """Send the watchers one update, of UPDATE_NAMES changes at most."""
        new, gone = self._take()
        for (cnx, watcher_id), late in self.watchers.items():
            if cnx.outbox.full:
                self.watchers[cnx, watcher_id] = True
            elif late:  # resend the whole list; names that the client has already do no harm
                self.watchers[cnx, watcher_id] = False
                cnx.outbox.send(replies.watch_topic_update(watcher_id, self.names, self._missed, self.digest))
            elif new or gone:
                cnx.outbox.send(replies.watch_topic_update(watcher_id, new, gone, self.digest))
        if not self.is_late:
            self._missed.clear()

    def _take(self) -> tuple[list[str], list[str]]:
        some = list(islice(self._pending, UPDATE_NAMES))
        words = [(name, self._pending.pop(name)) for name in some]
        new, gone = [name for name, exists in words if exists], [name for name, exists in words if not exists]
        for name in new:
            self.names[name] = None
            self._missed.pop(name, None)
        for name in gone:
            del self.names[name]
            self._missed[name] = None
        if some:
            self.digest = topics_hash(self.names)
        return new, gone


class TopicLists:
    """All watched lists, by namespace and pattern."""

    def __init__(self, timers: Timers, commits: GroupCommit, persistent_names: Callable[[str], Iterable[str]]) -> None:
        self._timers = timers
        self._commits = commits
        self._persistent_names = persistent_names
        self._lists: dict[str, dict[str, TopicList]] = {}
        self._behind: dict[TopicList, None] = {}
        self._timed = False
        """Whether an update is scheduled: its timer runs or its commit is in progress."""

    def watch(self, cnx: WatchingConnection, watcher_id: int, namespace: str, pattern: TopicsPattern) -> TopicList:
        """Register a watcher and return its list as sent so far.

        An existing watcher is left unchanged: clients repeat the request to check that they have missed nothing.
        Raises NotAllowed if there are too many watchers or lists.
        """
        known = cnx.watched.get(watcher_id)
        if known is not None:
            return known
        if len(cnx.watched) >= WATCHERS_MAX:
            raise NotAllowed(f"Unable to create topic list watcher: a connection can have at most {WATCHERS_MAX}")
        lists = self._lists.setdefault(namespace, {})
        found = lists.get(pattern.text)
        if found is None:
            if sum(map(len, self._lists.values())) >= LISTS_MAX:
                raise NotAllowed(f"Unable to create topic list watcher: the broker watches at most {LISTS_MAX} lists")
            found = lists[pattern.text] = TopicList(pattern, self._persistent_names(namespace))
        found.watchers[cnx, watcher_id] = False
        cnx.watched[watcher_id] = found
        return found

    def leave(self, cnx: WatchingConnection, watcher_id: int) -> None:
        """Remove a watcher, if it exists."""
        found = cnx.watched.pop(watcher_id, None)
        if found is None:
            return
        del found.watchers[cnx, watcher_id]
        if found.watchers:
            return
        self._behind.pop(found, None)
        for namespace, lists in self._lists.items():
            if lists.get(found.pattern.text) is found:
                del lists[found.pattern.text]
                if not lists:
                    del self._lists[namespace]
                return

    def changed(self, name: str, now: Now, *, exists: bool) -> None:
        """Record that a persistent topic was created or deleted, and schedule the update."""
        if not self._lists or is_system(name):
            return
        for found in self._lists.get(parse_topic(name).namespace, {}).values():
            if found.pattern.matches(name):
                found.changed(name, exists=exists)
                self._behind[found] = None
        self._keep_time(now)

    def _keep_time(self, now: Now) -> None:
        if self._timed or not self._behind:
            return
        self._timed = True
        pause = PAUSE_SECONDS + PAUSE_SECONDS_A_NAME * sum(len(each.names) for each in self._behind)
        if all(each.is_late for each in self._behind):
            pause = max(pause, LATE_SECONDS)
        # Announce only durable topics: a client that subscribes at once finds the topic even after a crash.
        self._timers.at(now.monotonic + pause, lambda when: self._commits.after_commit(self._notify))

    def _notify(self, now: Now) -> None:
        self._timed = False
        behind, self._behind = self._behind, {}
        for found in behind:
            found.notify()
            if found.is_behind:
                self._behind[found] = None
        self._keep_time(now)
