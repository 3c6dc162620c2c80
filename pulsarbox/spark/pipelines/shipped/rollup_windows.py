"""Windows of event time over topics: what is counted, when a window is over, and what comes too late. Nothing of Spark.

Tasks count their messages into ``Part``s; one place, ``Windows``, adds these up, topic by topic, and says the rows of
the windows that are over. Every message is counted in a row exactly once (once for each window that it is in), however
late it comes: what belongs to a window that was told of goes out at once as one more row for it, marked ``late``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

GROWTH: Final = math.log(1.02)
"""Between the latencies of one bucket and of the next: what is told is right to 1 %."""
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
"""The fields of a row of a rollup, and their types as Spark writes them. Times are milliseconds."""


class Rolling(NamedTuple):
    """How topics are rolled up. All times are milliseconds."""

    length: int
    slide: int
    """A window begins so often; ``length`` for windows that do not overlap."""
    delay: int
    """So much later than the newest event of its topic a message may be, and still be in time."""
    idle: int
    """A topic without messages goes by those of the others, so much later."""
    top: int = 10
    """Keys that are told of."""
    keys: int = 1000
    """Keys that are counted for a window; where there are more, the rarest are given up."""
    flush: bool = False
    """Tell of windows that are not over, too, after each micro-batch."""

    def check(self) -> None:
        """Raises ValueError for what cannot be."""
        if self.slide < 1 or self.length < 1:
            raise ValueError("a window and its slide are at least a millisecond")
        if self.length % self.slide:
            nearest = max(1, self.length // self.slide) * self.slide
            raise ValueError(
                f"the window, {self.length / 1000:g} s, must be a multiple of its slide, {self.slide / 1000:g} s: "
                f"{nearest / 1000:g} s is one"
            )
        if self.length // self.slide > 1000:
            raise ValueError("a message would be in more than 1000 windows: choose a longer slide")


def bucket(latency: int) -> int:
    """The number that stands for latencies about as long (ms)."""
    return 0 if latency <= 0 else 1 + math.ceil(math.log(latency) / GROWTH)


def latency_of(number: int) -> int:
    """The latency that a bucket stands for (ms), 1 % off at most."""
    return 0 if number == 0 else round(2 * math.exp(GROWTH * (number - 1)) / (1 + math.exp(GROWTH)))


@dataclass
class Counts:
    """What was counted in one window of one topic."""

    messages: int = 0
    size: int = 0
    """Bytes of payloads."""
    ahead: int = 0
    """Messages whose event time was after their publish time by more than the delay: they went by the publish time."""
    timed: int = 0
    """Messages with an event time to believe, which have a latency."""
    slowest: int = 0
    latencies: dict[int, int] = field(default_factory=dict)
    """Messages by bucket."""
    keys: dict[str, int] = field(default_factory=dict)
    """Messages by key."""
    cut: bool = False
    """Whether keys were given up."""

    def add(self, other: "Counts", keys: int) -> None:
        """Add what was counted elsewhere; ``keys``: how many are kept."""
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
        """The latency (ms) that this share of the messages did not exceed; None without any."""
        left = math.ceil(share * self.timed)
        for number in sorted(self.latencies):
            left -= self.latencies[number]
            if left <= 0:
                return min(latency_of(number), self.slowest)
        return None

    def as_json(self) -> list[Any]:
        """As it is kept."""
        fields = [self.messages, self.size, self.ahead, self.timed, self.slowest]
        return [*fields, sorted(self.latencies.items()), self.keys, self.cut]

    @classmethod
    def of_json(cls, kept: list[Any]) -> "Counts":
        """The inverse of ``as_json``."""
        messages, size, ahead, timed, slowest, latencies, keys, cut = kept
        return cls(messages, size, ahead, timed, slowest, dict(latencies), keys, cut)


def most(counts: Mapping[str, int], number: int) -> dict[str, int]:
    """Those with the highest counts; of equal ones the first by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number])


def _add(mine: dict[Any, int], more: Mapping[Any, int]) -> None:
    for name, count in more.items():
        mine[name] = mine.get(name, 0) + count


@dataclass
class Part:
    """What a task has counted of one topic."""

    topic: str
    newest: int
    """The newest event time (ms)."""
    published: int
    """The newest publish time (ms)."""
    windows: dict[int, Counts] = field(default_factory=dict)
    """By the start of the window (ms)."""

    def add(self, other: "Part", keys: int) -> None:
        """Add what was counted of the same topic."""
        self.newest, self.published = max(self.newest, other.newest), max(self.published, other.published)
        for start, counts in other.windows.items():
            self.windows.setdefault(start, Counts()).add(counts, keys)

    def as_json(self) -> list[Any]:
        """As it travels."""
        windows = [[start, counts.as_json()] for start, counts in sorted(self.windows.items())]
        return [self.topic, self.newest, self.published, windows]

    @classmethod
    def of_json(cls, told: list[Any]) -> "Part":
        """The inverse of ``as_json``."""
        topic, newest, published, windows = told
        return cls(topic, newest, published, {start: Counts.of_json(counts) for start, counts in windows})


Row = dict[str, Any]


@dataclass
class _Topic:
    newest: int
    """The newest event time that came (ms)."""
    closed: int
    """Windows that end here, or before, were told of (ms)."""
    open: dict[int, Counts] = field(default_factory=dict)


class Windows:
    """All windows that are not over, topic by topic."""

    def __init__(self, how: Rolling) -> None:
        self._how = how
        self._topics: dict[str, _Topic] = {}

    def take(self, parts: Iterable[Part]) -> list[Row]:
        """Count what one micro-batch has brought; the rows that go out now, by topic and window."""
        brought: dict[str, Part] = {}
        for part in parts:
            if part.topic in brought:
                brought[part.topic].add(part, self._how.keys)
            else:
                brought[part.topic] = part
        rows: list[Row] = []
        for name, part in brought.items():
            rows += self._count(name, part)
        now = max((part.published for part in brought.values()), default=None)
        for name, topic in self._topics.items():
            over = topic.newest - self._how.delay
            if name not in brought and now is not None:
                over = max(over, now - self._how.delay - self._how.idle)
            rows += self._close(name, topic, over)
        return sorted(rows, key=lambda row: (row["topic"], row["windowStart"], row["late"]))

    def _count(self, name: str, part: Part) -> list[Row]:
        """Into the windows that are open; rows for those that are not."""
        topic = self._topics.setdefault(name, _Topic(part.newest, -1))
        topic.newest = max(topic.newest, part.newest)
        late = []
        for start, counts in part.windows.items():
            if start + self._how.length <= topic.closed:
                late.append(self._row(name, start, counts, late=True))
            else:
                topic.open.setdefault(start, Counts()).add(counts, self._how.keys)
        return late

    def _close(self, name: str, topic: _Topic, over: int) -> list[Row]:
        ends = [start + self._how.length for start in topic.open]
        if self._how.flush and ends:
            over = max(over, *ends)
        topic.closed = max(topic.closed, over)
        starts = sorted(start for start in topic.open if start + self._how.length <= topic.closed)
        return [self._row(name, start, topic.open.pop(start), late=False) for start in starts]

    def _row(self, topic: str, start: int, counts: Counts, *, late: bool) -> Row:
        seconds = self._how.length / 1000
        return {
            "topic": topic,
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

    def as_json(self) -> dict[str, Any]:
        """As it is kept from one micro-batch to the next."""
        return {
            name: [topic.newest, topic.closed, [[start, each.as_json()] for start, each in sorted(topic.open.items())]]
            for name, topic in self._topics.items()
        }

    @classmethod
    def of_json(cls, how: Rolling, kept: Mapping[str, Any]) -> "Windows":
        """The inverse of ``as_json``."""
        made = cls(how)
        for name, (newest, closed, windows) in kept.items():
            made._topics[name] = _Topic(newest, closed, {start: Counts.of_json(each) for start, each in windows})
        return made
