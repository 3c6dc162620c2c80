"""The table of metrics: names, help texts, and the field of a row that each shows."""

from collections.abc import Callable
from operator import attrgetter as field
from typing import Any, Final

from pulsarbox.broker.stats.commit_stats import LATENCY_MS, SIZES
from pulsarbox.server.metrics.exposition import Metric
from pulsarbox.storage.delayed_index import ROW_BYTES


def _nothing(row: object) -> float:
    return 0


def _histogram(name: str, suffixes: tuple[str, ...], column: str, meaning: str) -> tuple[Metric, ...]:
    """Return one metric per bucket, as in Pulsar, counting that bucket alone over the last minute."""
    text = f"{meaning}, of the last minute, bucket"
    return tuple(
        Metric(f"{name}_{suffix}", f"{text} {suffix}", _bucket(column, i)) for i, suffix in enumerate(suffixes)
    )


def _bucket(column: str, i: int) -> Callable[[Any], float]:
    buckets = field(column)

    def count(row: object) -> int:
        found: tuple[int, ...] = buckets(row)
        return found[i]

    return count


LATENCY_SUFFIXES: Final = (*(f"le_{bound:g}".replace(".", "_") for bound in LATENCY_MS), "overflow")
SIZE_SUFFIXES: Final = ("le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb")
assert len(SIZE_SUFFIXES) == len(SIZES)

_TRAFFIC: Final = (
    Metric("pulsar_subscriptions_count", "Subscriptions", field("subscriptions")),
    Metric("pulsar_producers_count", "Producers that are connected", field("producers")),
    Metric("pulsar_consumers_count", "Consumers that are connected", field("consumers")),
    Metric("pulsar_rate_in", "Messages that come in, a second", field("messages_in")),
    Metric("pulsar_rate_out", "Messages that go out, a second", field("messages_out")),
    Metric("pulsar_throughput_in", "Bytes that come in, a second", field("bytes_in")),
    Metric("pulsar_throughput_out", "Bytes that go out, a second", field("bytes_out")),
    Metric("pulsar_in_messages_total", "Messages that ever came in", field("total_messages_in")),
    Metric("pulsar_in_bytes_total", "Bytes that ever came in", field("total_bytes_in")),
)

_STORED: Final = (
    Metric("pulsar_storage_size", "Bytes of the entries that are kept", field("storage")),
    Metric("pulsar_storage_logical_size", "The same: there is one copy", field("storage")),
    Metric("pulsar_storage_backlog_size", "Bytes behind the slowest subscription", field("backlog_bytes")),
    Metric("pulsar_storage_offloaded_size", "Bytes in other stores: there are none", _nothing),
    Metric("pulsar_storage_write_rate", "Entries that are stored, a second", field("entries_in")),
    Metric("pulsar_storage_read_rate", "Entries that go out to consumers, a second", field("entries_out")),
)

_BUCKETS: Final = (
    *_histogram("pulsar_storage_write_latency", LATENCY_SUFFIXES, "latencies", "Entries by ms until their receipt"),
    Metric("pulsar_storage_write_latency_count", "Entries in these buckets", field("entries")),
    Metric("pulsar_storage_write_latency_sum", "Milliseconds of all of them", field("latency_ms")),
    *_histogram("pulsar_entry_size", (*SIZE_SUFFIXES, "le_overflow"), "sizes", "Entries by size"),
    # Pulsar 4.2 uses the name above, its dashboards the one below.
    Metric("pulsar_entry_size_overflow", "As pulsar_entry_size_le_overflow", lambda row: row.sizes[-1]),
    Metric("pulsar_entry_size_count", "Entries in these buckets", field("entries")),
    Metric("pulsar_entry_size_sum", "Bytes of all of them", field("entry_bytes")),
)

EVICTIONS: Final = (("destination_storage", field("size_evictions")), ("message_age", field("age_evictions")))
"""Number of backlog evictions, by the type of the quota."""

_EVICTED: Final = tuple(
    Metric(
        "pulsar_storage_backlog_quota_exceeded_evictions_total",
        "Times that the oldest messages of a backlog were let go because of its quota",
        value,
        labels=f'quota_type="{kind}"',
        family="pulsar_storage_backlog_quota_exceeded_evictions_total",
    )
    for kind, value in EVICTIONS
)

_REPLICATION: Final = tuple(
    Metric(f"pulsar_replication_{what}", "One box does not replicate", _nothing)
    for what in ("rate_in", "rate_out", "throughput_in", "throughput_out", "backlog")
)

_DELAYED_INDEX: Final = Metric(
    "pulsar_delayed_message_index_size_bytes", "Size of the table of delays", field("delayed_index")
)

TOPIC: Final = (
    *_TRAFFIC,
    Metric("pulsar_average_msg_size", "Bytes of a message", field("mean_size")),
    *_STORED,
    Metric("pulsar_msg_backlog", "Entries that subscriptions have before them", field("backlog")),
    Metric("pulsar_storage_backlog_quota_limit", "Bytes that a backlog may have; -1: no limit", field("quota")),
    Metric("pulsar_publish_rate_limit_times", "Receipts that a publish rate held back",
           field("publish_limited")),
    Metric("pulsar_storage_backlog_quota_limit_time", "Seconds that its oldest message may be old; -1: no limit",
           field("quota_time")),
    Metric("pulsar_storage_backlog_age_seconds", "Seconds that it is old; -1: there is none", field("backlog_age")),
    *_EVICTED,
    _DELAYED_INDEX,
    Metric("pulsarbox_dead_letters_lost", "1 where a topic for dead letters has nothing that keeps them",
           field("letters_lost")),
    *_BUCKETS,
    *_REPLICATION,
)  # fmt: skip
"""Metrics per topic."""

NAMESPACE: Final = (
    Metric("pulsar_topics_count", "Topics that are in memory", field("topics")),
    *_TRAFFIC,
    Metric("pulsar_out_messages_total", "Messages that went out", field("total_messages_out")),
    Metric("pulsar_out_bytes_total", "Bytes that went out", field("total_bytes_out")),
    Metric("pulsar_consumer_msg_ack_rate", "Messages that are acknowledged, a second", field("acknowledged")),
    *_STORED,
    Metric("pulsar_msg_backlog", "Entries that subscriptions have before them", field("backlog"),
           labels='remote_cluster="local"'),
    Metric("pulsar_subscription_delayed", "Messages that are not due yet", field("delayed")),
    Metric("pulsar_subscription_in_replay", "Entries that wait to be sent again", field("again")),
    _DELAYED_INDEX,
    *_BUCKETS,
    *_REPLICATION,
)  # fmt: skip
"""Metrics per namespace, if topic-level metrics are disabled."""

TOPICS_COUNT: Final = NAMESPACE[0]

SUBSCRIPTION: Final = (
    Metric("pulsar_subscription_back_log", "Entries before it", field("backlog")),
    Metric("pulsar_subscription_back_log_no_delayed", "Those of them that are due",
           lambda row: row.backlog - row.delayed),
    Metric("pulsar_subscription_delayed", "Messages that are not due yet", field("delayed")),
    Metric("pulsar_subscription_delayed_message_index_size_bytes", "What the table of delays has of them",
           lambda row: row.delayed * ROW_BYTES),
    Metric("pulsar_subscription_in_replay", "Entries that wait to be sent again", field("again")),
    Metric("pulsar_subscription_unacked_messages", "Messages that are sent and not acknowledged", field("unacked")),
    Metric("pulsar_subscription_blocked_on_unacked_messages", "1 where these are too many", field("blocked")),
    Metric("pulsar_subscription_consumers_count", "Consumers that are connected", field("consumers")),
    Metric("pulsar_subscription_msg_rate_out", "Messages that go out, a second", field("messages_out")),
    Metric("pulsar_subscription_msg_throughput_out", "Bytes that go out, a second", field("bytes_out")),
    Metric("pulsar_subscription_msg_rate_redeliver", "Messages to be sent again, a second", field("given_back")),
    Metric("pulsar_subscription_msg_ack_rate", "Messages that are acknowledged, a second", field("acknowledged")),
    Metric("pulsar_subscription_msg_drop_rate", "Messages of a non-persistent topic that are dropped, a second",
           field("rate_dropped")),
    Metric("pulsar_subscription_msg_rate_expired", "Entries that expire, a second", field("rate_expired")),
    Metric("pulsar_subscription_total_msg_expired", "Entries that expired", field("expired")),
    Metric("pulsar_subscription_last_expire_timestamp", "When the last did (ms)", field("last_expired")),
    Metric("pulsar_subscription_last_consumed_flow_timestamp", "When a client last asked (ms)", field("last_flow")),
    Metric("pulsar_subscription_last_consumed_timestamp", "When something last went out (ms)", field("last_sent")),
    Metric("pulsar_subscription_last_acked_timestamp", "When a client last acknowledged (ms)", field("last_acked")),
    Metric("pulsar_subscription_last_mark_delete_advanced_timestamp", "When mark-delete last moved (ms)",
           field("mark_moved")),
    Metric("pulsarbox_subscription_backlog_messages", "Messages before it, where back_log counts entries",
           field("backlog_messages")),
    Metric("pulsarbox_subscription_backlog_bytes", "Bytes before it", field("backlog_bytes")),
    Metric("pulsarbox_subscription_dropped_messages", "Messages of a non-persistent topic that were dropped",
           field("dropped")),
    Metric("pulsarbox_subscription_ack_ranges", "Acknowledged stretches behind its mark-delete", field("ranges")),
    Metric("pulsarbox_subscription_dead_letters", "Messages that the box moved to its dead letter topic",
           field("dead_letters")),
)  # fmt: skip

THROTTLED: Final = (
    Metric("pulsar_subscription_dispatch_throttled_msg_events",
           "How often a limit in messages cut what would have been sent", lambda counted: counted[1]),
    Metric("pulsar_subscription_dispatch_throttled_bytes_events",
           "How often a limit in bytes cut what would have been sent", lambda counted: counted[2]),
)  # fmt: skip
"""Metrics per rate-limited subscription, by the scope of the limit."""

STANDSTILL: Final = Metric(
    "pulsarbox_subscription_standstill_seconds",
    "How long nothing has been sent to a subscription with a backlog, and why",
    field("standstill_seconds"),
)

OUT: Final = (
    Metric("pulsar_out_messages_total", "Messages that went out", field("total_messages_out")),
    Metric("pulsar_out_bytes_total", "Bytes that went out", field("total_bytes_out")),
)
"""Metrics per subscription, and per consumer if enabled."""

PRODUCER: Final = (
    Metric("pulsar_producer_msg_rate_in", "Messages that come in, a second", field("messages_in")),
    Metric("pulsar_producer_msg_throughput_in", "Bytes that come in, a second", field("bytes_in")),
    Metric("pulsar_producer_msg_average_Size", "Bytes of a message", field("mean_size")),
)

CONSUMER: Final = (
    Metric("pulsar_consumer_unacked_messages", "Messages that are sent and not acknowledged", field("unacked")),
    Metric("pulsar_consumer_blocked_on_unacked_messages", "1 where these are too many", field("blocked")),
    Metric("pulsar_consumer_msg_rate_redeliver", "Messages to be sent again, a second", field("given_back")),
    Metric("pulsar_consumer_msg_rate_out", "Messages that go out, a second", field("messages_out")),
    Metric("pulsar_consumer_msg_ack_rate", "Messages that are acknowledged, a second", field("acknowledged")),
    Metric("pulsar_consumer_msg_throughput_out", "Bytes that go out, a second", field("bytes_out")),
    Metric("pulsar_consumer_available_permits", "Messages that it may be sent", field("permits")),
)
