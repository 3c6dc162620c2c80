"""Totals and time series of single tenants or namespaces, for roles without permission to view the entire box.

Totals are summed up once per sampling pass, not per request. A series is recorded while it is being watched.
"""

from collections import OrderedDict
from math import nan
from typing import Final

from pulsarbox.broker.stats.time_series import Series
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.clock import Now

SCOPES_MAX: Final = 32
WATCHED_SECONDS: Final = 15.0
"""How long after a request a scope counts as watched; its series has gaps while it is not."""
KEPT_SECONDS: Final = 600.0


class Scoped:
    """Totals and series of one tenant or namespace."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.producers = 0
        self.consumers = 0
        self.passes: int | None = None
        """The pass from which the totals are; None before the first."""
        self.watched_at = 0.0
        self.series = Series(("publishRate", "deliverRate", "backlog"))


class Scopes:
    """The scopes that were watched recently."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Scoped] = OrderedDict()

    def watched(self, prefix: str, now: Now) -> Scoped:
        """Record a request for ``tenant/`` or ``tenant/namespace/``, and return that scope."""
        found = self._kept.setdefault(prefix, Scoped())
        found.watched_at = now.monotonic
        self._kept.move_to_end(prefix)
        while len(self._kept) > SCOPES_MAX:
            self._kept.popitem(last=False)
        return found

    def tick(self, now: Now) -> None:
        """Add a value to each series, and drop scopes not watched for KEPT_SECONDS; called once a second."""
        for prefix, each in list(self._kept.items()):
            age = now.monotonic - each.watched_at
            if age > KEPT_SECONDS:
                del self._kept[prefix]
            elif age > WATCHED_SECONDS or each.passes is None:
                each.series.add(nan, nan, nan)
            else:
                each.series.add(each.totals.publish_rate, each.totals.deliver_rate, float(each.totals.backlog))
