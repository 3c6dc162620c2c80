"""Statistics of a topic: the JSON of Pulsar 4.2, field by field.

Fields that do not apply to a box have Pulsar's default. Beyond Pulsar, a subscription has ``backlogMessages``, its
backlog in messages, where ``msgBacklog`` counts entries; ``secondsToDrain``, until the backlog is consumed at current
rates; ``why``, the reason why nothing is dispatched to it; ``deadLetters`` with a dead letter policy of the box; and
``droppedMessages`` on a non-persistent topic. ``msgDropRate`` of a topic is the sum over its subscriptions, where
Pulsar has 0; that of a publisher counts messages dropped by at least one subscription, where Pulsar counts those beyond
a limit per connection. A dead-letter topic that retains none has ``deadLettersLost``; one with messages that no
subscription has covered has ``unsubscribed``: the messages and bytes that unsubscribed retention keeps, and until when
(ms since 1970). With limited rates, topic and subscription have ``limits``, a list of LimiterReport, and a publisher
``held``, its delayed receipts.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pulsarbox.broker.backlog.refused_producers import PRODUCERS_MAX, RefusedProducer
from pulsarbox.broker.dead_letter.retention_warning import drops_dead_letters
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.limits.limiter import LimitScope
from pulsarbox.broker.limits.throttle_report import subscription_report, topic_report
from pulsarbox.broker.stats.blocked_reason_text import held_reason, quota_reason
from pulsarbox.broker.stats.drain_estimate import longest, seconds_to_drain
from pulsarbox.broker.subscription.consumer import AnySubscription, Consumer
from pulsarbox.broker.subscription.non_persistent import NonPersistentSubscription
from pulsarbox.broker.subscription.offloaded_ledgers import offloaded_bytes, ranges_of
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, TYPE_NAMES, Subscription
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import WALL_MAX, Now
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, ProducerAccessMode
from pulsarbox.server.http.resources.compaction import compaction_stats
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.delayed_index import ROW_BYTES

Stats = dict[str, Any]

RANGE_BYTES: Final = 56
"""Bytes of an acknowledged range on disk."""

NO_COMPACTION: Final = {
    "lastCompactionRemovedEventCount": 0,
    "lastCompactionSucceedTimestamp": 0,
    "lastCompactionFailedTimestamp": 0,
    "lastCompactionDurationTimeInMills": 0,
}


_LIMITS: Final = {LimitScope.SUBSCRIPTION: "Subscription", LimitScope.TOPIC: "Topic", LimitScope.BROKER: "Broker"}
"""Scopes whose throttling Pulsar counts; it has no counter for resource groups."""


_DRAINING: Final = ("drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages")


class StatsOptions(NamedTuple):
    """Optional parts of the statistics, and their time."""

    now: Now
    owner: str
    """The broker, as ``host:port`` of its Admin API."""
    publishers: bool = True
    consumers: bool = True


def timestamp(wall: int) -> str:
    """Format milliseconds since 1970 as Pulsar does."""
    seconds, millis = divmod(wall, 1000)
    return f"{_second(seconds)}.{millis:03}Z" if millis else f"{_second(seconds)}Z"


@lru_cache(1024)  # many clients of a topic connect in the same second
def _second(seconds: int) -> str:
    if 0 <= seconds <= WALL_MAX // 1000:
        return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00")
    # Clients may send any 64 bits. The calendar repeats every 400 years; years are formatted as in Java.
    cycles, rest = divmod(seconds, _CYCLE)
    found = datetime.fromtimestamp(rest, UTC)
    year = found.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{found.isoformat()[4:19]}"


_CYCLE: Final = 146_097 * 86_400
"""Seconds of 400 years."""


def empty() -> Stats:
    """Return the statistics of an unused topic, to which others are added."""
    return {
        "msgRateIn": 0.0,
        "msgThroughputIn": 0.0,
        "msgRateOut": 0.0,
        "msgThroughputOut": 0.0,
        "bytesInCounter": 0,
        "msgInCounter": 0,
        "systemTopicBytesInCounter": 0,
        "bytesOutCounter": 0,
        "msgOutCounter": 0,
        "bytesOutInternalCounter": 0,
        "averageMsgSize": 0.0,
        "msgChunkPublished": False,
        "storageSize": 0,
        "backlogSize": 0,
        "backlogQuotaLimitSize": 0,
        "backlogQuotaLimitTime": 0,
        "oldestBacklogMessageAgeSeconds": 0,
        "publishRateLimitedTimes": 0,
        "earliestMsgPublishTimeInBacklogs": 0,
        "offloadedStorageSize": 0,
        "lastOffloadLedgerId": 0,
        "lastOffloadSuccessTimeStamp": 0,
        "lastOffloadFailureTimeStamp": 0,
        "ongoingTxnCount": 0,
        "abortedTxnCount": 0,
        "committedTxnCount": 0,
        "publishers": [],
        "waitingPublishers": 0,
        "subscriptions": {},
        "replication": {},
        "nonContiguousDeletedMessagesRanges": 0,
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": 0,
        "compaction": dict(NO_COMPACTION),
        "topicCreationTimeStamp": 0,
        "lastPublishTimeStamp": 0,
    }


def topic_stats(topic: Topic, wanted: StatsOptions) -> Stats:
    """Return the statistics of a topic."""
    rates_in = [producer.rates(wanted.now)[:2] for producer in topic.producers]
    subscriptions = {each.name: subscription_stats(each, wanted) for each in topic.all_subscriptions()}
    rate_in, throughput_in = (sum(column) for column in zip(*rates_in, strict=True)) if rates_in else (0.0, 0.0)
    for each in subscriptions.values():
        if "backlogMessages" in each:
            each["secondsToDrain"] = seconds_to_drain(each["backlogMessages"], each["messageAckRate"], rate_in)
    stats = empty() | {
        "msgRateIn": rate_in,
        "msgThroughputIn": throughput_in,
        "msgRateOut": 0.0 + _sum(subscriptions, "msgRateOut"),
        "msgThroughputOut": 0.0 + _sum(subscriptions, "msgThroughputOut"),
        "bytesOutCounter": topic.gone_out[1] + _sum(subscriptions, "bytesOutCounter"),
        "msgOutCounter": topic.gone_out[0] + _sum(subscriptions, "msgOutCounter"),
        "averageMsgSize": throughput_in / rate_in if rate_in else 0.0,
        "publishers": [publisher_stats(each, wanted) for each in topic.producers] if wanted.publishers else [],
        "waitingPublishers": topic.producers.waiting,
        "subscriptions": subscriptions,
        "msgChunkPublished": topic.producers.has_chunks,
        "publishRateLimitedTimes": topic.limits.publish_limited,
        "ownerBroker": wanted.owner,
    }
    limits = topic_report(topic.limits, wanted.now)
    if limits:
        stats["limits"] = [each._asdict() for each in limits]
    if topic.producers.epoch is not None:
        stats["topicEpoch"] = topic.producers.epoch
    return stats | (
        _stored(topic, subscriptions, wanted.now)
        if isinstance(topic, PersistentTopic)
        else _not_stored(topic, subscriptions)
    )


def _stored(topic: PersistentTopic, subscriptions: dict[str, Stats], now: Now) -> Stats:
    ledger = topic.ledger
    row = topic.core.catalog.get(topic_key(str(topic.name))) or {}
    slowest = min((each.cursor.mark_bytes for each in topic.subscriptions.values()), default=ledger.confirmed_bytes)
    ranges = _sum(subscriptions, "nonContiguousDeletedMessagesRanges")
    unsubscribed = topic.ledgers.unsubscribed.find()
    waiting = topic.backlog.waiting_producers(now)
    return {
        **({"heldPublishers": [_held_publisher(each) for each in waiting[:PRODUCERS_MAX]]} if waiting else {}),
        **({"deadLettersLost": True} if drops_dead_letters(topic) else {}),
        **({"unsubscribed": unsubscribed._asdict()} if unsubscribed is not None else {}),
        "delayedMessageIndexSizeInBytes": topic.stored.delays.size,
        "compaction": compaction_stats(topic),
        "ongoingTxnCount": len(list(topic.stored.open)),
        "abortedTxnCount": topic.ended_transactions[False],
        "committedTxnCount": topic.ended_transactions[True],
        "bytesInCounter": ledger.confirmed_bytes,
        "msgInCounter": ledger.confirmed_messages,
        "storageSize": ledger.size,
        "offloadedStorageSize": offloaded_bytes(ledger, ranges_of(topic.subscriptions.values())),
        "backlogSize": ledger.bytes_behind(slowest),
        "backlogQuotaLimitSize": topic.backlog.size.limit,
        "backlogQuotaLimitTime": topic.backlog.age.limit // 1000 if topic.backlog.age.limit > 0 else -1,
        **_oldest(topic, now),
        "deduplicationStatus": "Disabled" if topic.deduplication is None else "Enabled",
        "nonContiguousDeletedMessagesRanges": ranges,
        "nonContiguousDeletedMessagesRangesSerializedSize": ranges * RANGE_BYTES,
        "topicCreationTimeStamp": row.get("created", 0),
        "lastPublishTimeStamp": ledger.last_publish_time,
    }


def _held_publisher(held: RefusedProducer) -> Stats:
    """Return a producer that waits for a backlog quota."""
    return {
        "producerName": held.name,
        "address": f"/{held.address}",
        "producerId": held.producer_id,
        "lastTried": held.last,
        "why": quota_reason(held)._asdict(),
    }


def _oldest(topic: PersistentTopic, now: Now) -> Stats:
    """Return the age of the oldest message in the backlog: -1 without one, or until it is read."""
    oldest = topic.expiry.request_oldest(now)
    if oldest is None:
        return {"oldestBacklogMessageAgeSeconds": -1}
    age = max(now.wall - oldest.begins, 0) // 1000
    return {"oldestBacklogMessageAgeSeconds": age, "oldestBacklogMessageSubscriptionName": oldest.subscription}


def _not_stored(topic: Topic, subscriptions: dict[str, Stats]) -> Stats:
    return {
        "bytesInCounter": topic.gone_in[1] + sum(each.bytes_in for each in topic.producers),
        "msgInCounter": topic.gone_in[0] + sum(each.messages_in for each in topic.producers),
        "msgDropRate": 0.0 + _sum(subscriptions, "msgDropRate"),
    }


def publisher_stats(producer: AttachedProducer, wanted: StatsOptions) -> Stats:
    """Return the statistics of a producer."""
    rate, throughput, chunks, dropped = producer.rates(wanted.now)
    stats = {
        "accessMode": ProducerAccessMode.Name(producer.access.mode),
        "msgRateIn": rate,
        "msgThroughputIn": throughput,
        "averageMsgSize": throughput / rate if rate else 0.0,
        "chunkedMessageRate": chunks,
        "producerId": producer.producer_id,
        "supportsPartialProducer": False,
        "producerName": producer.name,
        "address": f"/{producer.cnx.address}",
        "connectedSince": timestamp(producer.connected_since),
        "clientVersion": producer.cnx.client_version,
        "metadata": producer.metadata,
    }
    hold = producer.held
    if hold is not None:
        stats["held"] = {
            "receipts": hold.held,
            "bytes": hold.held_bytes,
            "connectionIsRead": producer.cnx.unread is None,
            "suspended": bool(producer.suspended),
        }
    why = held_reason(producer)
    if why is not None:
        stats["why"] = {"reason": why.reason, "since": why.since, "text": why.text}
    return stats if producer.topic.name.persistent else stats | {"msgDropRate": dropped}


def _add_key_shared(consumers: Sequence[Stats], subscription: AnySubscription) -> None:
    """Add Key_Shared fields to consumers: their ranges, and their draining hashes, which others own now."""
    dispatcher = subscription.dispatcher if isinstance(subscription, Subscription) else None
    shared = dispatcher if isinstance(dispatcher, KeySharedDispatcher) else None
    moved = {} if shared is None else shared.draining()
    ranges = subscription.key_ranges
    for consumer, stats in zip(subscription.consumers, consumers, strict=True):
        draining = moved.get(consumer, [])
        if shared is not None:
            stats["drainingHashesCount"] = len(draining)
            stats["drainingHashesClearedTotal"] = shared.drained_by(consumer)
            stats["drainingHashesUnackedMessages"] = sum(each.entries for each in draining)
        stats["drainingHashes"] = [
            {"hash": each.slot, "unackMsgs": each.entries, "blockedAttempts": each.blocked} for each in draining
        ]
        stats["keyHashRangeArrays"] = [list(pair) for pair in ranges.get(consumer, [])]


def subscription_stats(subscription: AnySubscription, wanted: StatsOptions) -> Stats:
    """Return the statistics of a subscription."""
    consumers = [consumer_stats(each, subscription, wanted) for each in subscription.consumers]
    if subscription.type == CommandSubscribe.Key_Shared:
        _add_key_shared(consumers, subscription)
    active = subscription.active_consumer
    stats = {
        "msgRateOut": sum((each["msgRateOut"] for each in consumers), 0.0),
        "msgThroughputOut": sum((each["msgThroughputOut"] for each in consumers), 0.0),
        "bytesOutCounter": subscription.removed[1] + sum(each["bytesOutCounter"] for each in consumers),
        "msgOutCounter": subscription.removed[0] + sum(each["msgOutCounter"] for each in consumers),
        "msgRateRedeliver": sum((each["msgRateRedeliver"] for each in consumers), 0.0),
        "messageAckRate": sum((each["messageAckRate"] for each in consumers), 0.0),
        "chunkedMessageRate": sum((each["chunkedMessageRate"] for each in consumers), 0.0),
        "msgBacklog": 0,
        "backlogSize": 0,
        "earliestMsgPublishTimeInBacklog": 0,
        "msgBacklogNoDelayed": 0,
        "backlogMessages": 0,
        "blockedSubscriptionOnUnackedMsgs": False,
        "msgDelayed": 0,
        "msgInReplay": 0,
        "unackedMessages": sum(each["unackedMessages"] for each in consumers),
        "type": TYPE_NAMES[subscription.type],
        **({"activeConsumerName": active.name} if active is not None else {}),
        "msgRateExpired": 0.0,
        "msgExpired": 0,
        "totalMsgExpired": 0,
        "lastExpireTimestamp": 0,
        "lastConsumedFlowTimestamp": _latest(each.last_flow for each in subscription.consumers),
        "lastConsumedTimestamp": _latest(each.last_sent for each in subscription.consumers),
        "lastAckedTimestamp": _latest(each.last_acked for each in subscription.consumers),
        "lastMarkDeleteAdvancedTimestamp": 0,
        "consumers": consumers if wanted.consumers else [],
        "isDurable": subscription.durable,
        "isReplicated": subscription.replicated,
        "allowOutOfOrderDelivery": any(each.key_shared.allow_out_of_order for each in subscription.consumers),
        "consumersAfterMarkDeletePosition": {},
        **{name: sum(each[name] for each in consumers) for name in _DRAINING},
        "nonContiguousDeletedMessagesRanges": 0,
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": 0,
        "subscriptionProperties": {},
        "filterProcessedMsgCount": 0,
        "filterAcceptedMsgCount": 0,
        "filterRejectedMsgCount": 0,
        "filterRescheduledMsgCount": 0,
        "dispatchThrottledMsgEventsBySubscriptionLimit": 0,
        "dispatchThrottledBytesEventsBySubscriptionLimit": 0,
        "dispatchThrottledMsgEventsByTopicLimit": 0,
        "dispatchThrottledBytesEventsByTopicLimit": 0,
        "dispatchThrottledMsgEventsByBrokerLimit": 0,
        "dispatchThrottledBytesEventsByBrokerLimit": 0,
        "durable": subscription.durable,
        "replicated": subscription.replicated,
    }
    if subscription.type == CommandSubscribe.Key_Shared:
        stats |= _key_shared_mode(subscription)
    if isinstance(subscription, Subscription):
        return stats | _cursor_stats(subscription, wanted.now)
    if isinstance(subscription, NonPersistentSubscription):
        stats["msgDropRate"] = subscription.drop_rate(wanted.now)
        stats["droppedMessages"] = subscription.dropped
    return stats


def _key_shared_mode(subscription: AnySubscription) -> Stats:
    """Return the mode of the consumers; as in Pulsar, also after the last one has left."""
    if subscription.consumers:
        return {"keySharedMode": subscription.consumers[0].key_shared.mode.name}
    return {"keySharedMode": subscription.key_shared.mode.name} if isinstance(subscription, Subscription) else {}


def _cursor_stats(subscription: Subscription, now: Now) -> Stats:
    cursor, clearing, why = subscription.cursor, subscription.clearing, subscription.blocked_reason()
    backlog, ranges, delayed = cursor.backlog_entries, len(cursor.ranges), subscription.delayed(now)
    return {
        "msgBacklog": backlog,
        "backlogSize": cursor.backlog_bytes,
        "msgBacklogNoDelayed": backlog - delayed,
        "msgDelayed": delayed,
        "delayedMessageIndexSizeInBytes": delayed * ROW_BYTES,
        "blockedSubscriptionOnUnackedMsgs": subscription.blocked,
        "msgInReplay": subscription.waiting_again,
        "type": TYPE_NAMES[subscription.type] if subscription.served else "None",
        "msgRateExpired": clearing.rate_expired(now),
        "msgExpired": clearing.expired,
        "totalMsgExpired": clearing.expired,
        "lastExpireTimestamp": clearing.last_expired,
        "lastMarkDeleteAdvancedTimestamp": subscription.mark_moved,
        "nonContiguousDeletedMessagesRanges": ranges,
        "nonContiguousDeletedMessagesRangesSerializedSize": ranges * RANGE_BYTES,
        "subscriptionProperties": subscription.properties,
        "backlogMessages": cursor.backlog_messages,
        "why": why._asdict(),
        **_dead_letters(subscription),
        **_throttled(subscription, now),
    }


def _dead_letters(subscription: Subscription) -> Stats:
    letters = subscription.dead_letters
    if letters.policy is None:
        return {}
    told = letters.policy.as_json() | {"messages": letters.messages, "lastTimestamp": letters.last}
    if letters.refused:
        told |= {"refused": letters.refused, "refusedSince": letters.refused_since}
    return {"deadLetters": told}


def _throttled(subscription: Subscription, now: Now) -> Stats:
    throttle = subscription.throttle
    stats: Stats = {}
    if throttle.has_counts:
        messages, size = throttle.counts.messages, throttle.counts.bytes
        for scope, name in _LIMITS.items():
            stats[f"dispatchThrottledMsgEventsBy{name}Limit"] = messages[scope]
            stats[f"dispatchThrottledBytesEventsBy{name}Limit"] = size[scope]
    limits = subscription_report(throttle, now)
    return stats | {"limits": [each._asdict() for each in limits]} if limits else stats


def consumer_stats(consumer: Consumer, subscription: AnySubscription, wanted: StatsOptions) -> Stats:
    """Return the statistics of a consumer; 0 unacknowledged if exclusive or failover, as in Pulsar."""
    rates = consumer.rates(wanted.now)
    entries = consumer.entries_out
    return {
        "msgRateOut": rates.messages_out,
        "msgThroughputOut": rates.bytes_out,
        "bytesOutCounter": consumer.bytes_out,
        "msgOutCounter": consumer.messages_out,
        "msgRateRedeliver": rates.given_back,
        "messageAckRate": rates.acknowledged,
        "chunkedMessageRate": rates.chunks_out,
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "unackedMessages": 0 if subscription.type in ONE_ACTIVE else consumer.unacked,
        "avgMessagesPerEntry": round(consumer.messages_out / entries) if entries else 0,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "drainingHashesCount": 0,
        "drainingHashesClearedTotal": 0,
        "drainingHashesUnackedMessages": 0,
        "address": f"/{consumer.cnx.address}",
        "connectedSince": timestamp(consumer.connected_since),
        "clientVersion": consumer.cnx.client_version,
        "lastAckedTimestamp": consumer.last_acked,
        "lastConsumedTimestamp": consumer.last_sent,
        "firstMessagesSentTimestamp": consumer.first_sent,
        "lastConsumedFlowTimestamp": consumer.last_flow,
        "firstConsumedFlowTimestamp": consumer.first_flow,
        "metadata": consumer.metadata,
        "lastAckedTime": timestamp(consumer.last_acked),
        "lastConsumedTime": timestamp(consumer.last_sent),
    }


# Partitioned topics: sums as in Pulsar's TopicStatsImpl.add and similar methods.

_ADDED: Final = frozenset(
    (
        "msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter", "msgInCounter",
        "bytesOutCounter", "msgOutCounter", "waitingPublishers", "storageSize", "backlogSize",
        "publishRateLimitedTimes", "offloadedStorageSize", "nonContiguousDeletedMessagesRanges",
        "nonContiguousDeletedMessagesRangesSerializedSize", "delayedMessageIndexSizeInBytes", "msgDropRate",
        "msgRateRedeliver", "messageAckRate", "chunkedMessageRate", "msgBacklog", "msgBacklogNoDelayed", "msgDelayed",
        "msgInReplay", "unackedMessages", "msgRateExpired", "msgExpired", "totalMsgExpired", "drainingHashesCount",
        "drainingHashesClearedTotal", "drainingHashesUnackedMessages", "filterProcessedMsgCount",
        "filterAcceptedMsgCount", "filterRejectedMsgCount", "filterRescheduledMsgCount",
        "dispatchThrottledMsgEventsBySubscriptionLimit", "dispatchThrottledBytesEventsBySubscriptionLimit",
        "dispatchThrottledMsgEventsByTopicLimit", "dispatchThrottledBytesEventsByTopicLimit",
        "dispatchThrottledMsgEventsByBrokerLimit", "dispatchThrottledBytesEventsByBrokerLimit", "backlogMessages",
        "availablePermits", "ongoingTxnCount", "droppedMessages", "abortedTxnCount", "committedTxnCount",
    )
)  # fmt: skip
_OLDEST: Final = frozenset(
    ("topicCreationTimeStamp", "earliestMsgPublishTimeInBacklogs", "earliestMsgPublishTimeInBacklog")
)
"""The minimum of those that are set."""
_NEWEST: Final = frozenset(("lastPublishTimeStamp",))
_EITHER: Final = frozenset(("isDurable", "isReplicated", "allowOutOfOrderDelivery", "durable", "replicated"))
_LAST: Final = frozenset(("type", "blockedConsumerOnUnackedMsgs", "consumerName", "firstMessagesSentTimestamp",
                          "firstConsumedFlowTimestamp", "keyHashRangeArrays"))  # fmt: skip

_NOT_SUMMED: Final = frozenset(("why", "activeConsumerName", "limits"))

_NO_PUBLISHER: Final = {
    "msgRateIn": 0.0,
    "msgThroughputIn": 0.0,
    "averageMsgSize": 0.0,
    "chunkedMessageRate": 0.0,
    "producerId": 0,
    "supportsPartialProducer": False,
}
_NOT_OF_A_SUM: Final = frozenset(("metadata", "address", "connectedSince", "clientVersion"))
"""Fields that the consumers of a sum do not have."""


def add(total: Stats, stats: Stats, parts: int) -> None:
    """Add the statistics of another partition to those of ``parts`` partitions."""
    _add_numbers(total, stats)
    if stats.get("deadLettersLost"):
        total["deadLettersLost"] = True
    if "unsubscribed" in stats:
        _add_unsubscribed(total, stats["unsubscribed"])
    total["msgChunkPublished"] |= stats["msgChunkPublished"]
    if "msgDropRate" in stats and "msgDropRate" not in total:
        total["msgDropRate"] = stats["msgDropRate"]
    for name in ("backlogQuotaLimitSize", "backlogQuotaLimitTime"):
        total[name] = stats[name]
    total["averageMsgSize"] = (total["averageMsgSize"] * parts + stats["averageMsgSize"]) / (parts + 1)
    for i, publisher in enumerate(stats["publishers"]):
        if i == len(total["publishers"]):
            total["publishers"].append(dict(_NO_PUBLISHER))
        summed = total["publishers"][i]
        for name in ("msgRateIn", "msgThroughputIn", "chunkedMessageRate", "msgDropRate"):
            if name in publisher:
                summed[name] = summed.get(name, 0.0) + publisher[name]
        summed["averageMsgSize"] = summed["msgThroughputIn"] / summed["msgRateIn"] if summed["msgRateIn"] else 0.0
    for name, subscription in stats["subscriptions"].items():
        if name in total["subscriptions"]:
            _add_subscription(total["subscriptions"][name], subscription)
        else:
            total["subscriptions"][name] = _first_of_a_sum(subscription)


def _add_unsubscribed(total: Stats, kept: Stats) -> None:
    found = total.get("unsubscribed", {"messages": 0, "bytes": 0, "until": 0})
    total["unsubscribed"] = {
        "messages": found["messages"] + kept["messages"],
        "bytes": found["bytes"] + kept["bytes"],
        "until": min(filter(None, (found["until"], kept["until"])), default=0),
    }


def _first_of_a_sum(subscription: Stats) -> Stats:
    first = {name: value for name, value in subscription.items() if name not in _NOT_SUMMED}
    for name in first:
        if name.startswith("last") and name.endswith("Timestamp"):
            first[name] = 0  # as in Pulsar, a sum has none
    return first | {
        "consumers": [_consumer_of_a_sum(each) for each in subscription["consumers"]],
        "subscriptionProperties": dict(subscription["subscriptionProperties"]),
    }


def _consumer_of_a_sum(consumer: Stats) -> Stats:
    left = {name: value for name, value in consumer.items() if name not in _NOT_OF_A_SUM}
    for name in left:
        if name.startswith("last") and name.endswith("Timestamp"):
            left[name] = 0
    return left | {"lastAckedTime": timestamp(0), "lastConsumedTime": timestamp(0), "avgMessagesPerEntry": 0}


def _add_subscription(total: Stats, subscription: Stats) -> None:
    _add_numbers(total, subscription)
    total["subscriptionProperties"] |= subscription["subscriptionProperties"]
    if "deadLetters" in subscription:
        total["deadLetters"] = _letters_of_both(total.get("deadLetters", {}), subscription["deadLetters"])
    consumers = [_consumer_of_a_sum(each) for each in subscription["consumers"]]
    if len(total["consumers"]) != len(consumers):
        total["consumers"] += consumers
        return
    for summed, consumer in zip(total["consumers"], consumers, strict=True):
        _add_numbers(summed, consumer)


def _letters_of_both(one: Stats, other: Stats) -> Stats:
    return (
        other
        | one
        | {
            "messages": one.get("messages", 0) + other["messages"],
            "lastTimestamp": max(one.get("lastTimestamp", 0), other["lastTimestamp"]),
        }
    )


def _add_numbers(total: Stats, stats: Stats) -> None:
    for name, value in stats.items():
        if name not in total:
            continue
        if name in _ADDED:
            total[name] += value
        elif name in _OLDEST:
            total[name] = min(total[name], value) if total[name] and value else max(total[name], value)
        elif name in _NEWEST:
            total[name] = max(total[name], value)
        elif name in _EITHER:
            total[name] = total[name] or value
        elif name in _LAST:
            total[name] = value
        elif name == "secondsToDrain":
            total[name] = longest(total[name], value)


def _sum(of: dict[str, Stats], name: str) -> Any:
    return sum((each[name] for each in of.values()), 0)


def _latest(times: Iterable[int]) -> int:
    return max(times, default=0)
