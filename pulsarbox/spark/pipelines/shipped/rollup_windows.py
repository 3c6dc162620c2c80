"""Event time windows over topics: counting, closing, and late messages. Does not import Spark.

Tasks count their messages into ``TaskCounts``. ``TopicWindows`` adds up those of a topic and emits the rows of closed
windows. Each message is counted in exactly one row per window, however late: messages of a closed window are emitted
at once as an additional row, marked ``late``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

GROWTH: Final = math.log(1.02)
"""Logarithm of the ratio of adjacent latency buckets; reported latencies are accurate to 1 %."""
ROW: Final = {
    "topic": "string",
    "windowStart": "bigint",
    "windowEnd": "bigint",
    "late": "boolean",
    "messages": "bigint",
    "bytes": "bigint",
    "messageRate": "double",
    "byteRate": "double",
    "ahead": "bigint",
    "keys": "bigint",
    "keysExact": "boolean",
    "topKeys": "array<struct<key:string,messages:bigint>>",
    "timed": "bigint",
    "latencyP50": "bigint",
    "latencyP95": "bigint",
    "latencyP99": "bigint",
    "latencyMax": "bigint",
}
"""Fields of a rollup row, with Spark SQL types. Times are milliseconds."""


class Rolling(NamedTuple):
    """Parameters of the windows. All times are milliseconds."""

    length: int
    slide: int
    """Interval between window starts; equal to ``length`` for windows that do not overlap."""
    delay: int
    """Maximum delay of a message behind the newest event of its topic before it is late."""
    idle: int
    """Additional delay after which the windows of a topic without messages are closed, if others have messages."""
    top: int = 10
    """Number of keys reported."""
    keys: int = 1000
    """Number of keys counted per window; beyond it, the rarest are dropped."""
    flush: bool = False
    """Close all windows after each micro-batch."""

    def check(self) -> None:
        """Raise ValueError for invalid parameters."""
        if self.slide < 1 or self.length < 1:
            raise ValueError("a window and its slide must be at least one millisecond")
        if self.length % self.slide:
            nearest = max(1, self.length // self.slide) * self.slide
            raise ValueError(
                f"the window, {self.length / 1000:g} s, must be a multiple of its slide, {self.slide / 1000:g} s, such "
                f"as {nearest / 1000:g} s"
            )
        if self.length // self.slide > 1000:
            raise ValueError("each message would be in more than 1000 windows: choose a longer slide")


def bucket(latency: int) -> int:
    """Return the bucket of a latency in ms."""
    return 0 if latency <= 0 else 1 + math.ceil(math.log(latency) / GROWTH)


def latency_of(number: int) -> int:
    """Return the latency that represents a bucket in ms, within 1 %."""
    return 0 if number == 0 else round(2 * math.exp(GROWTH * (number - 1)) / (1 + math.exp(GROWTH)))


@dataclass
class WindowCounts:
    """Counts of one window of one topic."""

    messages: int = 0
    size: int = 0
    """Bytes of payloads."""
    ahead: int = 0
    """Messages whose event time exceeded their publish time by more than the delay; counted by publish time instead."""
    timed: int = 0
    """Messages with a plausible event time, and so a latency."""
    slowest: int = 0
    latencies: dict[int, int] = field(default_factory=dict)
    """Messages by bucket."""
    keys: dict[str, int] = field(default_factory=dict)
    """Messages by key."""
    cut: bool = False
    """Whether keys were dropped."""

    def add(self, other: "WindowCounts", keys: int) -> None:
        """Add other counts, and keep at most ``keys`` keys."""
        self.messages += other.messages
        self.size += other.size
        self.ahead += other.ahead
        self.timed += other.timed
        self.slowest = max(self.slowest, other.slowest)
        for mine, more in ((self.latencies, other.latencies), (self.keys, other.keys)):
            _add(mine, more)
        self.cut = self.cut or other.cut
        if len(self.keys) > keys:
            self.keys, self.cut = most(self.keys, keys), True

    def percentile(self, share: float) -> int | None:
        """Return the latency in ms that this share of the messages did not exceed; None without any."""
        left = math.ceil(share * self.timed)
        for number in sorted(self.latencies):
            left -= self.latencies[number]
            if left <= 0:
                return min(latency_of(number), self.slowest)
        return None

    def as_json(self) -> list[Any]:
        """Return the counts as JSON."""
        fields = [self.messages, self.size, self.ahead, self.timed, self.slowest]
        return [*fields, sorted(self.latencies.items()), self.keys, self.cut]

    @classmethod
    def of_json(cls, kept: list[Any]) -> "WindowCounts":
        """Parse the result of ``as_json``."""
        messages, size, ahead, timed, slowest, latencies, keys, cut = kept
        return cls(messages, size, ahead, timed, slowest, dict(latencies), keys, cut)


def most(counts: Mapping[str, int], number: int) -> dict[str, int]:
    """Return the entries with the highest counts; ties are broken by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number])


def _add(mine: dict[Any, int], more: Mapping[Any, int]) -> None:
    for name, count in more.items():
        mine[name] = mine.get(name, 0) + count


@dataclass
class TaskCounts:
    """Counts of one task for one topic."""

    topic: str
    newest: int
    """The newest event time in ms."""
    published: int
    """The newest publish time in ms."""
    windows: dict[int, WindowCounts] = field(default_factory=dict)
    """Counts by window start in ms."""

    def add(self, other: "TaskCounts", keys: int) -> None:
        """Add other counts of the same task and topic."""
        self.newest, self.published = max(self.newest, other.newest), max(self.published, other.published)
        for start, counts in other.windows.items():
            self.windows.setdefault(start, WindowCounts()).add(counts, keys)

    def as_json(self) -> list[Any]:
        """Return the part as JSON, to send it to the adding task."""
        windows = [[start, counts.as_json()] for start, counts in sorted(self.windows.items())]
        return [self.topic, self.newest, self.published, windows]

    @classmethod
    def of_json(cls, told: list[Any]) -> "TaskCounts":
        """Parse the result of ``as_json``."""
        topic, newest, published, windows = told
        return cls(topic, newest, published, {start: WindowCounts.of_json(counts) for start, counts in windows})


Row = dict[str, Any]


class TopicWindows:
    """Open windows of one topic."""

    def __init__(self, how: Rolling, topic: str) -> None:
        self._how = how
        self._topic = topic
        self._newest = -1
        """The newest event time in ms."""
        self._closed = -1
        """Windows that end at or before this time, in ms, were emitted."""
        self._counted_at = 0
        """Time of the last micro-batch with messages, in ms of Spark's clock."""
        self._open: dict[int, WindowCounts] = {}

    def count(self, parts: Iterable[TaskCounts], at: int) -> list[Row]:
        """Count the messages of a micro-batch that began ``at``, and return the rows to emit now."""
        rows = []
        for part in parts:
            self._newest = max(self._newest, part.newest)
            rows += self._add(part)
        self._counted_at = at
        return [*rows, *self._close(self._newest - self._how.delay)]

    def expire(self, now: int) -> list[Row]:
        """Return the rows of windows that are due ``now``, as the topic is idle: see ``expires_at``."""
        spare = self._how.delay + self._how.idle
        return self._close(now - spare) if now >= self._counted_at + spare else []

    @property
    def expires_at(self) -> int | None:
        """When the first open window is due if no more messages arrive, in ms of Spark's clock; None without any."""
        if not self._open:
            return None
        return max(self._counted_at, min(self._open) + self._how.length) + self._how.delay + self._how.idle

    def _add(self, part: TaskCounts) -> list[Row]:
        """Add a part to the open windows, and return rows for the closed ones."""
        late = []
        for start, counts in sorted(part.windows.items()):
            if start + self._how.length <= self._closed:
                late.append(self._row(start, counts, late=True))
            else:
                self._open.setdefault(start, WindowCounts()).add(counts, self._how.keys)
        return late

    def _close(self, over: int) -> list[Row]:
        ends = [start + self._how.length for start in self._open]
        if self._how.flush and ends:
            over = max(over, *ends)
        self._closed = max(self._closed, over)
        starts = sorted(start for start in self._open if start + self._how.length <= self._closed)
        return [self._row(start, self._open.pop(start), late=False) for start in starts]

    def _row(self, start: int, counts: WindowCounts, *, late: bool) -> Row:
        seconds = self._how.length / 1000
        return {
            "topic": self._topic,
            "windowStart": start,
            "windowEnd": start + self._how.length,
            "late": late,
            "messages": counts.messages,
            "bytes": counts.size,
            "messageRate": counts.messages / seconds,
            "byteRate": counts.size / seconds,
            "ahead": counts.ahead,
            "keys": len(counts.keys),
            "keysExact": not counts.cut,
            "topKeys": [{"key": key, "messages": count} for key, count in most(counts.keys, self._how.top).items()],
            "timed": counts.timed,
            "latencyP50": counts.percentile(0.5),
            "latencyP95": counts.percentile(0.95),
            "latencyP99": counts.percentile(0.99),
            "latencyMax": counts.slowest if counts.timed else None,
        }

    def as_json(self) -> list[Any]:
        """Return the windows as JSON, stored between micro-batches."""
        windows = [[start, each.as_json()] for start, each in sorted(self._open.items())]
        return [self._newest, self._closed, self._counted_at, windows]

    @classmethod
    def of_json(cls, how: Rolling, topic: str, kept: list[Any]) -> "TopicWindows":
        """Parse the result of ``as_json``."""
        made = cls(how, topic)
        made._newest, made._closed, made._counted_at, windows = kept
        made._open = {start: WindowCounts.of_json(each) for start, each in windows}
        return made
