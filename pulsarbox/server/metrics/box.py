"""Metrics of the box as a whole: its commits, its cache, its process."""

import platform
import sys
from collections.abc import Iterator
from itertools import accumulate
from operator import attrgetter
from typing import Final

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.clients import held_bytes, suspended, unread
from pulsarbox.broker.stats.commit_stats import FINE_MS, LATENCY_MS, CommitTimes, Latencies
from pulsarbox.broker.transactions.transaction_table import OPEN_MS
from pulsarbox.clock import Now
from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION
from pulsarbox.server.metrics import process
from pulsarbox.server.metrics.exposition import Metric, Rows, label, rounded
from pulsarbox.server.metrics.process import PROCESS
from pulsarbox.server.metrics.rows import TopicRow
from pulsarbox.server.metrics.table import EVICTIONS

QUANTILES: Final = (0.5, 0.95, 0.99, 0.999, 0.9999, 1.0)

SUMS: Final = (
    ("topics_count", "Loaded topics", attrgetter("topics")),
    ("subscriptions_count", "Subscriptions", attrgetter("subscriptions")),
    ("producers_count", "Connected producers", attrgetter("producers")),
    ("consumers_count", "Connected consumers", attrgetter("consumers")),
    ("rate_in", "Messages published per second", attrgetter("messages_in")),
    ("rate_out", "Messages dispatched per second", attrgetter("messages_out")),
    ("throughput_in", "Bytes published per second", attrgetter("bytes_in")),
    ("throughput_out", "Bytes dispatched per second", attrgetter("bytes_out")),
    ("storage_size", "Bytes of stored entries", attrgetter("storage")),
    ("storage_logical_size", "Bytes of stored entries without replicas: a box stores one copy", attrgetter("storage")),
    ("storage_write_rate", "Entries stored per second", attrgetter("entries_in")),
    ("storage_read_rate", "Entries dispatched to consumers per second", attrgetter("entries_out")),
    ("msg_backlog", "Entries in the backlogs of all subscriptions", attrgetter("backlog")),
)
"""Sums over all topics."""

Told = tuple[Metric, Rows]


def itself(value: float) -> float:
    return value


def _one(name: str, meaning: str, of: str, value: float, kind: str = "gauge") -> Told:
    return Metric(name, meaning, itself, kind), [(of, value)]


def sums(topics: list[TopicRow], cluster: str) -> Iterator[Told]:
    """Yield the sums over all topics."""
    for name, meaning, value in SUMS:
        yield _one(f"pulsar_broker_{name}", meaning, cluster, rounded(sum(map(value, topics))))
    name = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"
    meaning = "Evictions of the oldest messages of backlogs that exceeded their quota"
    evicted = [(f'{cluster},quota_type="{kind}"', sum(map(value, topics))) for kind, value in EVICTIONS]
    yield Metric(name, meaning, itself), evicted
    user = f'{cluster},system_subscription="false"'
    yield _one(
        "pulsar_broker_out_bytes_total", "Bytes dispatched in total", user, sum(row.total_bytes_out for row in topics)
    )
    user = f'{cluster},system_topic="false"'
    yield _one(
        "pulsar_broker_in_bytes_total", "Bytes published in total", user, sum(row.total_bytes_in for row in topics)
    )


def commits(times: CommitTimes, latencies: Latencies, cluster: str) -> Iterator[Told]:
    """Yield the metrics of commits, which all topics share."""
    name, kind = "pulsar_broker_publish_latency", "summary"
    meaning = "Publish latency in ms; quantiles over the last minute, as upper bounds"
    if latencies.entries:
        quantiles = [(f'{cluster},quantile="{share}"', latencies.quantile(share)) for share in QUANTILES]
        yield Metric(name, meaning, itself, kind), quantiles
    yield Metric(f"{name}_count", meaning, itself, kind, family=name), [(cluster, times.entries)]
    yield Metric(f"{name}_sum", meaning, itself, kind, family=name), [(cluster, rounded(times.waited_ms))]
    name, kind, meaning = "pulsarbox_commit_seconds", "histogram", "Duration of a commit on disk in seconds"
    upto = list(accumulate(times.by_commit))
    buckets = [(f'{cluster},le="{bound / 1000:g}"', upto[i]) for i, bound in enumerate(FINE_MS) if bound in LATENCY_MS]
    buckets.append((f'{cluster},le="+Inf"', times.commits))
    yield Metric(f"{name}_bucket", meaning, itself, kind, family=name), buckets
    yield Metric(f"{name}_count", meaning, itself, kind, family=name), [(cluster, times.commits)]
    yield Metric(f"{name}_sum", meaning, itself, kind, family=name), [(cluster, times.seconds)]
    yield _one("pulsarbox_commit_entries_total", "Entries committed", cluster, times.entries, "counter")
    yield _one("pulsarbox_commit_bytes_total", "Bytes written to the journal", cluster, times.bytes, "counter")
    yield _one("pulsarbox_commit_failures_total", "Failed commits", cluster, times.failed, "counter")


def cache(broker: Broker, topics: list[TopicRow], cluster: str, now: Now) -> Iterator[Told]:
    """Yield the metrics of the tail cache."""
    for name, meaning, value in cache_values(broker, topics, now):
        yield _one(f"pulsar_ml_cache_{name}", meaning, cluster, value)


def cache_values(broker: Broker, topics: list[TopicRow], now: Now) -> Iterator[tuple[str, str, float]]:
    """Yield the values of the tail cache, each with its meaning. Reads not served from disk count as hits."""
    use = broker.cache_use
    read, bytes_read = use.misses(now)
    out, bytes_out = sum(row.entries_out for row in topics), sum(row.stored_bytes_out for row in topics)
    yield "hits_rate", "Entries dispatched from memory per second", rounded(max(out - read, 0.0))
    yield "hits_throughput", "Bytes dispatched from memory per second", rounded(max(bytes_out - bytes_read, 0.0))
    yield "misses_rate", "Entries read from disk per second", rounded(read)
    yield "misses_throughput", "Bytes read from disk per second", rounded(bytes_read)
    yield "used_size", "Bytes in the cache of recent entries", use.cache.size
    yield "evictions", "Evictions of the oldest cached entries in the last minute", round(use.evictions(now))


def usage() -> dict[str, float]:
    """Return the usage figures of load balancers, in percent; network and direct memory are not measured."""
    memory = rounded(100 * process.memory()[1] / process.machine_memory())
    nothing = dict.fromkeys(("directMemory_usage", "bandwidth_in_usage", "bandwidth_out_usage"), 0.0)
    return {"cpu_usage": PROCESS.percent(), "memory_usage": memory} | nothing


def around(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of versions, connections and load balancing."""
    host = label(broker.endpoints.host)
    version = f'{cluster},version="{COMPATIBLE_PULSAR_VERSION}",commit="pulsarbox-{__version__}"'
    yield _one("pulsar_version_info", "Compatible version of Pulsar, and version of the box", version, 1)
    python = f'{cluster},runtime="{sys.implementation.name}",vendor="pulsarbox",version="{platform.python_version()}"'
    yield _one("jvm_info", "Not a JVM: dashboards find brokers by this metric", python, 1)
    here = len(broker.cnxs)
    of = f'{cluster},broker="{host}",metric="broker_connection"'
    for name, meaning, value in (
        ("active_connections", "Connected clients", here),
        ("connection_created_total_count", "Connections accepted since startup", broker.connections_made),
        (
            "connection_create_success_count",
            "Connections accepted since startup: none fails after that",
            broker.connections_made,
        ),
        ("connection_create_fail_count", "Connections that failed after they were accepted: always 0", 0),
        ("connection_closed_total_count", "Connections closed since startup", broker.connections_made - here),
    ):
        yield _one(f"pulsar_{name}", meaning, of, value)
    for name, meaning, value in (
        ("pulsar_broker_throttled_connections", "Connections that are currently not being read", unread(broker)),
        ("pulsarbox_producers_suspended", "Producers suspended until their receipts are sent", suspended(broker)),
        (
            "pulsarbox_publish_held_bytes",
            "Bytes of messages whose receipts are delayed by publish rate limits",
            held_bytes(broker),
        ),
    ):
        yield _one(name, meaning, cluster, value)
    of = f'{cluster},broker="{host}",metric="loadBalancing"'
    for name, share in usage().items():
        yield _one(f"pulsar_lb_{name}", "Usage in percent of the machine's capacity; 0 if unknown", of, share)


def authentication(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of authentication, if it is enabled."""
    if broker.authentication is None:
        return
    proved, failed = broker.authentication.successes, broker.authentication.failures
    of = [(f'{cluster},provider_name="{name}",auth_method="{method}"', proved[name, method]) for name, method in proved]
    yield Metric("pulsar_authentication_success_total", "Successful authentications", itself, "counter"), of
    of = [
        (f'{cluster},provider_name="{name}",auth_method="{method}",reason="{code}"', count)
        for (name, method, code), count in failed.items()
    ]
    yield Metric("pulsar_authentication_failures_total", "Failed authentications", itself, "counter"), of
    expired = broker.authentication.expired
    yield _one(
        "pulsar_expired_token_total",
        "Authentications rejected because the token had expired",
        cluster,
        expired,
        "counter",
    )


def transactions(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the transaction coordinator, if transactions are enabled."""
    known = broker.transactions
    if not known.enabled:
        return
    of = f'{cluster},coordinator_id="0"'
    yield _one("pulsar_txn_active_count", "Open transactions", of, len(known.open))
    counters = (
        ("committed", "Committed transactions", known.committed),
        ("aborted", "Aborted transactions", known.aborted),
        ("created", "Transactions started", known.created),
        ("timeout", "Transactions aborted by their timeout", known.timed_out),
        ("append_log", "Transaction rows written", known.appended),
    )
    for name, meaning, value in counters:
        yield _one(f"pulsar_txn_{name}_total", meaning, of, value, "counter")
        yield _one(f"pulsar_txn_{name}_count", f"{meaning}, under the name that dashboards use", of, value)
    for suffix, count in zip((*map(str, OPEN_MS), "overflow"), known.latencies, strict=True):
        name = f"pulsar_txn_execution_latency_le_{suffix}"
        yield _one(name, f"Transactions by duration in ms, bucket {suffix}", of, count)


def process_of(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the process, under the standard names of Prometheus client libraries."""
    virtual, resident = process.memory()
    files, files_max = process.files()
    started = broker.started / 1000
    yield _one("process_cpu_seconds_total", "CPU time in seconds", cluster, process.cpu_seconds(), "counter")
    yield _one("process_start_time_seconds", "Start time in seconds since 1970", cluster, started)
    yield _one(
        "process_virtual_memory_bytes", "Address space in bytes, including mappings of the journal", cluster, virtual
    )
    yield _one(
        "process_resident_memory_bytes",
        "Resident memory in bytes, including mapped pages of the journal",
        cluster,
        resident,
    )
    yield _one("process_open_fds", "Open files and sockets", cluster, files)
    yield _one("process_max_fds", "Maximum number of open files and sockets", cluster, files_max)


def store(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the log and its checkpoints."""
    housekeeping = broker.commits.housekeeping
    refusing = int(housekeeping.refusal is not None)
    yield _one(
        "pulsarbox_checkpoint_lag_bytes",
        "Bytes of the journal not yet covered by a checkpoint",
        cluster,
        housekeeping.lag,
    )
    yield _one("pulsarbox_refusing_messages", "1 while the store refuses messages", cluster, refusing)
    kept = broker.unsubscribed
    yield _one("pulsarbox_unsubscribed_bytes", "Bytes retained that no subscription has covered", cluster, kept.bytes)
    yield _one(
        "pulsarbox_unsubscribed_limit_bytes",
        "Limit of pulsarbox_unsubscribed_bytes; -1: unlimited",
        cluster,
        kept.limit,
    )
    yield _one(
        "pulsarbox_unsubscribed_topics",
        "Topics with retained bytes that no subscription has covered",
        cluster,
        kept.topics,
    )
