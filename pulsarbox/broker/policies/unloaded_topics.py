"""Application of policy changes to unloaded topics, by a walk over stored topics, some per turn.

A walk is stored as a row, written in the same batch as the change, so it continues after a crash.
"""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_SIZE
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD
from pulsarbox.broker.policies.kinds.inactive_topic import INACTIVE_TOPIC
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.kinds.unsubscribed_retention import UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.policies.precedence import GLOBAL
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.names import PERSISTENT
from pulsarbox.storage.catalog import KEPT, WALKS, Catalog, Row, topic_key, walk_key

AT_ONCE: Final = 10
"""Topics visited in one turn."""

PAGE: Final = 500
"""Topics after which the progress of a walk is stored."""

KEEPING: Final = (
    RETENTION, MESSAGE_TTL, BACKLOG_SIZE, INACTIVE_TOPIC, SUBSCRIPTION_EXPIRATION, COMPACTION_THRESHOLD,
    UNSUBSCRIBED_TIME,
)  # fmt: skip
"""Policies that affect unused topics. Both backlog quotas have the same key."""

_KEYS: Final = frozenset({GLOBAL, *(place.key for policy in KEEPING for place in policy.row.places)})


class PolicyWalks:
    """The pending walks, run one after another."""

    def __init__(
        self,
        catalog: Catalog,
        commits: GroupCommit,
        timers: Timers,
        policies: Policies,
        maintain: Callable[[str, Now], None],
    ) -> None:
        """``maintain`` applies changed policies to one topic, in memory or not."""
        self._catalog = catalog
        self._commits = commits
        self._timers = timers
        self._policies = policies
        self._maintain = maintain
        self._keys: list[str] = []
        """Remaining keys of the current page."""
        self._walking: tuple[str, Row] | None = None
        """Key of the current walk, and its row once the page is done."""
        self._running = False
        policies.row_changed.add(self.changed)

    @property
    def running(self) -> bool:
        """Whether a walk is in progress."""
        return self._running

    def start(self, settings: Settings, now: Now) -> None:
        """Continue interrupted walks, and start one if the settings have changed since the last run."""
        self.settings_changed(settings, now)
        self._continue(now)

    def settings_changed(self, settings: Settings, now: Now) -> None:
        """Start a walk over all topics if the broker-level values differ from those applied last."""
        values = [str(policy.broker(settings)) for policy in KEEPING]
        values += [str(settings.backlogQuotaDefaultLimitSecond), str(settings.backlogQuotaCheckEnabled)]
        if (self._catalog.get(KEPT) or {}).get("values") != values:
            self._commits.put_row(KEPT, {"values": values})
            if self._catalog.first(topic_key("")) is not None:
                self._walk(f"{PERSISTENT}://", now)

    def changed(self, name: str, before: Row, row: Row, now: Now) -> None:
        """Start a walk if the row of a namespace (``tenant/namespace/``) or topic changed in a relevant policy."""
        if any(before.get(key) != row.get(key) for key in _KEYS):
            self._walk(name if "://" in name else f"{PERSISTENT}://{name}", now)

    def _walk(self, names: str, now: Now) -> None:
        """Start a walk over all topics whose names start with ``names``."""
        self._commits.put_row(walk_key(self._commits.new_id()), {"prefix": topic_key(names), "after": ""})
        self._continue(now)

    def _continue(self, now: Now) -> None:
        if not self._running and self._catalog.first(WALKS) is not None:
            self._running = True
            self._timers.at(now.monotonic, self._step)

    def _step(self, now: Now) -> None:
        if self._policies.telling:  # topics in memory are notified first; the walk skips them
            self._timers.at(now.monotonic, self._step)
            return
        if not self._keys and not self._next_page():
            self._running = False
            return
        for _ in range(min(AT_ONCE, len(self._keys))):
            self._maintain(self._keys.pop().partition("/")[2], now)
        self._timers.at(now.monotonic, self._step)

    def _next_page(self) -> bool:
        """Store the progress and read the next page of the first walk; return whether there is a walk."""
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
