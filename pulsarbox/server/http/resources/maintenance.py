"""Maintenance of topics: truncation, trimming, missing partitions, and storage information."""

from typing import Any

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotAllowed, NotFound, PreconditionFailed
from pulsarbox.names import PERSISTENT, TopicName
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.message_id_json import place_of
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.resource_lookup import (
    find_topic,
    parts_of,
    persistent,
    require_namespace,
    stored_topic,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.partitions import made
from pulsarbox.server.http.statistics.topic_stats import timestamp
from pulsarbox.storage.catalog import Catalog, cursor_key, topic_key
from pulsarbox.storage.record import Position

AT_ONCE = 20
"""Partitions processed per turn."""


def truncate(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge everything for every subscription, and delete it regardless of retention. On each partition."""
    if call.path["domain"] == "non-persistent":
        raise PreconditionFailed("unsupport truncate: a non-persistent topic stores no messages")
    topics = _stored(call, "Truncate")
    later = DeferredAnswer()
    done, _ = when_all(later, len(topics), lambda: DONE)
    for topic in topics:
        topic.truncate(done, call.now)
    return later


def trim(call: HttpRequest) -> DeferredAnswer:
    """Delete the ledgers that are no longer needed, as happens automatically. On each partition."""
    topics = _stored(call, "Trim")
    return in_turns(
        call, topics, lambda topic, now: topic.trim(now), lambda now, later: later.complete(plain("")), AT_ONCE
    )


def close_ledger(call: HttpRequest) -> HttpResponse:
    """Close the open ledger and open the next one: ``{"closed": 12}``; it can then be offloaded, or trimmed.

    Null if the ledger has no entries, or was opened less than ``olderThanMs`` (in the body) ago, or the topic is
    terminated.
    """
    topic = stored_topic(call, "Closing a ledger", PERSISTENT)
    older = (call.json_object() or {}).get("olderThanMs", 0)
    if not isinstance(older, int) or isinstance(older, bool) or older < 0:
        raise BadRequest(f"olderThanMs: {str(older)[:60]!r} is not a number of milliseconds")
    closed = None if topic.termination.ended else topic.ledgers.close(older, call.now)
    topic.trim(call.now)
    return answer({"closed": closed})


def create_missing(call: HttpRequest) -> DeferredAnswer:
    """Create the missing partitions of a partitioned topic."""
    name = call.topic()
    require_namespace(call, name)
    count = call.topics.partitions(name)
    if not count:
        raise NotFound(f"Topic {name} does not exist")
    return made(call, name, count)


def backlog_size(call: HttpRequest) -> DeferredAnswer:
    """Return the bytes of the entries after the message in the body; of all entries for ledger -1."""
    name = call.topic()
    require_namespace(call, name)
    if call.topics.partitions(name):
        raise NotAllowed("calculate backlog size is not allowed for partitioned-topic")
    topic = persistent(find_topic(call, name, call.now), "Calculate backlog size")
    place = place_of(call)
    if place is None:
        raise BadRequest('The body must name a message: {"ledgerId": ..., "entryId": ...}')
    later = DeferredAnswer()
    ledger = topic.ledger

    def located(mark: Position, messages: int, size: int, now: Now) -> None:
        later.complete(answer(max(ledger.bytes_behind(size), 0)))

    if place.position.ledger_id == -1:
        later.complete(answer(ledger.size))
    else:
        topic.reader.locate(place.next_entry, located, lambda error, _: later.failed(error), call.now)
    return later


def message_id_by_index(call: HttpRequest) -> HttpResponse:
    """Refuse, as Pulsar does without broker entry metadata, which is its default."""
    raise PreconditionFailed("GetMessageIDByIndex is not allowed when broker entry metadata is disabled")


# Storage information


def internal_info(call: HttpRequest) -> HttpResponse:
    """Return the ledgers and cursors of a topic's metadata; for a partitioned topic, per partition."""
    name, catalog = call.topic(), call.broker.catalog
    parts = parts_of(call)
    if parts == [name]:
        return answer(_info(persistent(find_topic(call, name, call.now), "Internal info"), catalog))
    infos = {str(part): _info(persistent(find_topic(call, part, call.now), "Internal info"), catalog) for part in parts}
    return answer({"version": 0, "partitions": infos})


def _info(topic: PersistentTopic, catalog: Catalog) -> dict[str, Any]:
    ledger = topic.ledger
    row = catalog.get(topic_key(str(topic.name))) or {}
    created, properties = row.get("created", 0), row.get("properties")
    changed = max([created, *(info.closed for info in ledger.ledgers.values())])
    ended = topic.termination.at if topic.termination.ended else None
    terminated = {"terminatedPosition": {"ledgerId": ended.ledger_id, "entryId": ended.entry_id}} if ended else {}
    return {
        "version": 1,
        "creationDate": timestamp(created),
        "modificationDate": timestamp(changed),
        **terminated,
        "ledgers": [
            {"ledgerId": info.ledger_id, "timestamp": info.created, "isOffloaded": False}
            if info is ledger.current
            else {
                "ledgerId": info.ledger_id,
                "entries": info.entries,
                "size": info.size,
                "timestamp": info.closed,
                "isOffloaded": False,
            }
            for info in ledger.ledgers.values()
        ],
        "cursors": {each.name: _cursor(each, catalog) for each in topic.subscriptions.values() if each.durable},
        **({"properties": properties} if properties else {}),
    }


def _cursor(subscription: Subscription, catalog: Catalog) -> dict[str, Any]:
    cursor = subscription.cursor
    row = catalog.get(cursor_key(cursor.ledger.topic_id, cursor.cursor_id)) or {}
    created = timestamp(row.get("created", 0))
    ledger_id, entry_id = cursor.mark_delete
    return {
        "version": 1,
        "creationDate": created,
        "modificationDate": created,
        "cursorsLedgerId": -1,
        "markDelete": {"ledgerId": ledger_id, "entryId": entry_id},
    }


def offline_backlog(call: HttpRequest) -> HttpResponse:
    """Return the backlog of an unloaded topic, the same here as of a loaded one. Empty for a missing topic."""
    name = call.topic()
    require_namespace(call, name)
    topic = call.topics.find(name, call.now)
    found = topic if isinstance(topic, PersistentTopic) else None
    return answer(_offline(name, call) | (_held(found) if found is not None else {}))


def _offline(name: TopicName, call: HttpRequest) -> dict[str, Any]:
    return {
        "topicName": f"{name.namespace}/{name.domain}/{name.local}",
        "brokerName": call.broker.endpoints.host,
        "storageSize": 0,
        "totalMessages": 0,
        "messageBacklog": 0,
        "dataLedgerDetails": [],
        "cursorDetails": {},
        "statGeneratedAt": call.now.wall,
    }


def _held(topic: PersistentTopic) -> dict[str, Any]:
    ledger = topic.ledger
    backlogs = {each.name: each.cursor.backlog_entries for each in topic.subscriptions.values() if each.durable}
    return {
        "storageSize": ledger.size,
        "totalMessages": ledger.confirmed_entries,
        "messageBacklog": sum(backlogs.values()),
        "dataLedgerDetails": [
            {"entries": info.confirmed, "timestamp": info.closed, "size": info.size, "ledgerId": info.ledger_id}
            for info in ledger.ledgers.values()
            if info.confirmed
        ],
        "cursorDetails": {name: {"cursorBacklog": backlog, "cursorLedgerId": -1} for name, backlog in backlogs.items()},
    }


def _stored(call: HttpRequest, what: str) -> list[PersistentTopic]:
    return [persistent(find_topic(call, part, call.now), what) for part in parts_of(call)]


_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("DELETE", f"{_TOPIC}/truncate", Permission.TENANT_ADMIN, truncate),
    HttpRoute("POST", f"{_TOPIC}/trim", Permission.TENANT_ADMIN, trim),
    HttpRoute(
        "POST", "/pulsarbox/v1/ledgers/{tenant}/{namespace}/{topic}/close", Permission.TENANT_ADMIN, close_ledger
    ),
    HttpRoute("POST", f"{_TOPIC}/createMissedPartitions", Permission.TENANT_ADMIN, create_missing),
    HttpRoute("PUT", f"{_TOPIC}/backlogSize", Permission.TOPIC_CONSUMER, backlog_size),
    HttpRoute("GET", f"{_TOPIC}/getMessageIdByIndex", Permission.TOPIC_CONSUMER, message_id_by_index),
    HttpRoute("GET", f"{_TOPIC}/internal-info", Permission.TOPIC_USER, internal_info),
    HttpRoute("GET", f"{_TOPIC}/backlog", Permission.TOPIC_CONSUMER, offline_backlog),
)
