"""Statistics of topics: of one, and summed over partitions."""

from functools import partial
from typing import Any, Final

from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, require_namespace, topic_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.statistics.internal_stats import internal_stats
from pulsarbox.server.http.statistics.ledger_metadata import with_metadata
from pulsarbox.server.http.statistics.topic_stats import Stats, StatsOptions, add, empty, topic_stats
from pulsarbox.storage.record import Entry

PARTITIONS_AT_ONCE: Final = 50
"""Partitions processed per turn: an unused one is loaded from its rows."""


def stats(call: HttpRequest) -> HttpResponse | DeferredAnswer:
    """Return the statistics of a topic. With ``getEarliestTimeInBacklog``, the oldest messages of backlogs are read."""
    topic = topic_of(call)
    found = topic_stats(topic, _wanted(call))
    if not call.flag("getEarliestTimeInBacklog") or not isinstance(topic, PersistentTopic):
        return answer(found)
    later = DeferredAnswer()
    _earliest([(topic, found)], later, partial(answer, found), call.now)
    return later


def internal(call: HttpRequest) -> HttpResponse | DeferredAnswer:
    """Return the ledgers and cursors of a topic; with ``metadata``, the ledgers include the directories they are in."""
    topic, host = topic_of(call), call.broker.host
    found = internal_stats(topic, call.broker.catalog, host)
    if not call.flag("metadata") or not isinstance(topic, PersistentTopic):
        return answer(found)
    if host.bookies is None:
        return answer(with_metadata(topic, host, found, {}))
    later = DeferredAnswer()

    def looked_up(held: Any, error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
        else:
            later.complete(answer(with_metadata(topic, host, found, held)))

    host.run_in_thread("coverage", partial(host.bookies.coverage, list(topic.ledger.ledgers)), looked_up)
    return later


def partitioned(call: HttpRequest) -> DeferredAnswer:
    """Return the sum over all partitions, and each of them unless ``perPartition`` is false."""
    name, count = _partitioned(call)
    wanted = _wanted(call)
    total, parts = empty(), dict[str, Stats]()
    loaded: list[tuple[PersistentTopic, Stats]] = []

    def look(i: int, now: Now) -> None:
        topic = _partition(call, name.partition(i), now)
        if topic is not None:
            parts[str(topic.name)] = found = topic_stats(topic, wanted._replace(now=now))
            if isinstance(topic, PersistentTopic):
                loaded.append((topic, found))

    def summed() -> HttpResponse:
        for i, found in enumerate(parts.values()):
            add(total, found, i)
        each = parts if call.query.get("perPartition", "true").lower() == "true" else {}
        return answer(total | {"metadata": _metadata(call, name, count), "partitions": each})

    def finish(now: Now, later: DeferredAnswer) -> None:
        _earliest(loaded if call.flag("getEarliestTimeInBacklog") else [], later, summed, now)

    return in_turns(call, range(count), look, finish, PARTITIONS_AT_ONCE)


def partitioned_internal(call: HttpRequest) -> DeferredAnswer:
    """Return the ledgers and cursors of each partition."""
    name, count = _partitioned(call)
    parts: dict[str, Any] = {}

    def look(i: int, now: Now) -> None:
        topic = _partition(call, name.partition(i), now)
        if topic is not None:
            parts[str(topic.name)] = internal_stats(topic, call.broker.catalog, call.broker.host)

    def finish(now: Now, later: DeferredAnswer) -> None:
        later.complete(answer({"metadata": _metadata(call, name, count), "partitions": parts}))

    return in_turns(call, range(count), look, finish, PARTITIONS_AT_ONCE)


def _metadata(call: HttpRequest, name: TopicName, count: int) -> dict[str, Any]:
    properties = call.topics.partitioned_properties(name)
    return {"partitions": count, "deleted": False, **({"properties": properties} if properties else {})}


def _partitioned(call: HttpRequest) -> tuple[TopicName, int]:
    name = call.topic()
    require_namespace(call, name)
    count = call.topics.partitions(name)
    if not count:
        raise NotFound(f"Partitioned Topic {name} not found")
    return name, count


def _partition(call: HttpRequest, name: TopicName, now: Now) -> Topic | None:
    try:
        return find_topic(call, name, now)
    except NotFound:  # deleted meanwhile, possibly as inactive
        return None


def _wanted(call: HttpRequest) -> StatsOptions:
    owner = call.broker.endpoints.broker_id
    return StatsOptions(
        call.now, owner, publishers=not call.flag("excludePublishers"), consumers=not call.flag("excludeConsumers")
    )


def _earliest(topics: list[tuple[PersistentTopic, Stats]], later: DeferredAnswer, finish: Any, now: Now) -> None:
    """Read the publish time of the oldest message in each backlog, then answer."""
    wanted = [
        (topic, found, name, subscription.cursor.next_unacked(topic.ledger.next(*subscription.cursor.mark_delete)))
        for topic, found in topics
        for name, subscription in topic.subscriptions.items()
        if subscription.cursor.backlog_entries
    ]
    done, _ = when_all(later, len(wanted) + 1, finish)

    def unread(error: Exception, when: Now) -> None:
        done(when)  # trimmed meanwhile, or damaged: omitted

    for topic, found, name, position in wanted:
        note = partial(_note_earliest, found, name, done)
        topic.reader.read_entry(position, note, unread, now)
    done(now)


def _note_earliest(found: Stats, name: str, done: Any, entry: Entry, now: Now) -> None:
    published = entry.publish_time
    found["subscriptions"][name]["earliestMsgPublishTimeInBacklog"] = published
    before = found["earliestMsgPublishTimeInBacklogs"]
    found["earliestMsgPublishTimeInBacklogs"] = min(before, published) if before else published
    done(now)


_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("GET", f"{_TOPIC}/stats", Permission.TOPIC_USER, stats),
    HttpRoute("GET", f"{_TOPIC}/internalStats", Permission.TOPIC_USER, internal),
    HttpRoute("GET", f"{_TOPIC}/partitioned-stats", Permission.TOPIC_USER, partitioned),
    HttpRoute("GET", f"{_TOPIC}/partitioned-internalStats", Permission.TOPIC_USER, partitioned_internal),
)
