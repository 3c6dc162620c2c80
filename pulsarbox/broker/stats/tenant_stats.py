"""What somebody watches of the box who may not see all of it: a tenant's numbers, and their last ten minutes.

They are added up once after each look at everything, and not for every question; a series is kept while it is watched.
"""

from collections import OrderedDict
from math import nan
from typing import Final

from pulsarbox.broker.stats.time_series import Series
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.clock import Now

SCOPES_MAX: Final = 32
WATCHED_SECONDS: Final = 15.0
"""So long after a question somebody counts as watching; until somebody does again, nothing is known of meanwhile."""
KEPT_SECONDS: Final = 600.0


class Scoped:
    """The numbers of one part of the box."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.producers = 0
        self.consumers = 0
        self.passes: int | None = None
        """Of which pass these are; None before the first."""
        self.watched_at = 0.0
        self.series = Series(("publishRate", "deliverRate", "backlog"))


class Scopes:
    """Those that somebody watches, or has a while ago."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Scoped] = OrderedDict()

    def watched(self, prefix: str, now: Now) -> Scoped:
        """Somebody asks for what is below ``tenant/`` or ``tenant/namespace/``."""
        found = self._kept.setdefault(prefix, Scoped())
        found.watched_at = now.monotonic
        self._kept.move_to_end(prefix)
        while len(self._kept) > SCOPES_MAX:
            self._kept.popitem(last=False)
        return found

    def tick(self, now: Now) -> None:
        """A second has passed."""
        for prefix, each in list(self._kept.items()):
            age = now.monotonic - each.watched_at
            if age > KEPT_SECONDS:
                del self._kept[prefix]
            elif age > WATCHED_SECONDS or each.passes is None:
                each.series.add(nan, nan, nan)
            else:
                each.series.add(each.totals.publish_rate, each.totals.deliver_rate, float(each.totals.backlog))
