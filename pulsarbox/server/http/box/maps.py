"""Maps of a subscription: its position in the log, and the assignment of keys to consumers. Below ``/pulsarbox/v1``."""

from typing import Any, Final

from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.subscription.cursor_map import CursorMap
from pulsarbox.broker.subscription.key_map import KeyMap, key_of
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict
from pulsarbox.names import PERSISTENT
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.filter_parameters import number_of
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import stored_topic, subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.record import Entry, Position

BUCKETS: Final = 200
BUCKETS_MAX: Final = 2000
AT_ONCE: Final = 2000
"""Ranges and entries added to the map per turn."""


def _subscription(call: HttpRequest) -> Subscription:
    topic = stored_topic(call, "A map of a subscription", PERSISTENT)
    return subscription_of(topic, call.path["subscription"])


def cursor(call: HttpRequest) -> DeferredAnswer:
    """Return the log in ``buckets``, each with its acknowledged, inFlight, delayed and waiting entries.

    ``span=backlog``: only entries after mark-delete. Also returns ledgers and acknowledged ranges, at most 1000 of
    each.
    """
    found = CursorMap(
        _subscription(call),
        number_of(call, "buckets", BUCKETS, 1, BUCKETS_MAX),
        call.now,
        backlog=call.query.get("span") == "backlog",
    )
    return in_turns(call, found.steps(), found.add, lambda now, later: later.complete(answer(found.as_json())), AT_ONCE)


def keys(call: HttpRequest) -> DeferredAnswer:
    """Return the hash ranges of a Key_Shared subscription by consumer, with its busiest, blocked and draining keys.

    Blocked keys have the time since which they wait for an acknowledgement.
    """
    subscription = _subscription(call)
    dispatcher = subscription.dispatcher
    if not isinstance(dispatcher, KeySharedDispatcher):
        raise Conflict(f"Subscription {subscription.name} is not of type Key_Shared")
    found = KeyMap(subscription, dispatcher)
    told = found.as_json()
    fronts = {row["slot"]: row for row in told["stuck"] if row["slot"] in found.fronts}
    later = DeferredAnswer()

    def finish() -> HttpResponse:
        return answer(told)

    if not fronts:
        later.complete(finish())
        return later
    done, _ = when_all(later, len(fronts), finish)
    for slot, row in fronts.items():
        _read_front(subscription, Position(*found.fronts[slot]), row, done, call.now)
    return later


def _read_front(subscription: Subscription, at: Position, row: dict[str, Any], done: Any, now: Now) -> None:
    """Add the key of a blocking entry, and the earliest time at which its consumer may have received it."""

    def read(entry: Entry, when: Now) -> None:
        holder = next((each for each in subscription.consumers if at in each.held), None)
        since = entry.append_time if holder is None else max(entry.append_time, holder.connected_since)
        row.update(key=row["key"] or key_of(entry), since=since)
        done(when)

    row["since"] = None
    subscription.reader.read_entry(at, read, lambda error, when: done(when), now)


_TOPIC: Final = "{tenant}/{namespace}/{topic}/{subscription}"

ROUTES = (
    HttpRoute("GET", f"/pulsarbox/v1/maps/cursor/{_TOPIC}", Permission.TOPIC_CONSUMER, cursor),
    HttpRoute("GET", f"/pulsarbox/v1/maps/keys/{_TOPIC}", Permission.TOPIC_CONSUMER, keys),
)
