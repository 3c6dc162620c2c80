"""The table of metrics: names, help texts, and the field of a row that each shows."""

from collections.abc import Callable
from operator import attrgetter as field
from typing import Any, Final

from pulsarbox.broker.stats.commit_stats import LATENCY_MS, SIZES
from pulsarbox.protocol.policies.policy_values import QUOTA_AGE, QUOTA_SIZE
from pulsarbox.server.metrics.exposition import Metric
from pulsarbox.storage.delayed_index import ROW_BYTES


def _nothing(row: object) -> float:
    return 0


def _histogram(name: str, suffixes: tuple[str, ...], column: str, meaning: str) -> tuple[Metric, ...]:
    """Return one metric per bucket, as in Pulsar, counting that bucket alone over the last minute."""
    text = f"{meaning} over the last minute, bucket"
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
    Metric("pulsar_producers_count", "Connected producers", field("producers")),
    Metric("pulsar_consumers_count", "Connected consumers", field("consumers")),
    Metric("pulsar_rate_in", "Messages published per second", field("messages_in")),
    Metric("pulsar_rate_out", "Messages dispatched per second", field("messages_out")),
    Metric("pulsar_throughput_in", "Bytes published per second", field("bytes_in")),
    Metric("pulsar_throughput_out", "Bytes dispatched per second", field("bytes_out")),
    Metric("pulsar_in_messages_total", "Messages published in total", field("total_messages_in")),
    Metric("pulsar_in_bytes_total", "Bytes published in total", field("total_bytes_in")),
)

_STORED: Final = (
    Metric("pulsar_storage_size", "Bytes of stored entries", field("storage")),
    Metric(
        "pulsar_storage_logical_size",
        "Bytes of stored entries without replicas: a box stores one copy",
        field("storage"),
    ),
    Metric("pulsar_storage_backlog_size", "Bytes in the backlog of the slowest subscription", field("backlog_bytes")),
    Metric("pulsar_storage_offloaded_size", "Bytes that are in object storage only: always 0", _nothing),
    Metric("pulsar_storage_write_rate", "Entries stored per second", field("entries_in")),
    Metric("pulsar_storage_read_rate", "Entries dispatched to consumers per second", field("entries_out")),
)

_BUCKETS: Final = (
    *_histogram("pulsar_storage_write_latency", LATENCY_SUFFIXES, "latencies", "Entries by write latency in ms"),
    Metric("pulsar_storage_write_latency_count", "Entries in the write latency buckets", field("entries")),
    Metric(
        "pulsar_storage_write_latency_sum", "Sum of the write latencies of the last minute in ms", field("latency_ms")
    ),
    *_histogram("pulsar_entry_size", (*SIZE_SUFFIXES, "le_overflow"), "sizes", "Entries by size in bytes"),
    # Pulsar 4.2 uses the name above, its dashboards the one below.
    Metric("pulsar_entry_size_overflow", "Same as pulsar_entry_size_le_overflow", lambda row: row.sizes[-1]),
    Metric("pulsar_entry_size_count", "Entries in the size buckets", field("entries")),
    Metric("pulsar_entry_size_sum", "Sum of the entry sizes of the last minute in bytes", field("entry_bytes")),
)

EVICTIONS: Final = ((QUOTA_SIZE, field("size_evictions")), (QUOTA_AGE, field("age_evictions")))
"""Number of backlog evictions, by the type of the quota."""

_EVICTED: Final = tuple(
    Metric(
        "pulsar_storage_backlog_quota_exceeded_evictions_total",
        "Evictions of the oldest messages of backlogs that exceeded their quota",
        value,
        labels=f'quota_type="{kind}"',
        family="pulsar_storage_backlog_quota_exceeded_evictions_total",
    )
    for kind, value in EVICTIONS
)

_REPLICATION: Final = tuple(
    Metric(f"pulsar_replication_{what}", "Always 0: a box does not replicate", _nothing)
    for what in ("rate_in", "rate_out", "throughput_in", "throughput_out", "backlog")
)

_DELAYED_INDEX: Final = Metric(
    "pulsar_delayed_message_index_size_bytes", "Size of the delayed message index in bytes", field("delayed_index")
)

TOPIC: Final = (
    *_TRAFFIC,
    Metric("pulsar_average_msg_size", "Average message size in bytes", field("mean_size")),
    *_STORED,
    Metric("pulsar_msg_backlog", "Entries in the backlogs of all subscriptions", field("backlog")),
    Metric("pulsar_storage_backlog_quota_limit", "Backlog quota in bytes; -1: unlimited", field("quota")),
    Metric("pulsar_publish_rate_limit_times", "Receipts delayed by publish rate limits",
           field("publish_limited")),
    Metric("pulsar_storage_backlog_quota_limit_time",
           "Backlog quota by age of the oldest message in seconds; -1: unlimited", field("quota_time")),
    Metric("pulsar_storage_backlog_age_seconds",
           "Age of the oldest message in the backlog in seconds; -1: none or unknown", field("backlog_age")),
    *_EVICTED,
    _DELAYED_INDEX,
    Metric("pulsarbox_dead_letters_lost", "1 if a dead letter topic drops its messages",
           field("letters_lost")),
    *_BUCKETS,
    *_REPLICATION,
)  # fmt: skip
"""Metrics per topic."""

NAMESPACE: Final = (
    Metric("pulsar_topics_count", "Loaded topics", field("topics")),
    *_TRAFFIC,
    Metric("pulsar_out_messages_total", "Messages dispatched in total", field("total_messages_out")),
    Metric("pulsar_out_bytes_total", "Bytes dispatched in total", field("total_bytes_out")),
    Metric("pulsar_consumer_msg_ack_rate", "Messages acknowledged per second", field("acknowledged")),
    *_STORED,
    Metric("pulsar_msg_backlog", "Entries in the backlogs of all subscriptions", field("backlog"),
           labels='remote_cluster="local"'),
    Metric("pulsar_subscription_delayed", "Messages not yet due for delivery", field("delayed")),
    Metric("pulsar_subscription_in_replay", "Entries waiting for redelivery", field("again")),
    _DELAYED_INDEX,
    *_BUCKETS,
    *_REPLICATION,
)  # fmt: skip
"""Metrics per namespace, if topic-level metrics are disabled."""

TOPICS_COUNT: Final = NAMESPACE[0]

SUBSCRIPTION: Final = (
    Metric("pulsar_subscription_back_log", "Entries in the backlog", field("backlog")),
    Metric("pulsar_subscription_back_log_no_delayed", "Entries in the backlog that are due for delivery",
           lambda row: row.backlog - row.delayed),
    Metric("pulsar_subscription_delayed", "Messages not yet due for delivery", field("delayed")),
    Metric("pulsar_subscription_delayed_message_index_size_bytes",
           "Size of the delayed message index of the subscription in bytes", lambda row: row.delayed * ROW_BYTES),
    Metric("pulsar_subscription_in_replay", "Entries waiting for redelivery", field("again")),
    Metric("pulsar_subscription_unacked_messages", "Messages dispatched but not acknowledged", field("unacked")),
    Metric("pulsar_subscription_blocked_on_unacked_messages",
           "1 if dispatch is blocked by too many unacknowledged messages", field("blocked")),
    Metric("pulsar_subscription_consumers_count", "Connected consumers", field("consumers")),
    Metric("pulsar_subscription_msg_rate_out", "Messages dispatched per second", field("messages_out")),
    Metric("pulsar_subscription_msg_throughput_out", "Bytes dispatched per second", field("bytes_out")),
    Metric("pulsar_subscription_msg_rate_redeliver", "Messages returned for redelivery per second",
           field("given_back")),
    Metric("pulsar_subscription_msg_ack_rate", "Messages acknowledged per second", field("acknowledged")),
    Metric("pulsar_subscription_msg_drop_rate", "Messages dropped per second on a non-persistent topic",
           field("rate_dropped")),
    Metric("pulsar_subscription_msg_rate_expired", "Entries expired per second", field("rate_expired")),
    Metric("pulsar_subscription_total_msg_expired", "Entries expired in total", field("expired")),
    Metric("pulsar_subscription_last_expire_timestamp", "Time of the last expiry in ms since 1970",
           field("last_expired")),
    Metric("pulsar_subscription_last_consumed_flow_timestamp", "Time of the last flow command in ms since 1970",
           field("last_flow")),
    Metric("pulsar_subscription_last_consumed_timestamp", "Time of the last dispatch in ms since 1970",
           field("last_sent")),
    Metric("pulsar_subscription_last_acked_timestamp", "Time of the last acknowledgement in ms since 1970",
           field("last_acked")),
    Metric("pulsar_subscription_last_mark_delete_advanced_timestamp",
           "Time of the last mark-delete advance in ms since 1970", field("mark_moved")),
    Metric("pulsarbox_subscription_backlog_messages",
           "Messages in the backlog; pulsar_subscription_back_log counts entries", field("backlog_messages")),
    Metric("pulsarbox_subscription_backlog_bytes", "Bytes in the backlog", field("backlog_bytes")),
    Metric("pulsarbox_subscription_dropped_messages", "Messages dropped in total on a non-persistent topic",
           field("dropped")),
    Metric("pulsarbox_subscription_ack_ranges", "Acknowledged ranges after the mark-delete position", field("ranges")),
    Metric("pulsarbox_subscription_dead_letters", "Messages that the box moved to the dead letter topic",
           field("dead_letters")),
)  # fmt: skip

THROTTLED: Final = (
    Metric("pulsar_subscription_dispatch_throttled_msg_events",
           "Dispatches reduced by a rate limit in messages", lambda counted: counted[1]),
    Metric("pulsar_subscription_dispatch_throttled_bytes_events",
           "Dispatches reduced by a rate limit in bytes", lambda counted: counted[2]),
)  # fmt: skip
"""Metrics per rate-limited subscription, by the scope of the limit."""

STANDSTILL: Final = Metric(
    "pulsarbox_subscription_standstill_seconds",
    "Seconds without dispatch to a subscription with a backlog, by reason",
    field("standstill_seconds"),
)

OUT: Final = (
    Metric("pulsar_out_messages_total", "Messages dispatched in total", field("total_messages_out")),
    Metric("pulsar_out_bytes_total", "Bytes dispatched in total", field("total_bytes_out")),
)
"""Metrics per subscription, and per consumer if enabled."""

PRODUCER: Final = (
    Metric("pulsar_producer_msg_rate_in", "Messages published per second", field("messages_in")),
    Metric("pulsar_producer_msg_throughput_in", "Bytes published per second", field("bytes_in")),
    Metric("pulsar_producer_msg_average_Size", "Average message size in bytes", field("mean_size")),
)

CONSUMER: Final = (
    Metric("pulsar_consumer_unacked_messages", "Messages dispatched but not acknowledged", field("unacked")),
    Metric(
        "pulsar_consumer_blocked_on_unacked_messages",
        "1 if dispatch is blocked by too many unacknowledged messages",
        field("blocked"),
    ),
    Metric("pulsar_consumer_msg_rate_redeliver", "Messages returned for redelivery per second", field("given_back")),
    Metric("pulsar_consumer_msg_rate_out", "Messages dispatched per second", field("messages_out")),
    Metric("pulsar_consumer_msg_ack_rate", "Messages acknowledged per second", field("acknowledged")),
    Metric("pulsar_consumer_msg_throughput_out", "Bytes dispatched per second", field("bytes_out")),
    Metric(
        "pulsar_consumer_available_permits",
        "Available permits: messages that may be dispatched to the consumer",
        field("permits"),
    ),
)
