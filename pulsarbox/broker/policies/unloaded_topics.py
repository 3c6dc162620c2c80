"""Walks over stored topics, some in a turn: when a policy has changed, those that are not in memory are looked at too.

A walk is a row until it is done, written in the batch of the change, so that it goes on after a crash.
"""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_SIZE
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD
from pulsarbox.broker.policies.kinds.inactive_topic import INACTIVE_TOPIC
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.kinds.unsubscribed_retention import UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.precedence import GLOBAL
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.names import PERSISTENT
from pulsarbox.storage.catalog import KEPT, WALKS, Catalog, Row, topic_key, walk_key

AT_ONCE: Final = 10
"""Topics that are looked at in one turn, each with its rows."""

PAGE: Final = 500
"""Topics after which it is written down how far a walk has come."""

KEEPING: Final = (
    RETENTION, MESSAGE_TTL, BACKLOG_SIZE, INACTIVE_TOPIC, SUBSCRIPTION_EXPIRATION, COMPACTION_THRESHOLD,
    UNSUBSCRIBED_TIME,
)  # fmt: skip
"""The policies by which something happens to a topic that nobody uses. Both quotas of a backlog have one key."""

_KEYS: Final = frozenset({GLOBAL, *(place.key for policy in KEEPING for place in policy.row.places)})


class Walks:
    """The walks that are under way; they go one behind the other."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, timers: Timers) -> None:
        self._catalog = catalog
        self._commits = commits
        self._timers = timers
        self.look_at: Callable[[str, Now], None] = _nobody
        """Looks at one topic, in memory or not."""
        self.must_wait: Callable[[], bool] = lambda: False
        """Whether topics in memory are still being told: those need not be looked at again then."""
        self._keys: list[str] = []
        """What is left of the page."""
        self._walking: tuple[str, Row] | None = None
        """Whose page that is, and the row once it is done."""
        self._running = False

    @property
    def running(self) -> bool:
        """Whether there is any."""
        return self._running

    def start(self, settings: Settings, now: Now) -> None:
        """Go on with what a stop has interrupted; and what the broker's own values say may be something else now."""
        self.settings_changed(settings, now)
        self._go_on(now)

    def settings_changed(self, settings: Settings, now: Now) -> None:
        """The broker's own values may be others than those by which topics were looked at last."""
        values = [str(policy.broker(settings)) for policy in KEEPING]
        values += [str(settings.backlogQuotaDefaultLimitSecond), str(settings.backlogQuotaCheckEnabled)]
        if (self._catalog.get(KEPT) or {}).get("values") != values:
            self._commits.put_row(KEPT, {"values": values})
            if self._catalog.first(topic_key("")) is not None:
                self._walk(f"{PERSISTENT}://", now)

    def changed(self, name: str, before: Row, row: Row, now: Now) -> None:
        """What is set for a namespace (``tenant/namespace/``) or a topic was another row before."""
        if any(before.get(key) != row.get(key) for key in _KEYS):
            self._walk(name if "://" in name else f"{PERSISTENT}://{name}", now)

    def _walk(self, names: str, now: Now) -> None:
        """Look at all topics whose names begin so."""
        self._commits.put_row(walk_key(self._commits.new_id()), {"prefix": topic_key(names), "after": ""})
        self._go_on(now)

    def _go_on(self, now: Now) -> None:
        if not self._running and self._catalog.first(WALKS) is not None:
            self._running = True
            self._timers.at(now.monotonic, self._step)

    def _step(self, now: Now) -> None:
        if self.must_wait():
            self._timers.at(now.monotonic, self._step)
            return
        if not self._keys and not self._next_page():
            self._running = False
            return
        for _ in range(min(AT_ONCE, len(self._keys))):
            self.look_at(self._keys.pop().partition("/")[2], now)
        self._timers.at(now.monotonic, self._step)

    def _next_page(self) -> bool:
        """Take more topics of the first walk, and write down that those before are done; whether there is any walk."""
        if self._walking is not None:
            done, at = self._walking
            self._commits.put_row(done, at if at["after"] is not None else None)
            self._walking = None
        key = self._catalog.first(WALKS)
        if key is None:
            return False
        row = self._catalog.get(key)
        assert row is not None
        self._keys, after = self._catalog.page(row["prefix"], row["after"], PAGE)
        self._keys.reverse()
        self._walking = key, row | {"after": after}
        return True


def _nobody(name: str, now: Now) -> None:
    raise AssertionError("nobody looks at topics")
