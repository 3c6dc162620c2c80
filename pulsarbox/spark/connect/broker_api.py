"""A box, or Apache Pulsar, as who plans a read asks it: topics, places, segments; over HTTP, and the wire without."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from pulsarbox.client.admin import EARLIEST as EARLIEST_ID
from pulsarbox.client.admin import Admin, Refused, path_of, path_of_subscription, quoted
from pulsarbox.client.client import Client
from pulsarbox.errors import NotFound, PulsarBoxError, TopicNotFound
from pulsarbox.names import PERSISTENT, TopicName, parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.access.wire_reader import bounds as bounds_by_wire
from pulsarbox.spark.connect.connections import admin_of, client_of
from pulsarbox.spark.topic_segments import DataLost, Lost, Place, Reach, Segment, part_of

log = logging.getLogger(__name__)

LATEST: Final = Place(2**63 - 1, 0)
"""Behind everything that a topic will ever have."""
UNKNOWN: Final = -1
_T = TypeVar("_T")


class Bounds(NamedTuple):
    """Where a topic begins and ends right now, as half-open ranges have it."""

    earliest: Place
    end: Place
    before: int = UNKNOWN
    """The topic's messages before the first that is there, and up to the end: counted from its first one on, whatever
    of them is there; UNKNOWN of Apache Pulsar."""
    total: int = UNKNOWN


class Range(NamedTuple):
    """What is asked for of a topic, as ``Service.segments`` has it."""

    topic: str
    start: Place
    end: Place
    seen: int = UNKNOWN


class Service:
    """One broker, asked as ``reach`` says. To be closed, or used with ``with``."""

    def __init__(self, reach: Reach, lost: Callable[[Lost], None] | None = None) -> None:
        """Nothing is connected yet. ``lost`` is told what is missing, where it is not as ``reach`` says.

        Raises ValueError for a URL that is none.
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
        """Let connections go."""
        if self._admin is not None:
            self._admin.close()
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def client(self) -> Client:
        """The client of the service URL."""
        if self._client is None:
            self._client = client_of(self.reach)
        return self._client

    # Topics

    def topics(self, namespace: str) -> list[str]:
        """The persistent topics of ``tenant/namespace`` by full name, partitions one by one, sorted."""
        found = self.client.topics(namespace)
        assert found is not None
        return sorted(name for name in found[0] if name.startswith("persistent://"))

    def partitions(self, topic: str) -> list[str]:
        """The partitions of a topic by full name; itself where it is not partitioned. Raises what the broker tells."""
        name = parse_topic(topic)
        count = 0 if name.partition_index >= 0 else self.client.partitions(str(name), create=False)
        return [str(name.partition(at)) for at in range(count)] if count else [str(name)]

    def schema(self, topic: str, version: bytes = b"") -> Schema:
        """The schema of a topic, the newest where no version is named. Raises SchemaNotFound, or what else is told."""
        return self.client.schema(topic, version)

    # Places

    def bounds(self, topic: str) -> Bounds:
        """Where a topic, or one partition, begins and ends right now. Raises what the broker tells."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}"))
        if told is not None:
            return _bounds(told)
        return Bounds(*bounds_by_wire(self.client, topic))

    def all_bounds(self, topics: Sequence[str]) -> dict[str, Bounds]:
        """The bounds of many topics, by name, without those that are not there; of a box with one request."""
        if len(topics) > 1 and self._admin is not None and self._is_box is None:
            self._knows_itself()
        if len(topics) > 1 and self._admin is not None and self._is_box:
            told = zip(topics, self._admin.places(topics), strict=True)
            return {topic: _bounds(each) for topic, each in told if each is not None}
        found = {}
        for topic in topics:
            try:
                found[topic] = self.bounds(topic)
            except (NotFound, TopicNotFound, Refused) as error:
                if isinstance(error, Refused) and error.status != 404:
                    raise
        return found

    def earliest(self, topic: str) -> Place:
        """The first entry there is, or will be."""
        return self.bounds(topic).earliest

    def latest(self, topic: str) -> Place:
        """The place behind the last entry that a reader sees."""
        return self.bounds(topic).end

    def at_time(self, topic: str, milliseconds: int) -> Place:
        """The first entry that was published then (ms since 1970) or later, the end where none was."""
        time = str(max(milliseconds, _FIRST_TIME))
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", time=time))
        if told is not None:
            return part_of(told["at"])
        if self._admin is None:
            raise ValueError("a place by time is asked over HTTP: name the Admin API with admin.url")
        found = self._admin.ask("GET", f"{path_of(parse_topic(topic))}/messageid/{milliseconds}")
        at = Place(found["ledgerId"], found["entryId"])
        return self.earliest(topic) if at.ledger < 0 else min(at, self.latest(topic))

    def subscription_place(self, topic: str, subscription: str) -> Place:
        """Where a subscription goes on. Raises what the broker tells where there is none."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", subscription=subscription))
        if told is not None:
            return part_of(told["subscription"])
        if self._admin is None:
            raise ValueError("a subscription's place is asked over HTTP: name the Admin API with admin.url")
        stats = self._admin.internal_stats(parse_topic(topic))
        if subscription not in stats["cursors"]:
            raise NotFound(f"Subscription {subscription} not found for topic {topic}")
        ledger, entry = stats["cursors"][subscription]["markDeletePosition"].split(":")
        return Place(int(ledger), int(entry) + 1)

    def in_part(self, topic: str, subscription: str) -> dict[tuple[int, int], int]:
        """The batches of which a subscription has acknowledged some messages and not others, by ledger and entry: in
        bits, those that it has not. Nothing of Apache Pulsar, which does not tell. Raises what the broker tells."""
        told = self._of_box(topic, lambda name: self._get(f"/places/{_three(name)}", subscription=subscription))
        if told is None:
            return {}
        if "batchesTotal" not in told:
            raise PulsarBoxError(
                f"{topic}: the box is older than this pulsarbox, and does not tell which messages of batches "
                f"{subscription} has acknowledged: update the box, or leave -s out; dead letters are put back by the "
                "box itself with `pulsarbox dlq replay`"
            )
        if told["batchesTotal"] > len(told["batches"]):
            raise PulsarBoxError(
                f"{topic}: {subscription} has acknowledged {told['batchesTotal']} batches in part, too many to be told"
            )
        return {(each["ledger"], each["entry"]): int(each["left"], 16) for each in told["batches"]}

    def close_ledger(self, topic: str, older_than: int) -> int | None:
        """Have a box close the ledger of a topic that grows, where it was opened ``older_than`` ms ago. Raises what the
        broker tells."""
        if self._admin is None:
            raise ValueError("a ledger is closed over HTTP: name the Admin API with admin.url")
        return self._admin.close_ledger(parse_topic(topic), older_than)

    def acknowledge(self, topic: str, subscription: str, place: Place) -> None:
        """Have a subscription go on at a place: all before it is acknowledged, also where more was. It is made where
        there is none. Nobody may consume with it meanwhile, or is sent away."""
        if self._admin is None:
            raise ValueError("a subscription is moved over HTTP: name the Admin API with admin.url")
        path = path_of_subscription(parse_topic(topic), subscription)
        where: dict[str, Any] = {"ledgerId": place.ledger, "entryId": place.entry, "partitionIndex": -1}
        if place.batch:
            where |= {"batchIndex": place.batch - 1, "isExcluded": True, "excluded": True}
        if place.ledger < 0:
            where = dict(EARLIEST_ID)
        try:
            self._admin.ask("POST", f"{path}/resetcursor", where)
        except Refused as error:
            if error.status != 404:
                raise
            self._admin.ask("PUT", path, where)
            self._admin.ask("POST", f"{path}/resetcursor", where)  # a new one begins with a whole batch

    # Segments

    def segments(
        self, topic: str, start: Place, end: Place, *, seen: int = UNKNOWN, compacted: bool = False
    ) -> list[Segment]:
        """What a topic, or one partition, has from ``start`` to ``end`` (not included) that a reader sees right now.

        ``seen``: the ``total`` that the topic had when ``start`` was its end, 0 where ``start`` was in front of
        messages. Whether something was lost whose ledger is gone can only be told with that: an end is in a ledger
        that may go when it has nothing more. ``compacted``: of each key only the latest, as far as that is known.
        Raises DataLost, where ``reach`` does not say otherwise; and what the broker tells.
        """
        if end <= start:
            return []
        told = self._of_box(topic, lambda name: self._all_segments(name, start, end))
        if told is None:
            return self._of_foreign(topic, start, end, seen, compacted=compacted)
        return self._of_answer(Range(topic, start, end, seen), *told, compacted)

    def many_segments(self, ranges: Sequence["Range"], *, compacted: bool = False) -> list[list[Segment]]:
        """The same of many topics, in their order; of a box with one request."""
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
            if answer is None:  # it may be gone: then that is told where it is asked for alone
                found.append(self.segments(each.topic, each.start, each.end, seen=each.seen, compacted=compacted))
                continue
            rows = answer["segments"]
            if answer["next"] is not None:
                rows += self._all_segments(parse_topic(each.topic), part_of(answer["next"]), each.end)[1]
            found.append(self._of_answer(each, answer, rows, compacted))
        return found

    def _of_answer(
        self, asked: "Range", answer: dict[str, Any], rows: list[dict[str, Any]], compacted: bool
    ) -> list[Segment]:
        topic, start, end, seen = asked
        lost = _lost(topic, start, _bounds(answer), seen)
        view = answer["compacted"] if compacted else None
        if view is not None and start <= Place(*part_of(view["horizon"])[:2]):
            return self._with_view(topic, answer, view, start, end)
        for each in ([lost] if lost is not None else []) + _holes(topic, rows, start, _bounds(answer), seen):
            self.lost(each)
        return _segments(topic, answer["instance"], rows, start, end)

    def ledgers(self, topic: str, start: Place) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """What a box tells of a topic's ledgers from a place on: the last answer, and the segments of all of them as
        docs/observing.md has them. None of Apache Pulsar, which does not tell."""
        return self._of_box(topic, lambda name: self._all_segments(name, start, LATEST))

    def instance(self, topic: str) -> str | None:
        """The id of the data directory of the box that has a topic, empty where that is in memory and of Apache Pulsar;
        None where there is no Admin API to ask."""
        if self._admin is None:
            return None
        told = self._of_box(topic, lambda name: self._get(f"/segments/{_three(name)}", to="-1:-1"))
        return "" if told is None else str(told["instance"])

    def _all_segments(self, name: TopicName, start: Place, end: Place) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        query = {"to": _to(end)}
        begin, rows = _from(start), []
        while True:
            answer = self._get(f"/segments/{_three(name)}", **query, **{"from": begin})
            rows += answer["segments"]
            if answer["next"] is None:
                return answer, rows
            begin = answer["next"]

    def _with_view(
        self, topic: str, answer: dict[str, Any], view: dict[str, Any], start: Place, end: Place
    ) -> list[Segment]:
        """The compacted view, and the log behind its horizon."""
        horizon, found = part_of(view["horizon"]), []
        behind = Place(horizon.ledger, horizon.entry + 1)
        stop = min(end, behind, Place(*part_of(view["last"])[:2], _BATCH_MAX))
        if view["entries"] and start < stop:
            found.append(
                Segment(
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

    def _of_foreign(self, topic: str, start: Place, end: Place, seen: int, *, compacted: bool) -> list[Segment]:
        """Of Apache Pulsar: its ledgers, where they may be asked for."""
        if end.ledger >= LATEST.ledger:
            end = self.latest(topic)
        if end <= start:
            return []
        ledgers = None if compacted else self._ledgers(topic)
        if ledgers is None:
            return [Segment(topic, end.ledger, 0, end.entry, 0, 0, compacted=-compacted, start=start, end=end)]
        if ledgers and seen == 0 <= start.ledger < ledgers[0][0]:
            self.lost(Lost(topic, start, Place(ledgers[0][0], 0), "are not there any more"))
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
        """Each ledger, its entries, their bytes; None where that is not told."""
        if self._admin is None:
            return None
        try:
            stats = self._admin.internal_stats(parse_topic(topic))
        except Refused as error:
            if error.status not in (401, 403):
                raise
            return None
        found = [(each["ledgerId"], each["entries"], each["size"]) for each in stats["ledgers"]]
        if found and not found[-1][1]:
            found[-1] = (found[-1][0], stats["currentLedgerEntries"], stats["currentLedgerSize"])
        return found

    def lost(self, lost: Lost) -> None:
        """Raises DataLost, or says it in the log where ``reach`` has it so, unless somebody else is told."""
        if self._told_lost is not None:
            self._told_lost(lost)
            return
        if self.reach.fail_on_data_loss:
            raise DataLost(lost)
        log.warning("%s: skipped", lost)

    # Asking

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        assert self._admin is not None
        found: dict[str, Any] = self._admin.own(path + (f"?{urlencode(query)}" if query else ""))
        return found

    def _of_box(self, topic: str, ask: Callable[[TopicName], _T]) -> _T | None:
        """What a box answers; None where it is none, or has no admin URL."""
        if self._admin is None or self._is_box is False:
            return None
        name = parse_topic(topic)
        if name.domain != PERSISTENT:
            raise ValueError(f"{topic} keeps nothing: only persistent topics can be read")
        try:
            found = ask(name)
        except Refused as error:
            if self._is_box is None and error.status in (404, 405) and not self._knows_itself():
                return None
            raise
        self._is_box = True
        return found

    def _knows_itself(self) -> bool:
        """Whether it is a box at all, asked once."""
        assert self._admin is not None
        try:
            self._admin.own("/clock")
            self._is_box = True
        except Refused as error:
            self._is_box = error.status != 404
        return self._is_box


_FIRST_TIME: Final = 10**11
"""Milliseconds since 1970; a smaller number would be taken for seconds."""
_BATCH_MAX: Final = 1 << 31


def _from(start: Place) -> str:
    return f"{start.ledger}:{start.entry}"


def _to(end: Place) -> str:
    """In whole entries."""
    return f"{end.ledger}:{end.entry + 1 if end.batch else end.entry}"


def _three(name: TopicName) -> str:
    return quoted(name.tenant, name.namespace_local, name.local)


def _bounds(told: dict[str, Any]) -> Bounds:
    return Bounds(part_of(told["earliest"]), part_of(told["end"]), told["before"], told["total"])


def _lost(topic: str, start: Place, bounds: Bounds, seen: int) -> Lost | None:
    """What is not there any more of a range that begins at ``start``."""
    if start.ledger < 0 or start.ledger >= bounds.earliest.ledger or seen == UNKNOWN or bounds.before <= seen:
        return None
    many = f": {bounds.before - seen} messages" if seen else ""  # else not known
    return Lost(topic, start, bounds.earliest, f"are not there any more{many}")


def _holes(topic: str, rows: Sequence[Mapping[str, Any]], start: Place, bounds: Bounds, seen: int) -> list[Lost]:
    """What is not there any more between ledgers that are: one goes when all have acknowledged it, whatever is in front
    of it. Nothing where ``seen`` is unknown: then whatever is left of the topic was asked for."""
    found: list[Lost] = []
    # 0: in front of messages, of which it is not told how many went before. Before the earliest, _lost has looked.
    place, known = start, UNKNOWN if start.ledger < bounds.earliest.ledger or seen <= 0 else seen
    for row in rows if seen != UNKNOWN else ():
        ledger, before = row["ledger"], row["before"]
        if ledger > place.ledger and UNKNOWN < known < before:
            reason = f"are not there any more: {before - known} messages"
            found.append(Lost(topic, place, Place(ledger, 0), reason))
        place, known = Place(ledger, row["last"] + 1), row["after"]
    return found


def _segments(topic: str, instance: str, rows: list[dict[str, Any]], start: Place, end: Place) -> list[Segment]:
    found = []
    for row in rows:
        ledger, first, last = row["ledger"], row["first"], row["last"]
        found.append(
            Segment(
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
