"""What ``broker-stats/topics`` says of a topic: the JSON of Pulsar 4.2, field by field.

A part of what the statistics of a topic say, made for itself: it is asked for of all topics at once, again and again,
so nothing is computed that is not told.
"""

from typing import Any

from pulsarbox.broker.any_subscription import AnySubscription
from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.producer import Producer
from pulsarbox.broker.subscription import ONE_ACTIVE, TYPE_NAMES, Subscription
from pulsarbox.broker.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.server.http.topic_stats import timestamp

Stats = dict[str, Any]


def digest(topic: Topic, now: Now) -> Stats:
    """What is told of a topic."""
    publishers = [_publisher(each, now) for each in topic.producers]
    subscriptions = {each.name: _subscription(each, now) for each in topic.all_subscriptions()}
    rate_in = throughput_in = rate_out = throughput_out = 0.0
    for publisher in publishers:
        rate_in += publisher["msgRateIn"]
        throughput_in += publisher["msgThroughputIn"]
    messages_out, bytes_out = topic.gone_out
    for each in topic.all_subscriptions():
        rate_out += subscriptions[each.name]["msgRateOut"]
        throughput_out += subscriptions[each.name]["msgThroughputOut"]
        messages_out += each.gone[0] + sum([consumer.messages_out for consumer in each.consumers])
        bytes_out += each.gone[1] + sum([consumer.bytes_out for consumer in each.consumers])
    told = {
        "publishers": publishers,
        "replication": {},
        "subscriptions": subscriptions,
        "producerCount": len(publishers),
        "averageMsgSize": throughput_in / rate_in if rate_in else 0.0,
        "msgRateIn": rate_in,
        "msgRateOut": rate_out,
        "msgInCount": 0,
        "bytesInCount": 0,
        "msgOutCount": messages_out,
        "bytesOutCount": bytes_out,
        "msgThroughputIn": throughput_in,
        "msgThroughputOut": throughput_out,
        "filteredEntriesCount": 0,
    }
    if isinstance(topic, PersistentTopic):
        _add_stored(told, topic)
    else:
        told["msgInCount"] = topic.gone_in[0] + sum(each.messages_in for each in topic.producers)
        told["bytesInCount"] = topic.gone_in[1] + sum(each.bytes_in for each in topic.producers)
    return told


def _add_stored(told: Stats, topic: PersistentTopic) -> None:
    ledger = topic.ledger
    end = ledger.confirmed_bytes
    slowest = min((each.cursor.mark_bytes for each in topic.subscriptions.values()), default=end)
    told["msgInCount"] = ledger.confirmed_messages
    told["bytesInCount"] = end
    told["storageSize"] = ledger.size
    told["backlogSize"] = ledger.bytes_behind(slowest)
    told["pendingAddEntriesCount"] = 0


def _publisher(producer: Producer, now: Now) -> Stats:
    rate, throughput = producer.rates(now)
    return {
        "msgRateIn": rate,
        "msgThroughputIn": throughput,
        "averageMsgSize": throughput / rate if rate else 0.0,
        "address": f"/{producer.cnx.address}",
        "producerId": producer.producer_id,
        "producerName": producer.name,
        "connectedSince": timestamp(producer.connected_since),
        "clientVersion": producer.cnx.client_version,
        "metadata": producer.metadata,
    }


def _subscription(subscription: AnySubscription, now: Now) -> Stats:
    one_active = subscription.type in ONE_ACTIVE
    consumers = [_consumer(each, one_active, now) for each in subscription.consumers]
    rate_out = throughput_out = given_back = acknowledged = 0.0
    unacked = 0
    for each in consumers:
        rate_out += each["msgRateOut"]
        throughput_out += each["msgThroughputOut"]
        given_back += each["msgRateRedeliver"]
        acknowledged += each["messageAckRate"]
        unacked += each["unackedMessages"]
    told = {
        "consumers": consumers,
        "msgBacklog": 0,
        "msgRateExpired": 0.0,
        "msgRateOut": rate_out,
        "messageAckRate": acknowledged,
        "msgThroughputOut": throughput_out,
        "msgRateRedeliver": given_back,
        "type": TYPE_NAMES[subscription.type],
        "filterProcessedMsgCount": 0,
        "filterAcceptedMsgCount": 0,
        "filterRejectedMsgCount": 0,
        "filterRescheduledMsgCount": 0,
        "blockedSubscriptionOnUnackedMsgs": False,
        "unackedMessages": unacked,
    }
    if isinstance(subscription, Subscription):
        cursor = subscription.cursor
        backlog = cursor.backlog_entries
        told["msgBacklog"] = told["numberOfEntriesSinceFirstNotAckedMessage"] = backlog
        told["totalNonContiguousDeletedMessagesRange"] = len(cursor.ranges)
        told["blockedSubscriptionOnUnackedMsgs"] = subscription.blocked
        if not subscription.served:
            told["type"] = "None"
    else:
        told["msgDropRate"] = 0.0
    return told


def _consumer(consumer: Consumer, one_active: bool, now: Now) -> Stats:
    rates = consumer.rates(now)
    entries = consumer.entries_out
    return {
        "address": f"/{consumer.cnx.address}",
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "connectedSince": timestamp(consumer.connected_since),
        "msgRateOut": rates.messages_out,
        "msgThroughputOut": rates.bytes_out,
        "msgRateRedeliver": rates.given_back,
        "avgMessagesPerEntry": round(consumer.messages_out / entries) if entries else 0,
        "messageAckRate": rates.acknowledged,
        "unackedMessages": 0 if one_active else consumer.unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "clientVersion": consumer.cnx.client_version,
        "metadata": consumer.metadata,
    }
