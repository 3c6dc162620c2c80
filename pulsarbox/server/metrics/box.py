"""Metrics of the box as a whole: its commits, its cache, its process."""

import platform
import sys
from collections.abc import Iterator
from itertools import accumulate
from operator import attrgetter
from typing import Final

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.clients import held_bytes, suspended, unread
from pulsarbox.broker.stats.commit_stats import FINE_MS, LATENCY_MS, CommitTimes, Latencies
from pulsarbox.broker.transactions.coordinator import OPEN_MS
from pulsarbox.clock import Now
from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION
from pulsarbox.server.metrics import process
from pulsarbox.server.metrics.exposition import Metric, Rows, label, rounded
from pulsarbox.server.metrics.process import PROCESS
from pulsarbox.server.metrics.rows import TopicRow
from pulsarbox.server.metrics.table import EVICTIONS

QUANTILES: Final = (0.5, 0.95, 0.99, 0.999, 0.9999, 1.0)

SUMS: Final = (
    ("topics_count", "Topics that are in memory", attrgetter("topics")),
    ("subscriptions_count", "Subscriptions", attrgetter("subscriptions")),
    ("producers_count", "Producers that are connected", attrgetter("producers")),
    ("consumers_count", "Consumers that are connected", attrgetter("consumers")),
    ("rate_in", "Messages that come in, a second", attrgetter("messages_in")),
    ("rate_out", "Messages that go out, a second", attrgetter("messages_out")),
    ("throughput_in", "Bytes that come in, a second", attrgetter("bytes_in")),
    ("throughput_out", "Bytes that go out, a second", attrgetter("bytes_out")),
    ("storage_size", "Bytes of the entries that are kept", attrgetter("storage")),
    ("storage_logical_size", "The same: there is one copy", attrgetter("storage")),
    ("storage_write_rate", "Entries that are stored, a second", attrgetter("entries_in")),
    ("storage_read_rate", "Entries that go out to consumers, a second", attrgetter("entries_out")),
    ("msg_backlog", "Entries that subscriptions have before them", attrgetter("backlog")),
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
    meaning = "Times that the oldest messages of backlogs were let go because of their quota"
    evicted = [(f'{cluster},quota_type="{kind}"', sum(map(value, topics))) for kind, value in EVICTIONS]
    yield Metric(name, meaning, itself), evicted
    user = f'{cluster},system_subscription="false"'
    yield _one("pulsar_broker_out_bytes_total", "Bytes that went out", user, sum(row.total_bytes_out for row in topics))
    user = f'{cluster},system_topic="false"'
    yield _one("pulsar_broker_in_bytes_total", "Bytes that came in", user, sum(row.total_bytes_in for row in topics))


def commits(times: CommitTimes, latencies: Latencies, cluster: str) -> Iterator[Told]:
    """Yield the metrics of commits, which all topics share."""
    name, kind = "pulsar_broker_publish_latency", "summary"
    meaning = "Milliseconds until the receipt; no entry waited longer than this tells; quantiles of the last minute"
    if latencies.entries:
        quantiles = [(f'{cluster},quantile="{share}"', latencies.quantile(share)) for share in QUANTILES]
        yield Metric(name, meaning, itself, kind), quantiles
    yield Metric(f"{name}_count", meaning, itself, kind, family=name), [(cluster, times.entries)]
    yield Metric(f"{name}_sum", meaning, itself, kind, family=name), [(cluster, rounded(times.waited_ms))]
    name, kind, meaning = "pulsarbox_commit_seconds", "histogram", "Seconds that the disk took for a commit"
    upto = list(accumulate(times.by_commit))
    buckets = [(f'{cluster},le="{bound / 1000:g}"', upto[i]) for i, bound in enumerate(FINE_MS) if bound in LATENCY_MS]
    buckets.append((f'{cluster},le="+Inf"', times.commits))
    yield Metric(f"{name}_bucket", meaning, itself, kind, family=name), buckets
    yield Metric(f"{name}_count", meaning, itself, kind, family=name), [(cluster, times.commits)]
    yield Metric(f"{name}_sum", meaning, itself, kind, family=name), [(cluster, times.seconds)]
    yield _one("pulsarbox_commit_entries_total", "Entries that were committed", cluster, times.entries, "counter")
    yield _one("pulsarbox_commit_bytes_total", "Bytes that went into the journal", cluster, times.bytes, "counter")
    yield _one("pulsarbox_commit_failures_total", "Commits that failed", cluster, times.failed, "counter")


def cache(broker: Broker, topics: list[TopicRow], cluster: str, now: Now) -> Iterator[Told]:
    """Yield the metrics of the tail cache."""
    for name, meaning, value in cache_values(broker, topics, now):
        yield _one(f"pulsar_ml_cache_{name}", meaning, cluster, value)


def cache_values(broker: Broker, topics: list[TopicRow], now: Now) -> Iterator[tuple[str, str, float]]:
    """Yield the values of the tail cache, each with its meaning. Reads not served from disk count as hits."""
    use = broker.core.cache_use
    read, bytes_read = use.misses(now)
    out, bytes_out = sum(row.entries_out for row in topics), sum(row.stored_bytes_out for row in topics)
    yield "hits_rate", "Entries a second that went out from memory", rounded(max(out - read, 0.0))
    yield "hits_throughput", "Bytes a second that went out from memory", rounded(max(bytes_out - bytes_read, 0.0))
    yield "misses_rate", "Entries a second that were read from the disk", rounded(read)
    yield "misses_throughput", "Bytes a second that were read from the disk", rounded(bytes_read)
    yield "used_size", "Bytes in the cache of recent entries", use.cache.size
    yield "evictions", "Times in the last minute that it gave up its oldest entries", round(use.evictions(now))


def usage() -> dict[str, float]:
    """Return the usage figures of load balancers, in percent; network and direct memory are not measured."""
    memory = rounded(100 * process.memory()[1] / process.machine_memory())
    nothing = dict.fromkeys(("directMemory_usage", "bandwidth_in_usage", "bandwidth_out_usage"), 0.0)
    return {"cpu_usage": PROCESS.percent(), "memory_usage": memory} | nothing


def around(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of versions, connections and load balancing."""
    host = label(broker.endpoints.host)
    version = f'{cluster},version="{COMPATIBLE_PULSAR_VERSION}",commit="pulsarbox-{__version__}"'
    yield _one("pulsar_version_info", "The Pulsar whose behaviour this is, and what it is", version, 1)
    python = f'{cluster},runtime="{sys.implementation.name}",vendor="pulsarbox",version="{platform.python_version()}"'
    yield _one("jvm_info", "Not a JVM: boards find brokers by this metric", python, 1)
    here = len(broker.cnxs)
    of = f'{cluster},broker="{host}",metric="broker_connection"'
    for name, meaning, value in (
        ("active_connections", "Clients that are connected", here),
        ("connection_created_total_count", "Connections since the start", broker.connections_made),
        ("connection_create_success_count", "The same: none fails once it is accepted", broker.connections_made),
        ("connection_create_fail_count", "None", 0),
        ("connection_closed_total_count", "Connections that have ended", broker.connections_made - here),
    ):
        yield _one(f"pulsar_{name}", meaning, of, value)
    for name, meaning, value in (
        ("pulsar_broker_throttled_connections", "Connections that are not read now", unread(broker)),
        ("pulsarbox_producers_suspended", "Producers suspended until their receipts have left", suspended(broker)),
        (
            "pulsarbox_publish_held_bytes",
            "Bytes of messages whose receipts publish rates hold back",
            held_bytes(broker),
        ),
    ):
        yield _one(name, meaning, cluster, value)
    of = f'{cluster},broker="{host}",metric="loadBalancing"'
    for name, share in usage().items():
        yield _one(f"pulsar_lb_{name}", "Percent of what the machine has, 0 where it is not known", of, share)


def authentication(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of authentication, if it is enabled."""
    if broker.authentication is None:
        return
    proved, failed = broker.authentication.successes, broker.authentication.failures
    of = [(f'{cluster},provider_name="{name}",auth_method="{method}"', proved[name, method]) for name, method in proved]
    yield Metric("pulsar_authentication_success_total", "Names that were proved", itself, "counter"), of
    of = [
        (f'{cluster},provider_name="{name}",auth_method="{method}",reason="{code}"', count)
        for (name, method, code), count in failed.items()
    ]
    yield Metric("pulsar_authentication_failures_total", "Proofs that were none", itself, "counter"), of
    expired = broker.authentication.expired
    yield _one("pulsar_expired_token_total", "Tokens that came and had expired", cluster, expired, "counter")


def transactions(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the transaction coordinator, if transactions are enabled."""
    known = broker.core.transactions
    if not known.enabled:
        return
    of = f'{cluster},coordinator_id="0"'
    yield _one("pulsar_txn_active_count", "Transactions that are open", of, len(known.open))
    counters = (
        ("committed", "Transactions that were committed", known.committed),
        ("aborted", "Transactions that were aborted", known.aborted),
        ("created", "Transactions that were begun", known.created),
        ("timeout", "Transactions that nobody ended in time", known.timed_out),
        ("append_log", "Rows of transactions that were written", known.appended),
    )
    for name, meaning, value in counters:
        yield _one(f"pulsar_txn_{name}_total", meaning, of, value, "counter")
        yield _one(f"pulsar_txn_{name}_count", f"{meaning}, as boards call it", of, value)
    for suffix, count in zip((*map(str, OPEN_MS), "overflow"), known.latencies, strict=True):
        name = f"pulsar_txn_execution_latency_le_{suffix}"
        yield _one(name, f"Transactions by ms until their end, bucket {suffix}", of, count)


def process_of(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the process, under the standard names of Prometheus client libraries."""
    virtual, resident = process.memory()
    files, files_max = process.files()
    started = broker.core.started / 1000
    yield _one("process_cpu_seconds_total", "CPU time", cluster, process.cpu_seconds(), "counter")
    yield _one("process_start_time_seconds", "When the box was started", cluster, started)
    yield _one("process_virtual_memory_bytes", "Address space, with the maps of the journal", cluster, virtual)
    yield _one("process_resident_memory_bytes", "Memory, with mapped pages of the journal", cluster, resident)
    yield _one("process_open_fds", "Open files and sockets", cluster, files)
    yield _one("process_max_fds", "How many there may be", cluster, files_max)


def store(broker: Broker, cluster: str) -> Iterator[Told]:
    """Yield the metrics of the log and its checkpoints."""
    housekeeping = broker.core.commits.housekeeping
    refusing = int(housekeeping.refusal is not None)
    yield _one("pulsarbox_checkpoint_lag_bytes", "Journal that no checkpoint speaks for yet", cluster, housekeeping.lag)
    yield _one("pulsarbox_refusing_messages", "1 while the store takes no messages", cluster, refusing)
    kept = broker.core.unsubscribed
    yield _one(
        "pulsarbox_unsubscribed_bytes", "Bytes that no subscription has covered and that are kept", cluster, kept.bytes
    )
    yield _one("pulsarbox_unsubscribed_limit_bytes", "How many there may be; -1: any number", cluster, kept.limit)
    yield _one("pulsarbox_unsubscribed_topics", "Topics that hold any", cluster, kept.topics)
