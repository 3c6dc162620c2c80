"""Subscriptions: creation, deletion, cursor resets, acknowledgement."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pulsarbox.broker.backlog.analyze_backlog import BacklogCounts, BacklogScan
from pulsarbox.broker.subscription.consumer import HeldEntry
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import (
    BadRequest,
    Conflict,
    NotAllowed,
    NotFound,
    PersistenceError,
    PreconditionFailed,
    PulsarBoxError,
    SubscriptionFenced,
)
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.message_id_json import LATEST, MessageIdArgument, place_of, start_of
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, texts
from pulsarbox.server.http.framework.resource_lookup import (
    find_topic,
    parts_of,
    persistent,
    require_namespace,
    stored_topic,
    subscription_of,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.replicated_subscriptions import replicated_answer
from pulsarbox.storage.catalog import cursor_key
from pulsarbox.storage.record import Position

RESERVED = ("pulsar.dedup", "pulsar.repl")
"""Reserved names and name prefixes of Pulsar."""
ANALYZE_MS_MAX = 50_000
"""Maximum milliseconds of a backlog analysis: clients wait a minute for the answer."""
AT_ONCE = 50
"""Partitions processed per turn."""

Operation = Callable[[Subscription, Callable[[Now], None], Callable[[Exception], None], Now], None]


def create(call: HttpRequest) -> DeferredAnswer:
    """Create a durable subscription at the message id in the body, by default at the end.

    A missing topic is created if auto-creation allows it. On a partitioned topic, all partitions get the subscription.
    """
    name = call.path["subscription"]
    if call.path["domain"] == "non-persistent":
        raise BadRequest("Create subscription on non-persistent topic can only be done through client")
    check_name(name)
    # As in Pulsar, which ignores ``excluded`` here.
    place = (place_of(call) or MessageIdArgument(LATEST))._replace(excluded=False)
    parts = parts_of(call)
    topics = [_opened(call, part) for part in parts]
    if all(name in topic.subscriptions for topic in topics):
        raise Conflict("Subscription already exists for topic")
    later = DeferredAnswer()
    missing = [topic for topic in topics if name not in topic.subscriptions]
    try:
        for topic in missing:
            topic.admission.check_subscription(len(topic.subscriptions))
    except NotAllowed as error:
        raise Conflict(str(error)) from None  # as in Pulsar, where only clients get the other code
    replicated = call.flag("replicated")
    done, failed = when_all(later, len(missing), lambda: replicated_answer(replicated=replicated))
    for topic in missing:
        _create_at(topic, name, place, done, failed, call.now, replicated=replicated)
    return later


def _opened(call: HttpRequest, name: TopicName) -> PersistentTopic:
    return persistent(call.topics.open(name, call.now), "Create subscription")


def check_name(name: str) -> None:
    """Raise PreconditionFailed for an invalid subscription name."""
    if not name.strip():
        raise PreconditionFailed("Empty subscription name")
    if name == RESERVED[0] or name.startswith(RESERVED[1]):
        raise PreconditionFailed(f"Subscription name {name!r} is reserved")


def _create_at(
    topic: PersistentTopic,
    name: str,
    place: MessageIdArgument,
    done: Callable[[Now], None],
    failed: Callable[[Exception], None],
    now: Now,
    *,
    replicated: bool,
) -> None:
    def located(ack_set: list[int], position: Position, mark: Position, messages: int, size: int, when: Now) -> None:
        if name in topic.subscriptions:
            failed(Conflict("Subscription already exists for topic"))
            return
        subscription = topic.subscribe_behind(name, (mark, messages, size), place.properties, when)
        subscription.set_replicated(replicated, when)
        if ack_set:
            subscription.seek(position, ack_set, done, failed, when)
        else:
            done(when)

    def known(held: HeldEntry | None, when: Now) -> None:
        position, ack_set = start_of(place, held)
        topic.reader.locate(position, partial(located, ack_set, position), lambda error, _: failed(error), when)

    _look_up(topic, place, known, failed, now)


def _look_up(
    topic: PersistentTopic,
    place: MessageIdArgument,
    known: Callable[[HeldEntry | None, Now], None],
    failed: Callable[[Exception], None],
    now: Now,
) -> None:
    """Look up the entry of a place, needed only for a message within a batch."""
    if place.batch_index < 0:
        known(None, now)
    else:
        topic.reader.look_up(place.position, known, lambda error, _: failed(error), now)


def delete(call: HttpRequest) -> DeferredAnswer:
    """Delete a subscription, on all partitions; while consumers are connected, only with force."""
    force, parts = call.flag("force"), parts_of(call)
    found = _found(call, parts)
    if not found:
        if parts != [call.topic()]:
            raise NotFound("Subscription not found")
        raise NotFound(f"Subscription {call.path['subscription']} not found for topic {call.topic()}")
    if not force and any(each.consumers for each in found):
        raise PreconditionFailed("Subscription has active connected consumers")

    def remove(subscription: Subscription, now: Now) -> None:
        subscription.close(now)
        subscription.remove(now)

    return in_turns(call, found, remove, lambda now, later: later.complete(DONE), AT_ONCE)


def _found(call: HttpRequest, parts: list[TopicName]) -> list[Subscription]:
    """Return the subscription on each partition that has it. Raises NotFound if a topic is missing, NotAllowed."""
    name = call.path["subscription"]
    topics = [persistent(find_topic(call, part, call.now), "This") for part in parts]
    return [topic.subscriptions[name] for topic in topics if name in topic.subscriptions]


def get_properties(call: HttpRequest) -> HttpResponse:
    """Return the properties of a subscription."""
    found = _found(call, parts_of(call))
    if not found:
        raise NotFound(f"Subscription {call.path['subscription']} not found for topic {call.topic()}")
    return answer({name: value for each in found for name, value in each.properties.items()})


def put_properties(call: HttpRequest) -> HttpResponse:
    """Replace the properties of a subscription."""
    properties = texts(call.json(), "Properties of a subscription")
    found = _found(call, parts_of(call))
    if not found:
        raise NotFound(f"Subscription {call.path['subscription']} not found for topic {call.topic()}")
    commits, catalog = call.broker.commits, call.broker.catalog
    for each in found:
        each.properties = dict(properties)
        key = cursor_key(each.ledger.topic_id, each.cursor.cursor_id)
        row = catalog.get(key)
        if row is not None:  # a reader has none
            commits.put_row(key, row | {"properties": properties})
    return DONE


# Acknowledgement


def skip(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge the next entries of a subscription; not for a partitioned topic."""
    count = call.number("count")
    subscription = subscription_of(stored_topic(call, "Skip messages"), call.path["subscription"])
    later = DeferredAnswer()
    subscription.clearing.skip(count, later.done, later.failed, call.now)
    return later


def skip_all(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge everything, on each partition; all of them must have the subscription."""

    def clear(each: Subscription, done: Callable[[Now], None], failed: Callable[[Exception], None], now: Now) -> None:
        each.clearing.clear(done, now)

    return _on_all(call, clear)


def _on_all(call: HttpRequest, operation: Operation, *, name_the_part: bool = False) -> DeferredAnswer:
    """Apply an operation to the subscription on each partition. Raises NotFound if one does not have it."""
    parts, name = parts_of(call), call.path["subscription"]
    found = []
    for part in parts:
        topic = persistent(find_topic(call, part, call.now), "This")
        if name not in topic.subscriptions:
            named = part if name_the_part else call.topic()
            raise NotFound(f"Subscription {name} not found for topic {named}")
        found.append(topic.subscriptions[name])
    return _each(found, operation, call.now)


def _each(found: list[Subscription], operation: Operation, now: Now) -> DeferredAnswer:
    later = DeferredAnswer()
    done, failed = when_all(later, len(found), lambda: DONE)
    for each in found:
        try:
            operation(each, done, failed, now)
        except PulsarBoxError as error:
            failed(error)
    return later


# Expiry


def expire(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge messages published more than the given number of seconds ago."""
    before = call.now.wall - 1000 * max(call.number("seconds"), 0)
    return _on_all(call, partial(_expire, before), name_the_part=True)


def expire_everywhere(call: HttpRequest) -> DeferredAnswer:
    """Expire messages by age on all subscriptions of a topic."""
    before = call.now.wall - 1000 * max(call.number("seconds"), 0)
    topics = [persistent(find_topic(call, part, call.now), "Expire messages") for part in parts_of(call)]
    found = [each for topic in topics for each in topic.subscriptions.values() if each.durable]
    if not found:
        later = DeferredAnswer()
        later.complete(DONE)
        return later
    return _each(found, partial(_expire, before), call.now)


def _expire(
    before: int,
    subscription: Subscription,
    done: Callable[[Now], None],
    failed: Callable[[Exception], None],
    now: Now,
) -> None:
    if not subscription.cursor.backlog_entries:
        raise Conflict(
            f"Expire message by timestamp not issued on topic {subscription.topic_name} for subscription"
            f" {subscription.name} due to ongoing message expiration not finished or subscription almost catch  up."
            " If it's performed on a partitioned topic operation might succeeded on other partitions, please check"
            " stats of individual partition."
        )
    subscription.clearing.expire_before(before, done, failed, now)


def expire_through(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge everything up to a message, which may be excluded; not for a partitioned topic."""
    name = call.topic()
    require_namespace(call, name)
    if call.topics.partitions(name):
        raise NotAllowed("Expire message at position is not supported for partitioned-topic")
    place = _required(place_of(call))
    topic = persistent(find_topic(call, name, call.now), "Expire messages")
    subscription = subscription_of(topic, call.path["subscription"])
    if place.position > topic.ledger.end:
        raise Conflict(
            f"Expire message by position not issued on topic {name} for subscription {subscription.name} due to"
            " ongoing message expiration not finished or invalid message position provided."
        )
    later = DeferredAnswer()

    def known(held: HeldEntry | None, now: Now) -> None:
        position, ack_set = place.position, list[int]()
        if held is not None and 0 <= place.batch_index < held.batch_size:
            # Later messages of its batch remain.
            following = place._replace(excluded=not place.excluded)
            start, ack_set = start_of(following, held)
            if start == position and not ack_set:  # the whole batch remains
                position = Position(position.ledger_id, position.entry_id - 1)
        elif place.excluded:
            position = Position(position.ledger_id, position.entry_id - 1)
        try:
            subscription.clearing.expire_through(position, ack_set, later.done, later.failed, now)
        except PulsarBoxError as error:
            later.failed(error)

    _look_up(topic, place, known, later.failed, call.now)
    return later


def _required(place: MessageIdArgument | None) -> MessageIdArgument:
    if place is None:
        raise BadRequest('The body must name a message: {"ledgerId": ..., "entryId": ...}, "earliest" or "latest"')
    return place


# Analysis


def analyze(call: HttpRequest) -> DeferredAnswer:
    """Count the unacknowledged entries and messages by reading each, from the message id in the body on.

    Without entry filters, all are accepted. Not for partitioned topics, only for their partitions.
    """
    name, settings = call.topic(), call.settings
    require_namespace(call, name)
    if call.topics.partitions(name):
        raise NotAllowed(
            "Analyze backlog on a partitioned topic is not allowed, please try do it on specific topic partition"
        )
    topic = find_topic(call, name, call.now)
    wanted = call.path["subscription"]
    if not any(each.name == wanted for each in topic.all_subscriptions()):
        raise NotFound(f"Subscription {wanted} not found for topic {name}")
    subscription = subscription_of(persistent(topic, "Analyze backlog"), wanted)
    place = place_of(call)
    later = DeferredAnswer()
    scan = BacklogScan(
        subscription.cursor,
        subscription.reader,
        settings.subscriptionBacklogScanMaxEntries,
        min(settings.subscriptionBacklogScanMaxTimeMs, ANALYZE_MS_MAX),
        lambda counts: later.complete(answer(_analyzed(counts))),
        later.failed,
        call.broker.bounds,
    )
    scan.begin(None if place is None else place.position, call.now)
    return later


def _analyzed(counts: BacklogCounts) -> dict[str, Any]:
    """Return the counts as Pulsar's AnalyzeSubscriptionBacklogResult."""
    ends = {"firstMessageId": counts.first, "lastMessageId": counts.last}
    return {
        "entries": counts.entries,
        "messages": counts.messages,
        "markerMessages": counts.markers,
        "filterRejectedEntries": 0,
        "filterAcceptedEntries": counts.entries,
        "filterRescheduledEntries": 0,
        "filterRejectedMessages": 0,
        "filterAcceptedMessages": counts.messages,
        "filterRescheduledMessages": 0,
        "aborted": counts.aborted,
        **{name: f"{at.ledger_id}:{at.entry_id}" for name, at in ends.items() if at is not None},
    }


# Cursor resets


def reset_to_time(call: HttpRequest) -> DeferredAnswer:
    """Reset to the first message published at a time (ms since 1970) or later, on all partitions."""
    at = call.now.of_client(call.number("timestamp"))

    def seek(each: Subscription, done: Callable[[Now], None], failed: Callable[[Exception], None], now: Now) -> None:
        each.seek_to_time(at, done, _busy(failed), now)

    return _on_all(call, seek, name_the_part=True)


def reset(call: HttpRequest) -> DeferredAnswer:
    """Reset to a message, or to the next one if it is excluded; not for a partitioned topic."""
    name = call.topic()
    require_namespace(call, name)
    if call.topics.partitions(name):
        raise NotAllowed("Reset-cursor at position is not allowed for partitioned-topic")
    place = _required(place_of(call))
    topic = persistent(find_topic(call, name, call.now), "Reset-cursor at position")
    subscription = subscription_of(topic, call.path["subscription"])
    later = DeferredAnswer()

    def known(held: HeldEntry | None, now: Now) -> None:
        position, ack_set = start_of(place, held)
        try:
            subscription.seek(position, ack_set, later.done, _busy(later.failed), now)
        except PersistenceError as error:
            _busy(later.failed)(error)

    _look_up(topic, place, known, later.failed, call.now)
    return later


def _busy(failed: Callable[[Exception], None]) -> Callable[[Exception], None]:
    """Convert the error of a concurrent cursor reset to PreconditionFailed."""

    def told(error: Exception) -> None:
        is_fenced = isinstance(error, SubscriptionFenced)
        failed(PreconditionFailed(f"Failed for Subscription Busy: {error}") if is_fenced else error)

    return told


_SUBSCRIPTION = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/subscription/{subscription}"
_ALL = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/all_subscription"

ROUTES = (
    HttpRoute("PUT", _SUBSCRIPTION, Permission.TOPIC_CONSUMER, create),
    HttpRoute("DELETE", _SUBSCRIPTION, Permission.TOPIC_CONSUMER, delete),
    HttpRoute("GET", f"{_SUBSCRIPTION}/properties", Permission.TOPIC_CONSUMER, get_properties),
    HttpRoute("PUT", f"{_SUBSCRIPTION}/properties", Permission.TOPIC_CONSUMER, put_properties),
    HttpRoute("POST", f"{_SUBSCRIPTION}/skip/{{count}}", Permission.TOPIC_CONSUMER, skip),
    HttpRoute("POST", f"{_SUBSCRIPTION}/skip_all", Permission.TOPIC_CONSUMER, skip_all),
    HttpRoute("POST", f"{_SUBSCRIPTION}/expireMessages/{{seconds}}", Permission.TOPIC_CONSUMER, expire),
    HttpRoute("POST", f"{_SUBSCRIPTION}/expireMessages", Permission.TOPIC_CONSUMER, expire_through),
    HttpRoute("POST", f"{_ALL}/expireMessages/{{seconds}}", Permission.TOPIC_CONSUMER, expire_everywhere),
    HttpRoute("POST", f"{_SUBSCRIPTION}/resetcursor/{{timestamp}}", Permission.TOPIC_CONSUMER, reset_to_time),
    HttpRoute("POST", f"{_SUBSCRIPTION}/resetcursor", Permission.TOPIC_CONSUMER, reset),
    HttpRoute("POST", f"{_SUBSCRIPTION}/analyzeBacklog", Permission.TOPIC_CONSUMER, analyze),
)
