"""What a subscription has acknowledged on a topic, by entries, as the topic's internal statistics tell."""

import re
from dataclasses import dataclass
from typing import Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.connecting import admin_of
from pulsarbox.spark.segments import Reach

_RANGE: Final = re.compile(r"\((-?\d+):(-?\d+)\.\.(-?\d+):(-?\d+)\]")

Place = tuple[int, int]


@dataclass(frozen=True)
class Acked:
    """Entries that a subscription does not want any more."""

    mark: Place
    """It, and all before it."""
    ranges: tuple[tuple[Place, Place], ...] = ()
    """Behind that: from the entry before the first one to the last one."""

    def holds(self, ledger: int, entry: int) -> bool:
        """Whether an entry is acknowledged."""
        here = (ledger, entry)
        return here <= self.mark or any(low < here <= high for low, high in self.ranges)


def acked_of(to: Reach, topic: str, subscription: str) -> Acked:
    """On a topic or partition. Raises PulsarBoxError where there is no such subscription, and what the broker tells."""
    with admin_of(to) as admin:
        return read(admin.internal_stats(parse_topic(topic)), topic, subscription)


def read(stats: dict[str, Any], topic: str, subscription: str) -> Acked:
    """What internal statistics say. Raises PulsarBoxError."""
    cursors = stats.get("cursors", {})
    cursor = cursors.get(subscription)
    if cursor is None:
        raise PulsarBoxError(
            f"{topic} has no subscription {subscription}: it has {', '.join(sorted(cursors)) or 'none'}; make it with "
            f"`pulsarbox sub create {parse_topic(topic).base} {subscription} --at earliest`"
        )
    found = _RANGE.findall(str(cursor.get("individuallyDeletedMessages", "")))
    ranges = tuple(((int(a), int(b)), (int(c), int(d))) for a, b, c, d in found)
    told = int(cursor.get("totalNonContiguousDeletedMessagesRange", len(ranges)))
    if told > len(ranges):
        raise PulsarBoxError(
            f"{topic}: {subscription} has acknowledged {told} stretches, of which the broker tells {len(ranges)}: use "
            "`pulsarbox dlq replay`, or leave -s out"
        )
    ledger, _, entry = str(cursor["markDeletePosition"]).partition(":")
    return Acked((int(ledger), int(entry)), ranges)
