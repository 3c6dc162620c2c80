"""Pages of stored messages, in both directions from any place, without acknowledging or creating a cursor.

Below ``/pulsarbox/v1``. A page of a partitioned topic merges a page of each partition by publish time.
"""

import json
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pulsarbox.broker.replay.entry_messages import InspectedMessage
from pulsarbox.broker.replay.message_filter import parse_filter
from pulsarbox.broker.security.authorization import CONSUME
from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.message_browser import (
    WHOLE,
    BrowsedMessage,
    MessagePage,
    PagePosition,
    TopicWalk,
    WalkLimits,
)
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotFound, PulsarBoxError
from pulsarbox.names import PERSISTENT
from pulsarbox.protocol.metadata import field_text
from pulsarbox.protocol.PulsarApi_pb2 import CompressionType
from pulsarbox.server.http.framework.filter_parameters import FILTER_MAX, number_of
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, parts_of, persistent
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Position
from pulsarbox.times import moment

LIMIT: Final = 60
LIMIT_MAX: Final = 500
PAYLOAD: Final = 4096
PAYLOAD_MAX: Final = 1 << 20
PAYLOAD_FROM_MAX: Final = (1 << 31) - 1
DECODED_MAX: Final = 256 << 10
"""Maximum bytes of a payload that is decoded."""
_EARLIEST: Final = PagePosition(-1, -1)
_LATEST: Final = PagePosition(2**63 - 1, 2**63 - 1)
UNACKNOWLEDGED: Final = "unacknowledged"
_MERGED: Final = "m."
"""Prefix of a place in several partitions."""
_WHAT: Final = "Browse messages"


class BrowseRequest(NamedTuple):
    """The parameters of one page."""

    forward: bool
    limit: int
    payload: int
    """Maximum bytes of a payload to return."""
    begin: int
    """The first byte of a payload to return."""
    subscription: str
    wanted: Callable[[InspectedMessage], bool] | None


def browse(call: HttpRequest) -> DeferredAnswer:
    """Return a page of messages, oldest first: ``{"messages", "next", "previous", "ended", "lookedAt"}``.

    ``from`` is earliest, latest, unacknowledged (behind mark-delete of ``subscription``), a message id or a time;
    ``direction`` is forward or backward from there. By default a page is the latest one, and goes forward from a given
    place. ``next`` and ``previous`` are values of ``from`` to continue in that direction, null if nothing can follow. A
    page ends with ``limit`` messages, at the end of the topic (``ended``), or after the amount of work allowed per
    request; the next request continues there.
    """
    parts = [persistent(find_topic(call, part, call.now), _WHAT) for part in parts_of(call, PERSISTENT)]
    asked = _asked(call)
    if asked.subscription:
        name = call.topic(PERSISTENT)
        call.broker.authorization.require_on_topic(call.principal, name, (CONSUME,), asked.subscription)
        if not any(asked.subscription in part.subscriptions for part in parts):
            raise NotFound(f"Subscription {asked.subscription} not found for topic {name}")
    text = call.query.get("from", "") or ("earliest" if asked.forward else "latest")
    starts = _unacknowledged(parts, asked) if text == UNACKNOWLEDGED else _starts(call, text, len(parts))
    later = DeferredAnswer()
    _Merge(call, parts, asked, starts, later).begin()
    return later


def _asked(call: HttpRequest) -> BrowseRequest:
    begin, direction = call.query.get("from", ""), call.query.get("direction", "")
    if direction not in ("", "forward", "backward"):
        raise BadRequest(f"direction must be forward or backward, not {direction[:40]!r}")
    text = call.query.get("filter", "")
    if len(text) > FILTER_MAX:
        raise BadRequest(f"The filter has more than {FILTER_MAX} characters")
    return BrowseRequest(
        direction == "forward" or (not direction and begin not in ("", "latest")),
        number_of(call, "limit", LIMIT, 1, LIMIT_MAX),
        number_of(call, "maxPayload", PAYLOAD, 0, PAYLOAD_MAX),
        number_of(call, "payloadFrom", 0, 0, PAYLOAD_FROM_MAX),
        call.query.get("subscription", ""),
        parse_filter(text, call.now.wall),
    )


# Places


def _unacknowledged(parts: list[PersistentTopic], asked: BrowseRequest) -> list[PagePosition | int | None]:
    """Return the position behind mark-delete in each partition that has the subscription. Raises BadRequest."""
    if not asked.subscription:
        raise BadRequest("from: unacknowledged requires a subscription")
    marks = [
        part.subscriptions[asked.subscription].cursor.mark_delete if asked.subscription in part.subscriptions else None
        for part in parts
    ]
    return [None if mark is None else PagePosition(mark.ledger_id, mark.entry_id + 1) for mark in marks]


def _starts(call: HttpRequest, text: str, count: int) -> list[PagePosition | int | None]:
    """Return the start in each partition: a place, a time, or None to skip it. Raises BadRequest."""
    if text in ("earliest", "latest"):
        return [_EARLIEST if text == "earliest" else _LATEST] * count
    if text.startswith(_MERGED):
        return _merged(text, count)
    if text.count(":") in (1, 2, 3) and text.replace(":", "").replace("-", "").isdecimal() and text.isascii():
        place, partition = _place(text)
        if count == 1 or partition < 0:
            return [place] * count
        return [place if at == partition else None for at in range(count)]
    try:
        return [moment(text, call.now.wall)] * count
    except ValueError:
        raise BadRequest(
            f"from: {text[:60]!r} is not earliest, latest, {UNACKNOWLEDGED}, a message ID"
            " (ledger:entry[:partition[:index]]) or a time (2026-11-21T10:00Z, -1h, milliseconds since 1970)"
        ) from None


def _place(text: str) -> tuple[PagePosition, int]:
    """Parse a message id: ``ledger:entry[:partition[:index]]``. Raises BadRequest."""
    try:
        numbers = [int(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if not numbers or not all(-1 <= number < 2**63 for number in numbers):
        raise BadRequest(f"from: {text[:60]!r} is not a message ID; expected the form 12:345 or 12:345:-1:0")
    ledger, entry, partition, index = [*numbers, -1, -1][:4]
    return PagePosition(ledger, entry, index), partition


def _shown(place: PagePosition | None, partition: int) -> str | None:
    return None if place is None else f"{place.ledger_id}:{place.entry_id}:{partition}:{place.batch_index}"


def _merged(text: str, count: int) -> list[PagePosition | int | None]:
    try:
        data = json.loads(urlsafe_b64decode(text.removeprefix(_MERGED)))
        places: list[PagePosition | int | None] = [None if each is None else _place_of(*each) for each in data]
    except (ValueError, TypeError, RecursionError):
        places = []
    if len(places) != count:
        raise BadRequest("from: this position is not from a page of this topic, or partitions were added since")
    return places


def _place_of(ledger: object, entry: object, index: object) -> PagePosition:
    """Validate a place returned by an earlier page. Raises ValueError."""
    for each in (ledger, entry, index):
        if not isinstance(each, int) or not -1 <= each < 2**63:
            raise ValueError(f"{each!r} is not part of a position")
    assert isinstance(ledger, int) and isinstance(entry, int) and isinstance(index, int)
    return PagePosition(ledger, entry, index)


def _together(places: list[PagePosition | None]) -> str | None:
    """Combine places in several partitions; None if there is none in any."""
    if all(place is None for place in places):
        return None
    data = json.dumps(places, separators=(",", ":")).encode()
    return _MERGED + urlsafe_b64encode(data).decode()


# Rows


def _maker(asked: BrowseRequest, partition: int) -> Callable[[InspectedMessage, str], dict[str, Any]]:
    """Return a function that builds the row of a message; called in a thread."""

    def make(message: InspectedMessage, closed: str) -> dict[str, Any]:
        entry, metadata, own = message.entry, message.metadata, message.own
        payload = message.payload
        end = asked.begin + asked.payload
        told = None if payload is None else payload[asked.begin : end]
        fits = payload is not None and len(payload) <= DECODED_MAX
        schema = metadata.schema_version if metadata.HasField("schema_version") else None
        return {
            "id": f"{entry.ledger_id}:{entry.entry_id}:{partition}:{message.index}",
            "partition": partition,
            "publishTime": message.publish_time,
            "appendTime": entry.append_time,
            "eventTime": message.event_time or None,
            "deliverAt": message.deliver_at or None,
            "key": message.key,
            "keyIsBase64": own.partition_key_b64_encoded,
            "orderingKey": b64encode(own.ordering_key).decode() if own.HasField("ordering_key") else None,
            "properties": message.properties,
            "size": message.size,
            "producer": message.producer_name,
            "sequenceId": message.sequence_id,
            "schemaVersion": int.from_bytes(schema, "big") if schema is not None and len(schema) == 8 else None,
            "batchIndex": message.index if message.index != WHOLE else None,
            "batchSize": entry.num_messages if entry.flags & EntryFlag.BATCH else None,
            "codec": CompressionType.Name(metadata.compression) if metadata.compression else None,
            "encrypted": message.encrypted,
            "tombstone": message.tombstone,
            "marker": bool(entry.flags & EntryFlag.MARKER),
            "chunk": _chunk(message),
            "payload": None if told is None else b64encode(told).decode(),
            "truncated": payload is not None and len(payload) > end,
            "decoded": _tellable(message.decoded) if fits else None,
            "closed": closed or None,
            "damaged": None,
        }

    return make


def _tellable(value: Any) -> Any:
    """Return a value that JSON can represent; None if it is nested too deep, or contains NaN or infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
    return value


def _chunk(message: InspectedMessage) -> dict[str, Any] | None:
    metadata = message.metadata
    if not message.entry.flags & EntryFlag.CHUNK:
        return None
    return {"uuid": field_text(metadata.uuid), "index": metadata.chunk_id, "count": metadata.num_chunks_from_msg}


class _State:
    """The current state of messages on one subscription."""

    def __init__(self, subscription: Subscription, now: Now) -> None:
        self._cursor = subscription.cursor
        self._consumers = subscription.consumers
        self._now = now

    def of(self, found: BrowsedMessage) -> dict[str, Any]:
        """Return ``acknowledged``, ``inFlight`` with its consumer, ``delayed`` or ``waiting``, with redeliveries."""
        at = Position(found.ledger_id, found.entry_id)
        told: dict[str, Any] = {"consumer": None, "redeliveries": self._cursor.redelivery_count(at)}
        partly = self._cursor.batch_acks.get(at)
        acked = partly is not None and found.batch_index >= 0 and not partly[1] >> found.batch_index & 1
        if acked or self._cursor.is_acked(*at):
            return told | {"state": "acknowledged"}
        holder = next((each for each in self._consumers if at in each.held), None)
        if holder is not None:
            return told | {"state": "inFlight", "consumer": holder.name}
        due = found.row.get("deliverAt") or 0
        return told | {"state": "delayed" if due > self._now.wall else "waiting"}


# Pages


class _Merge:
    """Merges the pages of all partitions, read one after another."""

    def __init__(
        self,
        call: HttpRequest,
        parts: list[PersistentTopic],
        asked: BrowseRequest,
        starts: list[PagePosition | int | None],
        later: DeferredAnswer,
    ) -> None:
        self._call = call
        self._parts = parts
        self._asked = asked
        self._starts = starts
        self._later = later
        self._pages: list[MessagePage | None] = []
        name = call.topic(PERSISTENT)
        self._schemas = call.broker.schemas.by_version(name)

    def begin(self) -> None:
        """Read a page of the first partition; the others follow."""
        self._walk(self._call.now)

    def _walk(self, now: Now) -> None:
        number = len(self._pages)
        if number == len(self._parts):
            self._later.complete(answer(self._reported(now)))
            return
        start, part = self._starts[number], self._parts[number]
        if start is None:
            self._done(None, now)
        elif isinstance(start, PagePosition):
            self._walk_from(start, now)
        else:
            find_first_since(part.reader, start, self._from_time, self._later.failed, now)

    def _from_time(self, at: Position, now: Now) -> None:
        """Start forward at the first message of that time or later; backward at the last one before it."""
        self._walk_from(PagePosition(*at) if self._asked.forward else PagePosition(at.ledger_id, at.entry_id - 1), now)

    def _walk_from(self, start: PagePosition, now: Now) -> None:
        number, asked = len(self._pages), self._asked
        part, count = self._parts[number], len(self._parts)
        share = WalkLimits(asked.limit)
        if count > 1:
            share.entries = max(share.entries // count, 2 * asked.limit)
            share.opened = max(share.opened // count, 4 << 20)
            share.shown = max(share.shown // count, 1 << 18)
            share.milliseconds = max(share.milliseconds // count, 20)
        walk = TopicWalk(
            part,
            self._schemas,
            asked.wanted,
            _maker(asked, part.name.partition_index),
            share,
            self._call.broker.host.run_in_thread,
            forward=asked.forward,
        )
        try:
            walk.begin(start, self._done, self._later.failed, now)
        except PulsarBoxError as error:
            self._later.failed(error)

    def _done(self, page: MessagePage | None, now: Now) -> None:
        self._pages.append(page)
        self._walk(now)

    def _reported(self, now: Now) -> dict[str, Any]:
        asked = self._asked
        chosen, places = self._one() if len(self._parts) == 1 else self._several()
        backs = [None if page is None else page.back for page in self._pages]
        if len(self._parts) == 1:
            partition = self._parts[0].name.partition_index
            on, back = _shown(places[0], partition), _shown(backs[0], partition)
        else:
            on, back = _together(places), _together(backs)
        rows = [self._row(number, found, now) for number, found in chosen]
        whole = len(chosen) == sum(len(page.found) for page in self._pages if page is not None)
        return {
            "messages": rows if asked.forward else rows[::-1],
            "next": on if asked.forward else back,
            "previous": back if asked.forward else on,
            "ended": whole and all(page is None or page.ended for page in self._pages),
            "lookedAt": sum(page.scanned for page in self._pages if page is not None),
        }

    def _one(self) -> tuple[list[tuple[int, BrowsedMessage]], list[PagePosition | None]]:
        page = self._pages[0]
        return ([(0, each) for each in page.found], [page.on]) if page is not None else ([], [None])

    def _several(self) -> tuple[list[tuple[int, BrowsedMessage]], list[PagePosition | None]]:
        """Select the first messages of all partitions by publish time, and where each partition continues."""
        heads = [0] * len(self._pages)
        chosen: list[tuple[int, BrowsedMessage]] = []
        sign = 1 if self._asked.forward else -1
        pages = [page.found if page is not None else [] for page in self._pages]
        while len(chosen) < self._asked.limit:
            ready = [
                (sign * (page[heads[number]].row.get("publishTime") or 0), number)
                for number, page in enumerate(pages)
                if heads[number] < len(page)
            ]
            if not ready:
                break
            _, number = min(ready)
            chosen.append((number, pages[number][heads[number]]))
            heads[number] += 1
        places: list[PagePosition | None] = []
        for number, page in enumerate(self._pages):
            if page is None:
                places.append(None)
            elif heads[number] == len(page.found):
                places.append(page.on)
            else:
                places.append(PagePosition(*page.found[heads[number]][:3]))
        return chosen, places

    def _row(self, number: int, found: BrowsedMessage, now: Now) -> dict[str, Any]:
        part = self._parts[number]
        row = found.row
        if row.get("damaged"):
            row = {"id": f"{found.ledger_id}:{found.entry_id}:{part.name.partition_index}:-1", **row}
        if not self._asked.subscription:
            return row
        subscription = part.subscriptions.get(self._asked.subscription)
        if subscription is None:
            return row | {"state": None, "consumer": None, "redeliveries": 0}
        return row | _State(subscription, now).of(found)


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/browse/{tenant}/{namespace}/{topic}", Permission.TOPIC_CONSUMER, browse),)
