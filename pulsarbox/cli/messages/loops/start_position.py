"""Start positions resolved with the broker: N messages before the end, or the position of a subscription."""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.cli.common.exits import Failed, Misused, NotThere, ending_of_status
from pulsarbox.cli.common.position_options import From
from pulsarbox.cli.connect.target import Target
from pulsarbox.client.client import Client
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import Subscribing
from pulsarbox.client.places import EARLIEST, LATEST, QUEUE, MessageId, Start
from pulsarbox.errors import NotAllowed
from pulsarbox.names import TopicName, parse_topic

_RANGE: Final = re.compile(r"\((-?\d+):(-?\d+)\.\.(-?\d+):(-?\d+)\]")
_HTTP_SECONDS: Final = 10.0
At = tuple[int, int]
"""A position: ledger and entry."""
_BEFORE_ALL: Final[At] = (-1, -1)


def own_name() -> str:
    """Return a unique subscription name for a reader."""
    return f"pulsarbox-{os.urandom(4).hex()}"


def reader(start: Start, queue: int = QUEUE) -> Subscribing:
    """Return the options of a non-durable consumer that does not create topics."""
    return Subscribing(own_name(), durable=False, start=start, create=False, queue=queue)


def start_of(client: Client, begin: From) -> Callable[[str], Start]:
    """Return a function from a topic or partition to its start, by --from."""

    def start(topic: str) -> Start:
        if begin.last:
            return _last_of(client, topic, begin.last)
        place = begin.start.id
        own = parse_topic(topic).partition_index
        if place not in (EARLIEST, LATEST) and place.partition >= 0 and place.partition != own:
            raise Misused(f"the message ID belongs to partition {place.partition}: specify that partition as the topic")
        return begin.start

    return start


def check_place(begin: From, topics: int) -> None:
    """Raise Misused for a message ID with several topics or partitions."""
    if begin.start.id not in (EARLIEST, LATEST) and topics > 1:
        raise Misused("a message ID requires a single topic or partition, such as orders-partition-0")


def _last_of(client: Client, topic: str, count: int) -> Start:
    """Return the position ``count`` messages before the end.

    Each entry holds at least one message, so reading ``count`` entries of the last ledger suffices. If the ledger is
    shorter, the whole topic is read.
    """
    probe = MultiTopicConsumer(client, reader(Start(LATEST)))
    try:
        (part,) = probe.add(topic)
        last, _ = part.last_id()
    except NotAllowed:  # a non-persistent topic
        return Start(LATEST)
    finally:
        probe.close()
    if last.entry < 0:
        return Start(EARLIEST)
    first = MessageId(last.ledger, last.entry - count + 1) if last.entry + 1 >= count else EARLIEST
    found: deque[MessageId] = deque(maxlen=count)
    walk = MultiTopicConsumer(client, reader(Start(first)))
    try:
        (part,) = walk.add(topic)
        while part.seen is None or part.seen < last[:2]:
            found.extend(each.id for each in walk.take(1000, 1.0) if each.id[:2] <= last[:2])
    finally:
        walk.close()
    return Start(found[0]) if found else Start(EARLIEST)


# Position of a subscription ------------------------------------------------------------------------------------------


class SubscriptionPosition:
    """Position of a subscription on one topic: mark-delete position and acknowledged ranges after it."""

    def __init__(
        self,
        mark: MessageId,
        ranges: list[tuple[tuple[int, int], tuple[int, int]]],
        batches: Mapping[tuple[int, int], int],
        redeliveries: "RedeliveryCounts",
    ) -> None:
        """``batches`` maps partially acknowledged entries to a bitmap of their unacknowledged messages."""
        self.mark = mark
        self._ranges = ranges
        self._batches = batches
        self._redeliveries = redeliveries

    def is_open(self, message: MessageId) -> bool:
        """Return whether a message is unacknowledged. Apache Pulsar reports a batch only as a whole."""
        here = message[:2]
        if here <= self.mark[:2] or any(low < here <= high for low, high in self._ranges):
            return False
        left = self._batches.get(here)
        return left is None or message.batch_index < 0 or bool(left >> message.batch_index & 1)

    def redeliveries(self, message: MessageId) -> int:
        """Return how often the subscription has redelivered a message; for a message of a batch, the whole batch."""
        return self._redeliveries.of(message[:2])


class RedeliveryCounts:
    """Redelivery counts of a subscription, which are requested in the order of the entries."""

    def __init__(self, request: Callable[[At], Mapping[At, int]]) -> None:
        """``request`` returns the next redelivered entries behind a position; none behind the last one."""
        self._request = request
        self._page: Mapping[At, int] = {}
        self._last: At | None = _BEFORE_ALL
        """The last entry with a known count; None if all are known."""

    def of(self, position: At) -> int:
        """Return the count of an entry that is not before those asked for earlier."""
        while self._last is not None and position > self._last:
            self._page = self._request(self._last)
            self._last = max(self._page, default=None)
        return self._page.get(position, 0)


def place_of(admin: Target, topic: str, subscription: str) -> SubscriptionPosition:
    """Return the position of a subscription from the internal statistics of a topic or partition.

    Raises NotThere for a missing topic or subscription, and the errors of the Admin API.
    """
    from pulsarbox.cli.connect.admin_client import short

    name = parse_topic(topic)
    if not name.persistent:
        raise Misused(f"{short(name)} is not persistent: its subscriptions have no position")
    path = f"/admin/v2/persistent/{name.tenant}/{name.namespace_local}/{name.local}/internalStats"
    cursors = _get(admin, path).get("cursors", {})
    cursor = cursors.get(subscription)
    if cursor is None:
        known = ", ".join(sorted(cursors)) or "none"
        raise NotThere(f"no subscription '{subscription}' on {short(name)}; existing subscriptions: {known}")
    ledger, _, entry = str(cursor["markDeletePosition"]).partition(":")
    ranges = [
        ((int(a), int(b)), (int(c), int(d)))
        for a, b, c, d in _RANGE.findall(str(cursor.get("individuallyDeletedMessages", "")))
    ]
    first = _details(admin, name, subscription, _BEFORE_ALL)

    def redelivered(after: At) -> dict[At, int]:
        page = first if after == _BEFORE_ALL else _details(admin, name, subscription, after)
        return {_at(each): each["count"] for each in page.get("redelivered", ())}

    batches = {_at(each): int(each["left"], 16) for each in first.get("batches", ())}
    return SubscriptionPosition(MessageId(int(ledger), int(entry)), ranges, batches, RedeliveryCounts(redelivered))


def _details(admin: Target, name: TopicName, subscription: str, after: At) -> dict[str, Any]:
    """Return details of a subscription's entries behind a position; none if the broker does not report them."""
    path = f"/pulsarbox/v1/places/{name.tenant}/{name.namespace_local}/{name.local}"
    try:
        return _get(admin, path, subscription=subscription, after=f"{after[0]}:{after[1]}")
    except Failed:  # Apache Pulsar
        return {}


def _at(entry: Mapping[str, Any]) -> At:
    return entry["ledger"], entry["entry"]


def _get(admin: Target, path: str, **query: str) -> dict[str, Any]:
    from urllib.parse import quote, urlencode

    from pulsarbox.client.transport.web import Unanswered, Web

    web = Web(admin.hosts, secure=admin.secure, credentials=admin.credentials(), seconds=_HTTP_SECONDS)
    try:
        reply = web.exchange("GET", quote(path) + (f"?{urlencode(query)}" if query else ""))
    except Unanswered as error:
        raise admin.unreachable(str(error)) from error
    finally:
        web.close()
    if reply.status >= 400:
        raise ending_of_status(reply.status, reply.reason or f"GET {path}: HTTP {reply.status}")
    try:
        document = json.loads(reply.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Failed(f"GET {path} of {admin.url}: the response is not topic statistics")
    return document
