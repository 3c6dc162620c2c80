"""Who watches which lists of topics, and what they are told: pattern subscriptions that learn of new topics at once.

Watchers of one pattern in one namespace share one list. What changes is gathered and told after a pause that grows with
the lists, because each change of a list costs a hash over all of its names: ten thousand topics that are made in a row
are a few updates, and lists of any length take some tenth of the processor. Only persistent topics are watched, as in
Pulsar: for others clients ask again and again. Source: PIP-179,
https://github.com/apache/pulsar/blob/master/pip/pip-179.md.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.core import Core
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.topics_hash import topics_hash
from pulsarbox.protocol.topics_pattern import TopicsPattern

if TYPE_CHECKING:
    from pulsarbox.broker.cnx import ServerCnx

PAUSE_SECONDS: Final = 0.01
"""What changes within it is told together."""
PAUSE_SECONDS_A_NAME: Final = 5e-6
"""More of it for each name of the lists that have changed: some ten times what it takes to tell."""
LATE_SECONDS: Final = 1.0
"""How often a client that does not read is looked at again."""
UPDATE_NAMES: Final = 20_000
"""In one update; more follow in the next. A frame may have 5 MiB."""
LISTS_MAX: Final = 1000
"""Different lists that are watched in one box."""
WATCHERS_MAX: Final = 1000
"""Watchers of one connection."""


class TopicList:
    """The names in a namespace that match a pattern, as its watchers know them."""

    def __init__(self, pattern: TopicsPattern, names: Iterable[str]) -> None:
        self.pattern = pattern
        self.names = dict.fromkeys(pattern.of(names))
        self.digest = topics_hash(self.names)
        self.watchers: dict[tuple[ServerCnx, int], bool] = {}
        """Each with whether it has missed updates, because its client does not read."""
        self._pending: dict[str, bool] = {}
        """Topics that have come (True) or gone since: the last word on each."""
        self._missed: dict[str, None] = {}
        """Topics that have gone while somebody misses updates."""

    def changed(self, name: str, *, exists: bool) -> None:
        """A topic has come or gone."""
        if exists == (name in self.names):
            self._pending.pop(name, None)
        else:
            self._pending[name] = exists

    @property
    def is_late(self) -> bool:
        """Whether there is a client that has missed something."""
        return any(self.watchers.values())

    @property
    def is_behind(self) -> bool:
        """Whether watchers are still to be told something."""
        return bool(self._pending) or self.is_late

    def tell(self) -> None:
        """Tell the watchers what has changed, so much at most as goes into one update."""
        new, gone = self._take()
        for (cnx, watcher_id), late in self.watchers.items():
            if cnx.outbox.full:
                self.watchers[cnx, watcher_id] = True
            elif late:  # what it has already does no harm
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
    """All lists that are watched, by namespace and pattern."""

    def __init__(self, core: Core, persistent_names: Callable[[str], Iterable[str]]) -> None:
        self._core = core
        self._persistent_names = persistent_names
        self._lists: dict[str, dict[str, TopicList]] = {}
        self._behind: dict[TopicList, None] = {}
        self._timed = False
        """Those that are behind will be told: a timer runs, or a commit is under way."""

    def watch(self, cnx: "ServerCnx", watcher_id: int, namespace: str, pattern: TopicsPattern) -> TopicList:
        """Tell a client of changes from now on; the list, as it is told so far.

        A watcher that is there already stays as it is: so a client asks whether it has missed anything. Raises
        NotAllowed where too many watch.
        """
        known = cnx.watched.get(watcher_id)
        if known is not None:
            return known
        if len(cnx.watched) >= WATCHERS_MAX:
            raise NotAllowed(f"Unable to create topic list watcher: a connection has {WATCHERS_MAX} at most")
        lists = self._lists.setdefault(namespace, {})
        found = lists.get(pattern.text)
        if found is None:
            if sum(map(len, self._lists.values())) >= LISTS_MAX:
                raise NotAllowed(f"Unable to create topic list watcher: {LISTS_MAX} lists are watched, and no more can")
            found = lists[pattern.text] = TopicList(pattern, self._persistent_names(namespace))
        found.watchers[cnx, watcher_id] = False
        cnx.watched[watcher_id] = found
        return found

    def leave(self, cnx: "ServerCnx", watcher_id: int) -> None:
        """A client does not want to know any more; nothing for one that does not watch."""
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
        """A persistent topic has come or gone."""
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
        # What is told is durable: a client that subscribes at once finds it whatever happens to the box.
        self._core.timers.at(now.monotonic + pause, lambda when: self._core.commits.after_commit(self._tell))

    def _tell(self, now: Now) -> None:
        self._timed = False
        behind, self._behind = self._behind, {}
        for found in behind:
            found.tell()
            if found.is_behind:
                self._behind[found] = None
        self._keep_time(now)
