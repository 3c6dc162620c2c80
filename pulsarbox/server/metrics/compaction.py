"""Metrics of compaction, for topics compacted since startup, as in Pulsar."""

from typing import Final, NamedTuple

from pulsarbox.broker.compaction.compaction_history import LATENCY_MILLIS, CompactionRecord
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.server.metrics.exposition import Metric, rounded


class CompactionRow(NamedTuple):
    """The values of a topic."""

    record: CompactionRecord
    read_rate: float
    write_rate: float
    entries: int
    size: int

    @classmethod
    def of(cls, topic: PersistentTopic, now: Now) -> "CompactionRow | None":
        """Return the values of a topic; None if it was not compacted."""
        record = topic.compaction.record
        if record is None:
            return None
        view, (read, written) = topic.compaction.view, topic.compaction.rates(now)
        return cls(record, rounded(read), rounded(written), view.entries if view else 0, view.size if view else 0)


def _latency(i: int) -> Metric:
    suffix = f"le_{LATENCY_MILLIS[i]:g}".replace(".", "_") if i < len(LATENCY_MILLIS) else "overflow"
    name = f"pulsar_compaction_latency_{suffix}"
    return Metric(name, "Compaction writes by latency in ms", lambda row: row.record.latencies[i])


COMPACTION: Final = (
    Metric("pulsar_compaction_removed_event_count", "Messages removed by compactions", lambda row: row.record.removed),
    Metric("pulsar_compaction_succeed_count", "Successful compactions", lambda row: row.record.succeeded),
    Metric("pulsar_compaction_failed_count", "Failed compactions", lambda row: row.record.failed),
    Metric(
        "pulsar_compaction_duration_time_in_mills",
        "Total duration of all compactions in ms",
        lambda row: row.record.duration,
    ),
    Metric(
        "pulsar_compaction_read_throughput",
        "Bytes read per second by the running compaction",
        lambda row: row.read_rate,
    ),
    Metric(
        "pulsar_compaction_write_throughput",
        "Bytes written per second by the running compaction",
        lambda row: row.write_rate,
    ),
    Metric("pulsar_compaction_compacted_entries_count", "Entries in the compacted view", lambda row: row.entries),
    Metric("pulsar_compaction_compacted_entries_size", "Bytes in the compacted view", lambda row: row.size),
    *(_latency(i) for i in range(len(LATENCY_MILLIS) + 1)),
    Metric(
        "pulsar_compaction_latency_sum",
        "Sum of the latencies of compaction writes in ms",
        lambda row: rounded(row.record.latency_sum),
    ),
    Metric("pulsar_compaction_latency_count", "Compaction writes", lambda row: sum(row.record.latencies)),
)
