"""Metrics of pipelines on Spark, as reported by their runners."""

from collections.abc import Iterator
from typing import Final

from pulsarbox.broker.stats.pipeline_status import GONE, TOLD_STATES, PipelineStatuses
from pulsarbox.clock import Now
from pulsarbox.server.metrics.exposition import Metric, Rows, labels


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000


_REPORTED: Final = (
    ("lag", Metric("pulsarbox_pipeline_lag_messages", "Messages that a query has not read", float)),
    ("rows", Metric("pulsarbox_pipeline_rows_total", "Rows read since the runner started", float, "counter")),
    (
        "deadLetters",
        Metric("pulsarbox_pipeline_dead_letters_total", "Dead letters since the runner started", float, "counter"),
    ),
    ("rowsPerSecond", Metric("pulsarbox_pipeline_rows_per_second", "Rows read per second", float)),
    ("watermark", Metric("pulsarbox_pipeline_watermark_seconds", "Watermark in seconds since 1970", _seconds)),
    ("stateRows", Metric("pulsarbox_pipeline_state_rows", "Rows of state", float)),
    ("stateBytes", Metric("pulsarbox_pipeline_state_bytes", "Bytes of state in memory", float)),
    ("lastBatchMs", Metric("pulsarbox_pipeline_batch_seconds", "Duration of the last micro-batch", _seconds)),
)
"""Fields of a report, with their metrics."""
_STAGE: Final = Metric(
    "pulsarbox_pipeline_batch_stage_seconds", "Duration of the stages of the last micro-batch", _seconds
)
_STATE: Final = Metric("pulsarbox_pipeline_state", "1 for the current state of a query", int)


def reported(pipelines: PipelineStatuses, cluster: str, now: Now) -> Iterator[tuple[Metric, Rows]]:
    """Yield the metrics of all queries that are listed."""
    queries = []
    for each in pipelines.all(now):
        row = each.as_json(now)
        queries.append((f"{cluster},{labels(pipeline=row['pipeline'], query=row['query'])}", row))
    yield (
        _STATE,
        [
            (f'{of},state="{state}"', int(row["state"] == state))
            for of, row in queries
            for state in (*TOLD_STATES, GONE)
        ],
    )
    for field, metric in _REPORTED:
        yield metric, [(of, row[field]) for of, row in queries if row[field] is not None]
    yield (
        _STAGE,
        [(f"{of},{labels(stage=name)}", ms) for of, row in queries for name, ms in (row["stages"] or {}).items()],
    )
