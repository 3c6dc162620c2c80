"""Progress of a runner's queries, from Spark's progress reports, as lines and rows. Does not import Spark."""

import collections
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pulsarbox.cleaning import clean
from pulsarbox.spark.pipelines.declaration import PATTERN, Function, PipelineStep

STARTING: Final = "starting"
RUNNING: Final = "running"
STOPPED: Final = "stopped"
FAILED: Final = "failed"
OBSERVED: Final = "pulsarbox"
DEAD: Final = "dead"
"""Spark metric that counts dead letters."""
RATE_SECONDS: Final = 10.0
_TOPICS_SHOWN: Final = 100


@dataclass
class Watched:
    """Progress of one query."""

    step: PipelineStep
    state: str = STARTING
    rows: int = 0
    """Rows read since the runner started."""
    dead_letters: int = 0
    batch: int | None = None
    batch_ms: int | None = None
    lag: int | None = None
    """Number of unread messages; None if unknown."""
    stages: dict[str, int] | None = None
    """Milliseconds of each part of the last micro-batch, by Spark's names."""
    watermark: int | None = None
    """Event time in ms since 1970; None without a watermark."""
    state_rows: int | None = None
    state_bytes: int | None = None
    """Size of the state of all operators, in memory; None without state."""
    error: str | None = None
    starts: int = 0
    _samples: "collections.deque[tuple[float, int]]" = field(default_factory=collections.deque)

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Apply a ``StreamingQueryProgress`` in JSON, of a micro-batch or of an idle trigger."""
        self.lag = lag_of(progress)
        self.watermark = watermark_of(progress)
        operators = progress.get("stateOperators") or []
        if operators:
            self.state_rows = sum(int(each.get("numRowsTotal") or 0) for each in operators)
            self.state_bytes = sum(int(each.get("memoryUsedBytes") or 0) for each in operators)
        read = int(progress.get("numInputRows") or 0)
        durations = progress.get("durationMs") or {}
        if not read and "addBatch" not in durations:
            return
        self.rows += read
        self.batch = int(progress["batchId"])
        self.batch_ms = int(durations.get("triggerExecution") or 0)
        self.stages = {name: int(each) for name, each in sorted(durations.items()) if name != "triggerExecution"}
        self.dead_letters += int(((progress.get("observedMetrics") or {}).get(OBSERVED) or {}).get(DEAD) or 0)

    def rate(self, now: float) -> float:
        """Return rows per second over the last RATE_SECONDS; ``now`` is on a monotonic clock."""
        samples = self._samples
        samples.append((now, self.rows))
        while len(samples) > 2 and samples[1][0] <= now - RATE_SECONDS:
            samples.popleft()
        (began, before), (ended, after) = samples[0], samples[-1]
        return (after - before) / (ended - began) if ended > began else 0.0

    def line(self, now: float) -> str:
        """Return the progress as a line for users."""
        words = [self.state]
        if self.batch is not None:
            words += [f"batch {self.batch}", f"{self.rows:,} rows", f"{self.rate(now):,.0f}/s"]
        if self.lag is not None:
            words.append(f"lag {self.lag:,}")
        if self.dead_letters:
            words.append(f"{self.dead_letters:,} dead letter{'' if self.dead_letters == 1 else 's'}")
        return clean(f"{self.step.query}: {', '.join(words)}")

    def row(self, now: float) -> dict[str, Any]:
        """Return the progress as a row for the box."""
        return {
            "query": self.step.query,
            "state": self.state,
            "inputs": inputs_of(self.step)[:_TOPICS_SHOWN],
            "output": str(self.step.writes()),
            "lag": self.lag,
            "rows": self.rows,
            "rowsPerSecond": round(self.rate(now), 1),
            "batch": self.batch,
            "lastBatchMs": self.batch_ms,
            "stages": self.stages,
            "watermark": self.watermark,
            "stateRows": self.state_rows,
            "stateBytes": self.state_bytes,
            "deadLetters": self.dead_letters,
            "lastError": self.error,
        }


def inputs_of(step: PipelineStep) -> list[str]:
    """Return the topics and patterns of a step, as full names."""
    found: list[str] = []
    for selection in step.reads().values():
        if "topics" in selection:
            found += selection["topics"].split(",")
        else:
            found.append(f"{PATTERN}{selection['topicsPattern']}")
    return list(dict.fromkeys(found))


def dead_letters_of(step: PipelineStep) -> str | None:
    """Return the topic for a step's dead letters."""
    return step.dead_letters if isinstance(step, Function) else None


def lag_of(progress: Mapping[str, Any]) -> int | None:
    """Return how many messages of its topics a query has not read yet; None if the offsets do not show it."""
    total = 0
    for source in progress.get("sources") or []:
        latest, end = (_counts(source.get(name)) for name in ("latestOffset", "endOffset"))
        if latest is None or end is None:
            return None
        for topic, count in latest.items():
            if end.get(topic, -1) < 0 or count < 0:
                return None
            total += max(0, count - end[topic])
    return total


def watermark_of(progress: Mapping[str, Any]) -> int | None:
    """Return the watermark in ms since 1970; None if there is none, or no event has moved it yet."""
    text = (progress.get("eventTime") or {}).get("watermark")
    if not text:
        return None
    found = round(datetime.fromisoformat(text).timestamp() * 1000)
    return found or None


def _counts(offset: Any) -> dict[str, int] | None:
    """Return the messages ever published to each topic at an offset; -1 if unknown."""
    if isinstance(offset, str):
        import json

        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if not isinstance(offset, dict) or "p" not in offset:
        return None
    counts = offset.get("n") or {}
    return {topic: int(counts.get(topic, -1)) for topic in offset["p"]}
