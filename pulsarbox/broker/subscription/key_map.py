"""Map of a Key_Shared subscription: the hash ranges of each consumer, and the busiest and stuck keys.

Keys are identified by their hash slot; the key itself is included if an entry with it is in memory.
"""

from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.dispatch import sticky_hash
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.dispatch.selectors.selector import RANGE_SIZE
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.protocol.violations import ProtocolError
from pulsarbox.storage.record import Entry

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.subscription import Subscription

RANGES_MAX: Final = 200
"""Ranges listed per consumer; with consistent hashing it has about a hundred."""
CONSUMERS_MAX: Final = 500
KEYS_MAX: Final = 50
LOOKED_AT: Final = 100_000
"""Unacknowledged entries per consumer that are searched for the first one of a slot."""

Row = dict[str, Any]


class KeyMap:
    """A snapshot of one subscription's keys."""

    def __init__(self, subscription: "Subscription", dispatcher: KeySharedDispatcher) -> None:
        self._subscription = subscription
        self._dispatcher = dispatcher
        self.fronts: dict[int, tuple[int, int]] = {}
        """The first unacknowledged entry of each stuck slot, which holds back the slot's other entries."""

    def as_json(self) -> Row:
        """Return the map except what requires reading the entries in ``fronts``."""
        dispatcher, subscription = self._dispatcher, self._subscription
        ranges = dispatcher.selector.ranges()
        consumers = [self._consumer(each, ranges.get(each, [])) for each in subscription.consumers[:CONSUMERS_MAX]]
        waiting = dispatcher.waiting_by_slot()
        unacked = dispatcher.held_by_slot()
        busiest = nlargest(KEYS_MAX, {*waiting, *unacked}, key=lambda slot: waiting.get(slot, 0) + unacked.get(slot, 0))
        stuck = nlargest(KEYS_MAX, waiting, key=lambda slot: (waiting[slot], -slot))
        keys = dispatcher.keys_at_hand({*busiest, *stuck})
        rows = [self._slot(slot, waiting, unacked, keys) for slot in busiest]
        still = [self._slot(slot, waiting, unacked, keys) for slot in stuck]
        self._find_fronts(stuck)
        for row in still:
            front = self.fronts.get(row["slot"])
            row["behind"] = None if front is None else f"{front[0]}:{front[1]}"
        return {
            "topic": str(subscription.topic_name),
            "subscription": subscription.name,
            "slots": RANGE_SIZE,
            "consumers": consumers,
            "consumersTotal": len(subscription.consumers),
            "waiting": dispatcher.waiting_again,
            "busiest": rows,
            "stuck": still,
            "stuckTotal": len(waiting),
            "draining": [
                {"slot": each.slot, "consumer": consumer.name, "unacked": each.entries, "blocked": each.blocked}
                for consumer, moved in dispatcher.draining().items()
                for each in moved[:KEYS_MAX]
            ][:RANGES_MAX],
        }

    def _consumer(self, consumer: Consumer, ranges: list[tuple[int, int]]) -> Row:
        slots = sum(last - first + 1 for first, last in ranges)
        return {
            "name": consumer.name,
            "address": consumer.cnx.address,
            "share": slots / RANGE_SIZE,
            "ranges": [list(each) for each in ranges[:RANGES_MAX]],
            "rangesTotal": len(ranges),
            "unacked": consumer.unacked,
            "permits": consumer.permits,
            "blocked": consumer.blocked,
        }

    def _slot(self, slot: int, waiting: dict[int, int], unacked: dict[int, int], keys: dict[int, Entry]) -> Row:
        dispatcher = self._dispatcher
        owner, holder = dispatcher.owner_of(slot), dispatcher.holder_of(slot)
        return {
            "slot": slot,
            "key": key_of(keys[slot]) if slot in keys else None,
            "waiting": waiting.get(slot, 0),
            "unacked": unacked.get(slot, 0),
            "owner": None if owner is None else owner.name,
            "holder": None if holder is None else holder.name,
            "draining": holder is not None and holder is not owner,
        }

    def _find_fronts(self, slots: list[int]) -> None:
        """Fill ``fronts`` for these slots."""
        wanted = set(slots)
        for consumer in self._subscription.consumers:
            for at, held in islice(consumer.held.items(), LOOKED_AT):
                if held.slot in wanted and at < self.fronts.get(held.slot, (1 << 63, 0)):
                    self.fronts[held.slot] = at


def key_of(entry: Entry) -> str | None:
    """Return the key of an entry as text; None if its metadata is malformed."""
    try:
        return sticky_hash.key_of(entry).decode(errors="replace")
    except ProtocolError:
        return None
