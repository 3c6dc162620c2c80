"""What happens in a box that people want to hear of: one value an event, the last of them kept, a storm a number.

Pure: nothing is written here. ``tell`` is the one way in, for every room that is handed the core; the shell takes what
there is from ``listeners`` and calls ``settle`` once a second, which tells how much of each kind was not told.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pulsarbox.clock import Now

RING: Final = 4096
"""Events that are kept in memory."""
PERIOD_SECONDS: Final = 10.0
SUBJECTS_MAX: Final = 20
"""Of one kind so many subjects are told in a period, each of them once; then how much else there was."""
TEXT_MAX: Final = 500
"""Characters of a subject or a text."""
BOOT_STEP: Final = 1_000_000_000
"""Between the numbers of the events of two starts: no number is given twice, whatever was lost in a crash."""

INFO: Final = "info"
WARNING: Final = "warning"
ERROR: Final = "error"
SEVERITIES: Final = (INFO, WARNING, ERROR)


class Kind(NamedTuple):
    """What an event may be about."""

    severity: str
    meaning: str


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "started": Kind(INFO, "the box serves; after a crash, how long the recovery took"),
        "stopping": Kind(INFO, "the box was asked to stop"),
        "recovered": Kind(WARNING, "the box had not been stopped: what was behind the last checkpoint was read again"),
        "clock-moved": Kind(INFO, "the virtual clock was moved"),
        "changed": Kind(INFO, "somebody changed something over HTTP: who, what, and how it ended"),
        "denied": Kind(WARNING, "somebody was refused what they may not do"),
        "topic-created": Kind(INFO, "a topic has come into being"),
        "topic-deleted": Kind(INFO, "a topic was deleted: why, and what it held"),
        "unsubscribed-trimmed": Kind(
            WARNING, "messages that no subscription has covered are deleted: their time is over, or they are too many"
        ),
        "quota-hit": Kind(WARNING, "a backlog has reached its quota: producers wait or are refused"),
        "quota-released": Kind(INFO, "a backlog is below its quota again"),
        "publish-held": Kind(INFO, "a publish rate is used up: receipts of producers wait"),
        "producer-suspended": Kind(
            WARNING,
            "too many receipts of a producer wait for a publish rate: its client is to send the rest again later",
        ),
        "connection-unread": Kind(
            WARNING, "a connection is not read: too many receipts of its producers wait for publish rates"
        ),
        "evicted": Kind(WARNING, "the oldest messages of a backlog are let go, as its quota says"),
        "dead-letters": Kind(WARNING, "messages became dead letters"),
        "dead-letters-refused": Kind(ERROR, "a dead letter topic does not take what should go there"),
        "client-connected": Kind(INFO, "a client has connected"),
        "client-disconnected": Kind(INFO, "a client is gone"),
        "client-refused": Kind(WARNING, "a connection was refused or closed, because of limits or what it sent"),
        "slow-commit": Kind(WARNING, "a commit took long: receipts waited for the disk"),
        "commit-failed": Kind(ERROR, "a commit failed, its messages were refused"),
        "disk-full": Kind(ERROR, "there is no room for messages; acknowledgements go on, from the reserve"),
        "disk-room": Kind(INFO, "there is room for messages again"),
        "disk-low": Kind(WARNING, "the disk is nearly full"),
        "quarantined": Kind(ERROR, "a damaged entry was found and is kept aside"),
        "plugin-failed": Kind(ERROR, "a plugin failed, or cannot be used"),
        "job-running": Kind(INFO, "a job was begun, or goes on"),
        "job-paused": Kind(
            INFO, "a job rests until it is resumed: it was asked to, or a topic refuses what it puts back"
        ),
        "job-tripped": Kind(WARNING, "a job has stopped itself: what it puts back becomes dead letters again"),
        "job-done": Kind(INFO, "a job has come to its end"),
        "job-cancelled": Kind(INFO, "a job was stopped for good"),
        "job-failed": Kind(ERROR, "a job cannot go on: its topic or subscription is gone"),
    }
)
"""All kinds of events: a kind that is not here cannot be told."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    sequence: int
    """Grows from event to event, over restarts too; there are gaps."""
    time: int
    """Milliseconds since 1970, by the clock of the box."""
    severity: str
    """One of SEVERITIES."""
    kind: str
    """One of KINDS."""
    subject: str
    """What it is about: a topic, an address, a plugin; empty for the box."""
    text: str
    """In words."""
    count: int
    """How many such happenings it stands for."""
    fields: Mapping[str, Any]
    """Numbers and names of that kind."""

    def as_json(self) -> dict[str, Any]:
        """As it is kept and answered."""
        return {name: getattr(self, name) for name in FIELDS} | {"fields": dict(self.fields)}


FIELDS: Final = tuple(each.name for each in fields(Event))


class _Period:
    """What was told of one kind lately."""

    __slots__ = ("ends", "more", "subjects")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.subjects: dict[str, int] = {}
        """How often each happened again since it was told."""
        self.more = 0
        """Happenings with subjects that were not told."""

    @property
    def untold(self) -> bool:
        return self.more > 0 or any(self.subjects.values())


class Events:
    """The events of one box since its start."""

    def __init__(self, boot: int = 0) -> None:
        """``boot``: which start of the box it is; their numbers go on behind those of the start before."""
        self.listeners: dict[Callable[[Event], None], None] = {}
        """Called with each event, in order; they must be short and not tell events."""
        self._ring: deque[Event] = deque(maxlen=RING)
        self._sequence = boot * BOOT_STEP
        self._periods: dict[str, _Period] = {}
        self._undated: deque[tuple[str, str, str, dict[str, Any]]] = deque(maxlen=RING)

    @property
    def first(self) -> int:
        """The number of the oldest event in memory; of what is before it, only files know."""
        return self._ring[0].sequence if self._ring else self._sequence + 1

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self._sequence

    def after(self, sequence: int, limit: int) -> list[Event]:
        """The oldest ``limit`` events in memory with greater numbers."""
        if sequence >= self._sequence:
            return []
        at = max(sequence + 1 - self.first, 0)  # in memory there are no gaps
        return list(islice(self._ring, at, at + limit))

    def tell(self, kind: str, subject: str, text: str, now: Now, *, count: int = 1, **about: Any) -> None:
        """Something has happened ``count`` times. Of many alike only the first of a period is an event of its own."""
        period = self._periods.get(kind)
        if period is not None and now.monotonic >= period.ends:
            self._end(kind, period, now)
            period = None
        if period is None:
            period = self._periods[kind] = _Period(now.monotonic + PERIOD_SECONDS)
        if subject in period.subjects:
            period.subjects[subject] += count
        elif len(period.subjects) >= SUBJECTS_MAX:
            period.more += count
        else:
            period.subjects[subject] = 0
            self._add(kind, subject, text, count, about, now)

    def tell_undated(self, kind: str, subject: str, text: str, **about: Any) -> None:
        """Something has happened where it is not known what time it is; ``settle`` tells it."""
        self._undated.append((kind, subject, text, about))

    def settle(self, now: Now) -> None:
        """Tell what was held back: of periods that are over, how often things happened that were not told."""
        while self._undated:
            kind, subject, text, about = self._undated.popleft()
            self.tell(kind, subject, text, now, **about)
        over = [kind for kind, period in self._periods.items() if now.monotonic >= period.ends]
        for kind in over:
            self._end(kind, self._periods.pop(kind), now)

    def _end(self, kind: str, period: _Period, now: Now) -> None:
        for subject, again in period.subjects.items():
            if again:
                self._add(kind, subject, f"{again:,} more in {PERIOD_SECONDS:g} s", again, {}, now)
        if period.more:
            text = f"{period.more:,} more in {PERIOD_SECONDS:g} s, of others"
            self._add(kind, "", text, period.more, {}, now)

    def _add(self, kind: str, subject: str, text: str, count: int, fields: dict[str, Any], now: Now) -> None:
        severity = fields.pop("severity", KINDS[kind].severity)
        self._sequence += 1
        event = Event(
            self._sequence,
            now.wall,
            severity,
            kind,
            subject[:TEXT_MAX],
            text[:TEXT_MAX],
            count,
            MappingProxyType(fields),
        )
        self._ring.append(event)
        for listener in list(self.listeners):
            listener(event)
