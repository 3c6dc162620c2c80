"""The entries of a topic between two places, as segments of ledgers, for parallel readers in place or remote.

Below ``/pulsarbox/v1``. A place is the next position to read; ranges are half-open.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from pulsarbox.broker.security.authorization import CONSUME
from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.topic.visible_segments import SEGMENTS_MAX, Segments, begin_of, end_of
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, InvalidTopicName
from pulsarbox.names import PERSISTENT, TopicName, parse_topic
from pulsarbox.protocol.ack_sets import first_of
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import stored_topic, subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.engine import LedgerVolumes
from pulsarbox.storage.record import Position
from pulsarbox.times import moment

AT_ONCE: Final = 2000
"""Ledgers and hidden runs processed per turn."""
BATCHES_MAX: Final = 10_000
"""Maximum number of partly acknowledged batches of a subscription in one answer."""
REDELIVERED_MAX: Final = 1000
"""Maximum number of redelivered entries of a subscription in one answer."""
TOPICS_MAX: Final = 1000
"""Maximum number of topics per request."""
_NAME_TOPICS: Final = 'The body must name topics: {"topics": ["persistent://tenant/namespace/topic"]}'
_NOWHERE: Final = LedgerVolumes("", {})
_EARLIEST: Final = Position(-1, -1)
_LATEST: Final = Position(2**63 - 1, 0)


def segments(call: HttpRequest) -> DeferredAnswer:
    """Return segments: ``{"topic", "instance", "earliest", "end", "compacted", "segments", "next"}``.

    ``from`` and ``to`` (exclusive) default to the whole topic. Each segment: ``ledger``, ``first``, ``last``,
    ``messages``, ``bytes``, ``hidden`` (runs of aborted transactions), the ``volumes`` that may hold it; of the whole
    ledger its ``entries``, the topic's messages ``before`` it and up to its end, ``after``, and the time it was
    ``closed`` (ms since 1970; 0 while it grows). ``next`` continues a truncated answer, or is null.
    """
    topic = stored_topic(call, "Segments", PERSISTENT)
    start, end = _place(call, "from", _EARLIEST), _place(call, "to", _LATEST)
    found = _segments(call, topic, start, end)

    def finish(now: Now, later: DeferredAnswer) -> None:
        view = topic.compaction.view
        ledgers = [each.ledger_id for each in found.found] + ([view.ledger_id] if view is not None else [])
        _with_volumes(call, ledgers, later, lambda where: answer(_told(topic, found, where)))

    return in_turns(call, found.steps(), lambda step, now: None, finish, AT_ONCE)


def _segments(call: HttpRequest, topic: PersistentTopic, start: Position, end: Position) -> Segments:
    return Segments(topic.stored, call.broker.catalog, topic.termination, start, end)


def _with_volumes(
    call: HttpRequest, ledgers: list[int], later: DeferredAnswer, told: Callable[[LedgerVolumes], HttpResponse]
) -> None:
    """Look up the volumes of ledgers in a thread, and give the answer."""
    look = call.broker.host.ledger_volumes

    def done(where: LedgerVolumes | None, error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
        else:
            later.complete(told(where or _NOWHERE))

    if look is None:
        done(None, None)
    else:
        call.broker.host.run_in_thread("segments", lambda: look(ledgers), done)


def many_segments(call: HttpRequest) -> DeferredAnswer:
    """Return ``{"segments": [...]}`` for the ``topics`` in the body, in order, each in the form of ``segments``.

    A missing topic is null. Each request names a ``topic``, and optionally ``from`` and ``to``. The client must be
    allowed to consume from each topic. If the answer is too long in total, the last topics are deferred to ``next``.
    """
    asked: list[tuple[PersistentTopic, Segments] | None] = []
    for name, start, end in _ranges(call):
        call.broker.authorization.require_on_topic(call.principal, name, (CONSUME,))
        topic = call.topics.find(name, call.now)
        asked.append((topic, _segments(call, topic, start, end)) if isinstance(topic, PersistentTopic) else None)
    there = [each for each in asked if each is not None]

    def steps() -> Iterator[None]:
        told = 0
        for _, found in there:
            yield from found.steps() if told < SEGMENTS_MAX else found.put_off()
            told += len(found.found) + sum(len(each.hidden) for each in found.found) // 10

    def finish(now: Now, later: DeferredAnswer) -> None:
        views = [topic.compaction.view for topic, _ in there]
        ledgers = [each.ledger_id for _, found in there for each in found.found]
        ledgers += [view.ledger_id for view in views if view is not None]
        _with_volumes(
            call,
            ledgers,
            later,
            lambda where: answer({"segments": [None if each is None else _told(*each, where) for each in asked]}),
        )

    return in_turns(call, steps(), lambda step, now: None, finish, AT_ONCE)


def _ranges(call: HttpRequest) -> list[tuple[TopicName, Position, Position]]:
    """Parse the topics of a body, with the range of each. Raises BadRequest."""
    said = (call.json_object() or {}).get("topics")
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise BadRequest(
            'The body must name topics: {"topics": [{"topic": "persistent://tenant/namespace/topic", "from": "1:2"}]}'
        )
    names = _names([each.get("topic") for each in said], "Segments")
    return [
        (name, _position("from", each.get("from") or "", _EARLIEST), _position("to", each.get("to") or "", _LATEST))
        for name, each in zip(names, said, strict=True)
    ]


def _told(topic: PersistentTopic, found: Segments, where: LedgerVolumes) -> dict[str, Any]:
    (begin, before), (end, total), view = begin_of(topic.stored), end_of(topic.stored), topic.compaction.view
    compacted = None
    if view is not None:
        compacted = {
            "ledger": view.ledger_id,
            "entries": view.entries,
            "bytes": view.size,
            "horizon": _shown(view.horizon),
            "last": _shown(Position(*view.last[:2])),
            "volumes": where.of(view.ledger_id, 0, view.entries),
        }
    return {
        "topic": str(topic.name),
        "instance": where.instance,
        "earliest": _shown(begin),
        "before": before,
        "end": _shown(end),
        "total": total,
        "compacted": compacted,
        "segments": [
            {
                "ledger": each.ledger_id,
                "first": each.first,
                "last": each.end - 1,
                "messages": each.messages,
                "bytes": each.bytes,
                "hidden": each.hidden,
                "volumes": where.of(each.ledger_id, each.first, each.end),
                **each.whole._asdict(),
            }
            for each in found.found
        ],
        "next": None if found.next is None else _shown(found.next),
    }


def places(call: HttpRequest) -> DeferredAnswer:
    """Return places of a topic: ``{"topic", "earliest", "end"}``, the first entry and the position after the last.

    With ``time``, also ``at``: the first entry published at that time or later. With ``subscription``, also its next
    position as ``subscription``: ``ledger:entry``, and ``:index`` within a batch; and its partly acknowledged
    ``batches``: ``ledger``, ``entry``, ``messages``, and ``left``, a hexadecimal bit set of unacknowledged messages.
    ``batchesTotal`` counts them all, of which the first 10,000 are returned. ``redelivered`` are the first 1,000
    redelivered entries (behind the position ``after``): ``ledger``, ``entry``, ``count``; ``redeliveredTotal`` counts
    all. ``before`` and ``total`` are the topic's messages before the first entry and up to the end.
    """
    topic = stored_topic(call, "Places", PERSISTENT)
    begin, end = begin_of(topic.stored)[0], end_of(topic.stored)[0]
    told: dict[str, Any] = _bounds(topic)
    name = call.query.get("subscription", "")
    if name:
        call.broker.authorization.require_on_topic(call.principal, topic.name, (CONSUME,), name)
        subscription = subscription_of(topic, name)
        after = _place(call, "after", _EARLIEST)
        told |= {"subscription": _goes_on(subscription), **_in_part(subscription), **_redelivered(subscription, after)}
    later = DeferredAnswer()
    text = call.query.get("time", "")
    if not text:
        later.complete(answer(told))
        return later
    try:
        at = moment(text, call.now.wall)
    except ValueError as error:
        raise BadRequest(f"time: {error}") from None

    def found(position: Position, now: Now) -> None:
        later.complete(answer(told | {"at": _shown(min(max(position, begin), end))}))

    find_first_since(topic.reader, at, found, later.failed, call.now)
    return later


def many_places(call: HttpRequest) -> HttpResponse:
    """Return ``{"places": [...]}`` for the ``topics`` in the body, in order, each in the form of ``places``.

    A missing topic is null. The client must be allowed to consume from each topic.
    """
    found: list[dict[str, Any] | None] = []
    for name in _named(call):
        call.broker.authorization.require_on_topic(call.principal, name, (CONSUME,))
        topic = call.topics.find(name, call.now)
        found.append(_bounds(topic) if isinstance(topic, PersistentTopic) else None)
    return answer({"places": found})


def _named(call: HttpRequest) -> list[TopicName]:
    """Parse the topics of a body. Raises BadRequest."""
    said = (call.json_object() or {}).get("topics")
    if not isinstance(said, list):
        raise BadRequest(_NAME_TOPICS)
    return _names(said, "Places")


def _names(said: list[Any], what: str) -> list[TopicName]:
    if not all(isinstance(each, str) for each in said):
        raise BadRequest(_NAME_TOPICS)
    if len(said) > TOPICS_MAX:
        raise BadRequest(f"{len(said)} topics in one request; the maximum is {TOPICS_MAX}")
    try:
        names = [parse_topic(each) for each in said]
    except InvalidTopicName as error:
        raise BadRequest(str(error)) from None
    if any(each.domain != PERSISTENT for each in names):
        raise BadRequest(f"{what} of a non-persistent topic do not exist: it stores no messages")
    return names


def _bounds(topic: PersistentTopic) -> dict[str, Any]:
    (begin, before), (end, total) = begin_of(topic.stored), end_of(topic.stored)
    return {
        "topic": str(topic.name),
        "earliest": _shown(begin),
        "before": before,
        "end": _shown(end),
        "total": total,
    }


def _goes_on(subscription: Subscription) -> str:
    """Return the position after mark-delete; within a batch, after its leading acknowledged messages."""
    cursor = subscription.cursor
    position = cursor.ledger.next(*cursor.mark_delete)
    partly = cursor.batch_acks.get(position)
    index = 0
    if partly is not None:
        count, unacked = partly
        index = first_of(unacked) if unacked else count
    return _shown(position) + (f":{index}" if index else "")


def _in_part(subscription: Subscription) -> dict[str, Any]:
    """Return the partly acknowledged batches."""
    every = subscription.cursor.batch_acks
    some = [(at, every[at]) for at in islice(every, BATCHES_MAX)]
    batches = [
        {"ledger": at[0], "entry": at[1], "messages": messages, "left": f"{left:x}"} for at, (messages, left) in some
    ]
    return {"batches": batches, "batchesTotal": len(every) if len(batches) == BATCHES_MAX else len(batches)}


def _redelivered(subscription: Subscription, after: Position) -> dict[str, Any]:
    """Return the redelivered entries behind a position, with their counts."""
    every = subscription.cursor.redeliveries
    some = islice(every.items_after(after), REDELIVERED_MAX)
    found = [{"ledger": at[0], "entry": at[1], "count": count} for at, count in some]
    return {"redelivered": found, "redeliveredTotal": len(every)}


def _place(call: HttpRequest, name: str, default: Position) -> Position:
    return _position(name, call.query.get(name, ""), default)


def _position(name: str, said: Any, default: Position) -> Position:
    text = str(said)
    if not text:
        return default
    parts = text.split(":")
    try:
        if len(parts) == 2 and text.isascii() and all(-1 <= int(part) < 2**63 for part in parts):
            return Position(*map(int, parts))
    except ValueError:
        pass
    raise BadRequest(f"{name}: {text[:60]!r} is not a position; expected ledger:entry, such as 12:345")


def _shown(position: Position) -> str:
    return f"{position.ledger_id}:{position.entry_id}"


_TOPIC: Final = "{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("GET", f"/pulsarbox/v1/segments/{_TOPIC}", Permission.TOPIC_CONSUMER, segments),
    HttpRoute("GET", f"/pulsarbox/v1/places/{_TOPIC}", Permission.TOPIC_CONSUMER, places),
    HttpRoute("POST", "/pulsarbox/v1/segments", Permission.NAMED, many_segments),
    HttpRoute("POST", "/pulsarbox/v1/places", Permission.NAMED, many_places),
)
