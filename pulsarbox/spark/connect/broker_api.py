"""Broker API for planning reads: topics, positions and segments, over HTTP or, without it, the binary protocol."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from pulsarbox.client.admin import EARLIEST as EARLIEST_ID
from pulsarbox.client.admin import Admin, AdminRefused, path_of, path_of_subscription, quoted
from pulsarbox.client.client import Client
from pulsarbox.errors import NotFound, PulsarBoxError, TopicNotFound
from pulsarbox.names import PERSISTENT, TopicName, parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.access.wire_reader import bounds as bounds_by_wire
from pulsarbox.spark.connect.connections import admin_of, client_of
from pulsarbox.spark.topic_segments import DataLost, Lost, Reach, ReadPosition, TopicSegment, part_of

log = logging.getLogger(__name__)

LATEST: Final = ReadPosition(2**63 - 1, 0)
"""Position after everything that a topic will ever have."""
UNKNOWN: Final = -1
_T = TypeVar("_T")


class TopicBounds(NamedTuple):
    """Current start and end of a topic, as a half-open range."""

    earliest: ReadPosition
    end: ReadPosition
    before: int = UNKNOWN
    """Messages ever published before ``earliest``; ``total``: before ``end``. UNKNOWN for Apache Pulsar."""
    total: int = UNKNOWN


class Range(NamedTuple):
    """Requested range of a topic; see ``Service.segments``."""

    topic: str
    start: ReadPosition
    end: ReadPosition
    seen: int = UNKNOWN


class Service:
    """One broker, reached as ``reach`` describes. A context manager."""

    def __init__(self, reach: Reach, lost: Callable[[Lost], None] | None = None) -> None:
        """Prepare without connecting. ``lost`` is called with each lost range, in place of what ``reach`` prescribes.

        Raises ValueError for an invalid URL.
        """
        self.reach = reach
        self._told_lost = lost
        self._admin: Admin | None = None
        self._client: Client | None = None
        self._is_box: bool | None = None
        if reach.admin_url:
            self._admin = admin_of(reach)

    def __enter__(self) -> "Service":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close()
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def client(self) -> Client:
        """The client of the service URL, created on first use."""
        if self._client is None:
            self._client = client_of(self.reach)
        return self._client

    # Topics

    def topics(self, namespace: str) -> list[str]:
        """Return the persistent topics of ``tenant/namespace`` by full name, each partition separately, sorted."""
        found = self.client.topics(namespace)
        assert found is not None
        return sorted(name for name in found[0] if name.startswith("persistent://"))

    def partitions(self, topic: str) -> list[str]:
        """Return the full names of a topic's partitions, or its own if it has none. Raises the broker's errors."""
        name = parse_topic(topic)
        count = 0 if name.partition_index >= 0 else self.client.partitions(str(name), create=False)
        return [str(name.partition(at)) for at in range(count)] if count else [str(name)]

    def schema(self, topic: str, version: bytes = b"") -> Schema:
        """Return a topic's schema, by default the newest. Raises SchemaNotFound and the broker's other errors."""
        return self.client.schema(topic, version)

    # Positions

    def bounds(self, topic: str) -> TopicBounds:
        """Return the current start and end of a topic or partition. Raises the broker's errors."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}"))
        if told is not None:
            return _bounds(told)
        return TopicBounds(*bounds_by_wire(self.client, topic))

    def all_bounds(self, topics: Sequence[str]) -> dict[str, TopicBounds]:
        """Return the bounds of many topics by name, leaving out missing ones. One request against a box."""
        if len(topics) > 1 and self._admin is not None and self._is_box is None:
            self._knows_itself()
        if len(topics) > 1 and self._admin is not None and self._is_box:
            told = zip(topics, self._admin.places(topics), strict=True)
            return {topic: _bounds(each) for topic, each in told if each is not None}
        found = {}
        for topic in topics:
            try:
                found[topic] = self.bounds(topic)
            except (NotFound, TopicNotFound, AdminRefused) as error:
                if isinstance(error, AdminRefused) and error.status != 404:
                    raise
        return found

    def earliest(self, topic: str) -> ReadPosition:
        """Return the position of the first entry, present or future."""
        return self.bounds(topic).earliest

    def latest(self, topic: str) -> ReadPosition:
        """Return the position after the last entry that a reader sees."""
        return self.bounds(topic).end

    def at_time(self, topic: str, milliseconds: int) -> ReadPosition:
        """Return the first entry published at or after ``milliseconds`` since 1970, or the end if there is none."""
        time = str(max(milliseconds, _FIRST_TIME))
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", time=time))
        if told is not None:
            return part_of(told["at"])
        if self._admin is None:
            raise ValueError("positions by time require the Admin API: set admin.url")
        found = self._admin.ask("GET", f"{path_of(parse_topic(topic))}/messageid/{milliseconds}")
        at = ReadPosition(found["ledgerId"], found["entryId"])
        return self.earliest(topic) if at.ledger < 0 else min(at, self.latest(topic))

    def subscription_place(self, topic: str, subscription: str) -> ReadPosition:
        """Return the position from which a subscription continues. Raises NotFound and the broker's other errors."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", subscription=subscription))
        if told is not None:
            return part_of(told["subscription"])
        if self._admin is None:
            raise ValueError("positions of subscriptions require the Admin API: set admin.url")
        stats = self._admin.internal_stats(parse_topic(topic))
        if subscription not in stats["cursors"]:
            raise NotFound(f"Subscription {subscription} not found for topic {topic}")
        ledger, entry = stats["cursors"][subscription]["markDeletePosition"].split(":")
        return ReadPosition(int(ledger), int(entry) + 1)

    def in_part(self, topic: str, subscription: str) -> dict[tuple[int, int], int]:
        """Return the batches that a subscription has acknowledged in part, by ledger and entry: a bitmap of the
        unacknowledged messages. Empty for Apache Pulsar, which does not report them. Raises the broker's errors."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", subscription=subscription))
        if told is None:
            return {}
        if told["batchesTotal"] > len(told["batches"]):
            raise PulsarBoxError(
                f"{topic}: {subscription} has acknowledged {told['batchesTotal']} batches in part, more than the box "
                "reports"
            )
        return {(each["ledger"], each["entry"]): int(each["left"], 16) for each in told["batches"]}

    def close_ledger(self, topic: str, older_than: int) -> int | None:
        """Close the topic's open ledger in a box if it is at least ``older_than`` ms old.

        Returns its ID, or None if there was nothing to close. Raises the broker's errors.
        """
        if self._admin is None:
            raise ValueError("closing a ledger requires the Admin API: set admin.url")
        return self._admin.close_ledger(parse_topic(topic), older_than)

    def acknowledge(self, topic: str, subscription: str, place: ReadPosition) -> None:
        """Move a subscription to ``place``, in either direction; created if missing. Disconnects its consumers."""
        if self._admin is None:
            raise ValueError("moving a subscription requires the Admin API: set admin.url")
        path = path_of_subscription(parse_topic(topic), subscription)
        where: dict[str, Any] = {"ledgerId": place.ledger, "entryId": place.entry, "partitionIndex": -1}
        if place.batch:
            where |= {"batchIndex": place.batch - 1, "isExcluded": True, "excluded": True}
        if place.ledger < 0:
            where = dict(EARLIEST_ID)
        try:
            self._admin.ask("POST", f"{path}/resetcursor", where)
        except AdminRefused as error:
            if error.status != 404:
                raise
            self._admin.ask("PUT", path, where)
            self._admin.ask("POST", f"{path}/resetcursor", where)  # a new subscription starts at a batch boundary

    def set_properties(self, topic: str, subscription: str, properties: dict[str, str]) -> None:
        """Replace the properties of a subscription. Raises the broker's errors."""
        if self._admin is None:
            raise ValueError("setting properties requires the Admin API: set admin.url")
        path = path_of_subscription(parse_topic(topic), subscription)
        self._admin.ask("PUT", f"{path}/properties", properties)

    # Segments

    def segments(
        self, topic: str, start: ReadPosition, end: ReadPosition, *, seen: int = UNKNOWN, compacted: bool = False
    ) -> list[TopicSegment]:
        """Return the segments of a topic or partition from ``start`` to ``end`` (exclusive) that a reader sees now.

        ``seen``: the ``total`` of the topic when ``start`` was its end; 0 if ``start`` was before messages. It is
        needed to detect losses in deleted ledgers, as the ledger of an end position may be deleted without loss.
        ``compacted``: only the latest message of each key, as far as the topic is compacted. Raises DataLost unless
        ``reach`` prescribes otherwise, and the broker's errors.
        """
        if end <= start:
            return []
        told = self._of_box(topic, lambda name: self._all_segments(name, start, end))
        if told is None:
            return self._of_foreign(topic, start, end, seen, compacted=compacted)
        return self._of_answer(Range(topic, start, end, seen), *told, compacted)

    def many_segments(self, ranges: Sequence["Range"], *, compacted: bool = False) -> list[list[TopicSegment]]:
        """Return the segments of each range, in order. One request against a box."""
        if len(ranges) > 1 and self._admin is not None and self._is_box is None:
            self._knows_itself()
        some = [each for each in ranges if each.start < each.end]
        told: dict[Range, dict[str, Any] | None] = {}
        if len(some) > 1 and self._admin is not None and self._is_box:
            asked = [(each.topic, _from(each.start), _to(each.end)) for each in some]
            told = dict(zip(some, self._admin.segments(asked), strict=True))
        found = []
        for each in ranges:
            answer = told.get(each)
            if answer is None:  # possibly deleted: the single request reports it
                found.append(self.segments(each.topic, each.start, each.end, seen=each.seen, compacted=compacted))
                continue
            rows = answer["segments"]
            if answer["next"] is not None:
                rows += self._all_segments(parse_topic(each.topic), part_of(answer["next"]), each.end)[1]
            found.append(self._of_answer(each, answer, rows, compacted))
        return found

    def _of_answer(
        self, asked: "Range", answer: dict[str, Any], rows: list[dict[str, Any]], compacted: bool
    ) -> list[TopicSegment]:
        topic, start, end, seen = asked
        lost = _lost(topic, start, _bounds(answer), seen)
        view = answer["compacted"] if compacted else None
        if view is not None and start <= ReadPosition(*part_of(view["horizon"])[:2]):
            return self._with_view(topic, answer, view, start, end)
        for each in ([lost] if lost is not None else []) + _holes(topic, rows, start, _bounds(answer), seen):
            self.lost(each)
        return _segments(topic, answer["instance"], rows, start, end)

    def ledgers(self, topic: str, start: ReadPosition) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """Return a box's last answer and all segments from ``start`` on, as in docs/observing.md. None for Apache
        Pulsar, which does not report them."""
        return self._of_box(topic, lambda name: self._all_segments(name, start, LATEST))

    def instance(self, topic: str) -> str | None:
        """Return the ID of the data directory of the topic's box. Empty for an in-memory box and Apache Pulsar; None
        without an Admin API."""
        if self._admin is None:
            return None
        told = self._of_box(topic, lambda name: self._get(f"/segments/{_three(name)}", to="-1:-1"))
        return "" if told is None else str(told["instance"])

    def _all_segments(
        self, name: TopicName, start: ReadPosition, end: ReadPosition
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        query = {"to": _to(end)}
        begin, rows = _from(start), []
        while True:
            answer = self._get(f"/segments/{_three(name)}", **query, **{"from": begin})
            rows += answer["segments"]
            if answer["next"] is None:
                return answer, rows
            begin = answer["next"]

    def _with_view(
        self, topic: str, answer: dict[str, Any], view: dict[str, Any], start: ReadPosition, end: ReadPosition
    ) -> list[TopicSegment]:
        """Return the compacted view and the segments after its horizon."""
        horizon, found = part_of(view["horizon"]), []
        behind = ReadPosition(horizon.ledger, horizon.entry + 1)
        stop = min(end, behind, ReadPosition(*part_of(view["last"])[:2], _BATCH_MAX))
        if view["entries"] and start < stop:
            found.append(
                TopicSegment(
                    topic,
                    view["ledger"],
                    0,
                    view["entries"] - 1,
                    view["entries"],
                    view["bytes"],
                    instance=answer["instance"],
                    volumes=tuple(view["volumes"]),
                    compacted=view["ledger"],
                    start=start,
                    end=stop,
                )
            )
        if behind < end:
            found += self.segments(topic, behind, end)
        return found

    def _of_foreign(
        self, topic: str, start: ReadPosition, end: ReadPosition, seen: int, *, compacted: bool
    ) -> list[TopicSegment]:
        """Return the segments of a topic of Apache Pulsar, by ledger if its Admin API permits."""
        if end.ledger >= LATEST.ledger:
            end = self.latest(topic)
        if end <= start:
            return []
        ledgers = None if compacted else self._ledgers(topic)
        if ledgers is None:
            return [TopicSegment(topic, end.ledger, 0, end.entry, 0, 0, compacted=-compacted, start=start, end=end)]
        if ledgers and seen == 0 <= start.ledger < ledgers[0][0]:
            self.lost(Lost(topic, start, ReadPosition(ledgers[0][0], 0), "no longer exist"))
        rows = []
        for ledger, entries, size in ledgers:
            first = max(start.entry, 0) if ledger == start.ledger else 0
            last = entries - 1
            if ledger == end.ledger:
                last = min(last, end.entry if end.batch else end.entry - 1)
            if start.ledger <= ledger <= end.ledger and first <= last:
                share = (last - first + 1) / entries
                known = {"messages": last - first + 1, "bytes": round(size * share), "hidden": [], "volumes": []}
                rows.append({"ledger": ledger, "first": first, "last": last} | known)
        return _segments(topic, "", rows, start, end)

    def _ledgers(self, topic: str) -> list[tuple[int, int, int]] | None:
        """Return the ID, entries and bytes of each ledger; None if the Admin API is missing or denies it."""
        if self._admin is None:
            return None
        try:
            stats = self._admin.internal_stats(parse_topic(topic))
        except AdminRefused as error:
            if error.status not in (401, 403):
                raise
            return None
        found = [(each["ledgerId"], each["entries"], each["size"]) for each in stats["ledgers"]]
        if found and not found[-1][1]:
            found[-1] = (found[-1][0], stats["currentLedgerEntries"], stats["currentLedgerSize"])
        return found

    def lost(self, lost: Lost) -> None:
        """Report a lost range: to the callback, else raise DataLost or log a warning, as ``reach`` prescribes."""
        if self._told_lost is not None:
            self._told_lost(lost)
            return
        if self.reach.fail_on_data_loss:
            raise DataLost(lost)
        log.warning("%s: skipped", lost)

    # Requests

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        assert self._admin is not None
        found: dict[str, Any] = self._admin.own(path + (f"?{urlencode(query)}" if query else ""))
        return found

    def _of_box(self, topic: str, ask: Callable[[TopicName], _T]) -> _T | None:
        """Return a box's answer; None from another broker or without an admin URL."""
        if self._admin is None or self._is_box is False:
            return None
        name = parse_topic(topic)
        if name.domain != PERSISTENT:
            raise ValueError(f"{topic} stores no messages: only persistent topics can be read")
        try:
            found = ask(name)
        except AdminRefused as error:
            if self._is_box is None and error.status in (404, 405) and not self._knows_itself():
                return None
            raise
        self._is_box = True
        return found

    def _knows_itself(self) -> bool:
        """Return whether the broker is a box, checking the first time only."""
        assert self._admin is not None
        try:
            self._admin.own("/clock")
            self._is_box = True
        except AdminRefused as error:
            self._is_box = error.status != 404
        return self._is_box


_FIRST_TIME: Final = 10**11
"""Milliseconds since 1970; a smaller number would be read as seconds."""
_BATCH_MAX: Final = 1 << 31


def _from(start: ReadPosition) -> str:
    return f"{start.ledger}:{start.entry}"


def _to(end: ReadPosition) -> str:
    """Round up to whole entries."""
    return f"{end.ledger}:{end.entry + 1 if end.batch else end.entry}"


def _three(name: TopicName) -> str:
    return quoted(name.tenant, name.namespace_local, name.local)


def _bounds(told: dict[str, Any]) -> TopicBounds:
    return TopicBounds(part_of(told["earliest"]), part_of(told["end"]), told["before"], told["total"])


def _lost(topic: str, start: ReadPosition, bounds: TopicBounds, seen: int) -> Lost | None:
    """Return the range lost between ``start`` and the topic's earliest entry."""
    if start.ledger < 0 or start.ledger >= bounds.earliest.ledger or seen == UNKNOWN or bounds.before <= seen:
        return None
    many = f": {bounds.before - seen} messages" if seen else ""  # otherwise unknown
    return Lost(topic, start, bounds.earliest, f"no longer exist{many}")


def _holes(
    topic: str, rows: Sequence[Mapping[str, Any]], start: ReadPosition, bounds: TopicBounds, seen: int
) -> list[Lost]:
    """Return the ranges lost between existing ledgers. A ledger is deleted once all subscriptions have acknowledged it,
    even if older ledgers remain. Empty if ``seen`` is unknown: the request was for whatever the topic still has."""
    found: list[Lost] = []
    # 0 means before messages with an unknown number published before. _lost covers the range before the earliest entry.
    place, known = start, UNKNOWN if start.ledger < bounds.earliest.ledger or seen <= 0 else seen
    for row in rows if seen != UNKNOWN else ():
        ledger, before = row["ledger"], row["before"]
        if ledger > place.ledger and UNKNOWN < known < before:
            reason = f"no longer exist: {before - known} messages"
            found.append(Lost(topic, place, ReadPosition(ledger, 0), reason))
        place, known = ReadPosition(ledger, row["last"] + 1), row["after"]
    return found


def _segments(
    topic: str, instance: str, rows: list[dict[str, Any]], start: ReadPosition, end: ReadPosition
) -> list[TopicSegment]:
    found = []
    for row in rows:
        ledger, first, last = row["ledger"], row["first"], row["last"]
        found.append(
            TopicSegment(
                topic,
                ledger,
                first,
                last,
                row["messages"],
                row["bytes"],
                tuple((low, high) for low, high in row["hidden"]),
                start.batch if (ledger, first) == start[:2] else 0,
                end.batch if (ledger, last) == end[:2] else 0,
                instance,
                tuple(row["volumes"]),
            )
        )
    return found
