"""The live view of clients: connections, with their producers and consumers."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final
from weakref import WeakKeyDictionary

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.clients import ConnectedClient, on
from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.stats.blocked_reason_text import BlockedReasonText, held_reason, quota_reason, unread_reason
from pulsarbox.clock import Now
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope, kept


def rates(client: ConnectedClient, now: Now) -> tuple[float, float]:
    """Return messages and bytes per second over the last minute, in or out; of a connection, the sum of its clients."""
    if client.producer is not None:
        messages, size = client.producer.rates(now)[:2]
        return messages, size
    if client.consumer is not None:
        found = client.consumer.rates(now)
        return found.messages_out, found.bytes_out
    return _together(client.cnx, now)


_AT_ONCE: Final = 1000
"""Maximum producers and consumers of a connection summed per second: 3 us each."""
_KNOWN: Final[WeakKeyDictionary[ServerCnx, tuple[float, tuple[float, float]]]] = WeakKeyDictionary()
"""Cached rates per connection, with their expiry."""


def _together(cnx: ServerCnx, now: Now) -> tuple[float, float]:
    """Return the sum over a connection; cached for some seconds if it has many clients."""
    until, found = _KNOWN.get(cnx, (now.monotonic, (0.0, 0.0)))
    if now.monotonic >= until:
        of = [each.producer.rates(now) for each in on(cnx) if each.producer is not None]
        out = [each.consumer.rates(now) for each in on(cnx) if each.consumer is not None]
        messages = sum(each[0] for each in of) + sum(each.messages_out for each in out)
        found = messages, sum(each[1] for each in of) + sum(each.bytes_out for each in out)
        _KNOWN[cnx] = now.monotonic + (len(of) + len(out)) / _AT_ONCE, found
    return found


def _role(client: ConnectedClient) -> str | None:
    principal = client.cnx.principal
    if principal is None:
        return None
    return f"{principal.role} for {principal.original}" if principal.original else principal.role


def _name(client: ConnectedClient) -> str | None:
    if client.producer is not None:
        return client.producer.name
    return client.consumer.name if client.consumer is not None else None


def _since(client: ConnectedClient) -> int:
    return (client.producer or client.consumer or client.cnx).connected_since


def _unacked(client: ConnectedClient) -> int | None:
    """Return a consumer's unacknowledged messages, or a producer's messages without a receipt."""
    if client.producer is not None:
        return client.producer.pending
    return client.consumer.unacked if client.consumer is not None else None


def _held(client: ConnectedClient) -> int:
    """Return the bytes of messages whose receipts are delayed by publish rates."""
    if client.producer is not None:
        hold = client.producer.held
        return hold.held_bytes if hold is not None else 0
    return client.cnx.held_bytes if client.consumer is None else 0


def _why(client: ConnectedClient, now: Now) -> BlockedReasonText | None:
    """Return why a producer waits for receipts, why a connection is not read, or which quota refuses its producer."""
    if client.producer is not None:
        return held_reason(client.producer)
    refused = client.cnx.refused
    if refused is not None and client.consumer is None and refused.waits(now):
        quota = quota_reason(refused)
        return unread_reason(client.cnx) or quota._replace(text=f"{refused.words} waits: {quota.text}")
    return unread_reason(client.cnx)


def _cause(member: str) -> Callable[[ConnectedClient, Now], Any]:
    def of(client: ConnectedClient, now: Now) -> Any:
        why = _why(client, now)
        return None if why is None else getattr(why, member)

    return of


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[ConnectedClient | None]:
    """Yield all clients; of a tenant, only producers and consumers of its topics, since connections may be shared."""
    for cnx in list(broker.cnxs):
        for client in on(cnx):
            shown = not scope.prefix or (client.topic is not None and scope.holds(client.namespace))
            yield client if shown else None


COLUMNS: Final = {
    "id": kept(attrgetter("id")),
    "kind": kept(attrgetter("kind")),
    "address": kept(attrgetter("cnx.address")),
    "role": kept(_role),
    "version": kept(lambda client: client.cnx.client_version or None),
    "topic": kept(attrgetter("topic")),
    "subscription": kept(lambda client: client.consumer.subscription.name if client.consumer is not None else None),
    "name": kept(_name),
    "rate": ViewColumn(lambda client, now: rates(client, now)[0]),
    "bytes": ViewColumn(lambda client, now: rates(client, now)[1]),
    "unacked": kept(_unacked),
    "permits": kept(lambda client: client.consumer.permits if client.consumer is not None else None),
    "since": kept(_since),
    "producers": kept(lambda client: len(client.cnx.producers) if client.topic is None else None),
    "consumers": kept(lambda client: len(client.cnx.consumers) if client.topic is None else None),
    "held": kept(_held),
    "cause": ViewColumn(_cause("reason")),
    "causeText": ViewColumn(_cause("text")),
    "causeSince": ViewColumn(_cause("since")),
    "tls": kept(attrgetter("cnx.secure")),
    "connection": kept(lambda client: str(client.cnx.number)),
}

CLIENTS: Final = LiveView(
    "clients",
    COLUMNS,
    things,
    sort="rate",
    searched=lambda client: filter(None, (client.cnx.address, client.topic, _name(client), client.cnx.client_version)),
)
