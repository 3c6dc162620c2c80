"""Operator-facing events: a ring of recent ones, rate-limited per kind.

Pure: nothing is written here. Every component with the core reports through ``tell``; the shell subscribes to
``listeners``. It calls ``settle`` once a second, which reports the number of suppressed events of each kind.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pulsarbox.clock import Now
from pulsarbox.plugins.guard import Trouble

RING: Final = 4096
"""Events kept in memory."""
PERIOD_SECONDS: Final = 10.0
SUBJECTS_MAX: Final = 20
"""Subjects of one kind reported per period, once each; beyond that, events are only counted."""
TEXT_MAX: Final = 500
"""Maximum characters of a subject or a text."""
BOOT_STEP: Final = 1_000_000_000
"""Event numbers reserved per start, so that a number lost in a crash is never reused."""

INFO: Final = "info"
WARNING: Final = "warning"
ERROR: Final = "error"
SEVERITIES: Final = (INFO, WARNING, ERROR)


class EventKind(NamedTuple):
    """Severity and meaning of a kind of event."""

    severity: str
    meaning: str


KINDS: Final[Mapping[str, EventKind]] = MappingProxyType(
    {
        "started": EventKind(INFO, "the box is serving; after a crash, with the recovery time"),
        "stopping": EventKind(INFO, "the box is stopping"),
        "recovered": EventKind(
            WARNING, "the box was not stopped cleanly: the log after the last checkpoint was replayed"
        ),
        "clock-moved": EventKind(INFO, "the virtual clock was moved forward"),
        "changed": EventKind(
            INFO, "a change was requested over HTTP: by whom, what, and the result; a warning if refused"
        ),
        "denied": EventKind(WARNING, "a request was denied for lack of permission"),
        "topic-created": EventKind(INFO, "a topic was created"),
        "topic-deleted": EventKind(INFO, "a topic was deleted: the reason, and how much it held"),
        "unsubscribed-trimmed": EventKind(
            WARNING, "messages not covered by any subscription were deleted: they exceeded their retention time or size"
        ),
        "quota-hit": EventKind(WARNING, "a backlog has reached its quota: producers wait or are rejected"),
        "quota-released": EventKind(INFO, "a backlog is below its quota again"),
        "publish-held": EventKind(INFO, "a publish rate limit is reached: receipts are delayed"),
        "producer-suspended": EventKind(
            WARNING,
            "a producer is suspended: too many of its receipts wait for a publish rate; its client resends later",
        ),
        "connection-unread": EventKind(
            WARNING, "a connection is not read: too many receipts of its producers wait for publish rates"
        ),
        "evicted": EventKind(WARNING, "the oldest messages of a backlog were evicted, as set by its quota"),
        "dead-letters": EventKind(WARNING, "messages were moved to a dead letter topic"),
        "dead-letters-refused": EventKind(ERROR, "a dead letter topic rejected messages"),
        "client-connected": EventKind(INFO, "a client connected"),
        "client-disconnected": EventKind(INFO, "a client disconnected"),
        "client-refused": EventKind(
            WARNING, "a connection was refused or closed because of a limit or the data it sent"
        ),
        "slow-commit": EventKind(WARNING, "a commit was slow: receipts waited for the disk"),
        "commit-failed": EventKind(ERROR, "a commit failed: its messages were rejected"),
        "disk-full": EventKind(ERROR, "no disk space is left for messages; acknowledgements use the reserve"),
        "disk-room": EventKind(INFO, "disk space is available for messages again"),
        "disk-low": EventKind(WARNING, "the disk is nearly full"),
        "too-few-copies": EventKind(ERROR, "too few data directories can be written for the copies asked for"),
        "quarantined": EventKind(ERROR, "a damaged entry was found and quarantined"),
        "member-lost": EventKind(ERROR, "a data directory cannot be used: nothing more is written to it"),
        "member-full": EventKind(ERROR, "a data directory has no space left for messages: it is still read"),
        "member-late": EventKind(
            WARNING, "a data directory did not complete a write in time: nothing more is written to it"
        ),
        "member-fenced": EventKind(
            WARNING, "a data directory missed changes while it was not part of the box: it is brought up to date first"
        ),
        "member-joined": EventKind(INFO, "a data directory was added, or is used again"),
        "member-left": EventKind(INFO, "a data directory was released: all of its entries are in others"),
        "shared-device": EventKind(
            WARNING, "several data directories are on one device: its failure can destroy several copies"
        ),
        "under-replicated": EventKind(WARNING, "entries have fewer copies than configured"),
        "fragments-repaired": EventKind(INFO, "missing copies were written"),
        "copies-restored": EventKind(INFO, "every entry has all of its copies again"),
        "entries-damaged": EventKind(
            ERROR, "damaged entries were found in a data directory: they are copied again from another one"
        ),
        "plugin-failed": EventKind(ERROR, "a plugin failed or is unavailable"),
        "job-running": EventKind(INFO, "a job was started or resumed"),
        "job-paused": EventKind(
            INFO, "a job was paused until it is resumed: on request, or because a topic rejected a message"
        ),
        "job-tripped": EventKind(
            WARNING, "a job was stopped automatically: replayed messages became dead letters again"
        ),
        "job-done": EventKind(INFO, "a job completed"),
        "job-cancelled": EventKind(INFO, "a job was cancelled"),
        "job-failed": EventKind(ERROR, "a job failed: its topic or subscription no longer exists"),
    }
)
"""All kinds of events; ``tell`` accepts no other."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    sequence: int
    """Increases with each event, across restarts; may have gaps."""
    time: int
    """Milliseconds since 1970, by the box's clock."""
    severity: str
    """One of SEVERITIES."""
    kind: str
    """One of KINDS."""
    subject: str
    """Subject of the event: a topic, an address, a plugin; empty for the box."""
    text: str
    """Human-readable description."""
    count: int
    """Number of occurrences that the event represents."""
    fields: Mapping[str, Any]
    """Details specific to the kind."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as stored in files and returned over HTTP."""
        return {name: getattr(self, name) for name in FIELDS} | {"fields": dict(self.fields)}


FIELDS: Final = tuple(each.name for each in fields(Event))


@dataclass(slots=True)
class _Repetitions:
    """Occurrences after an event, on the same subject."""

    severity: str
    count: int = 0


class _Period:
    """Rate-limiting state of one kind of event."""

    __slots__ = ("ends", "more", "subjects")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.subjects: dict[tuple[str, str], _Repetitions] = {}
        """Repetitions by subject and part of it since its event."""
        self.more = 0
        """Occurrences on subjects beyond SUBJECTS_MAX."""

    @property
    def unreported(self) -> bool:
        return self.more > 0 or any(each.count for each in self.subjects.values())


def _more(count: int) -> str:
    return f"{count:,} more occurrence{'' if count == 1 else 's'} within {PERIOD_SECONDS:g} s"


class Events:
    """The events of one box since its start."""

    def __init__(self, boot: int = 0) -> None:
        """``boot``: the number of this start; event numbers continue after those of the previous start."""
        self.listeners: dict[Callable[[Event], None], None] = {}
        """Called with each event, in order; must be fast and must not report events."""
        self._ring: deque[Event] = deque(maxlen=RING)
        self._sequence = boot * BOOT_STEP
        self._periods: dict[str, _Period] = {}
        self._undated: deque[tuple[str, str, str, dict[str, Any]]] = deque(maxlen=RING)

    @property
    def first(self) -> int:
        """Number of the oldest event in memory; older ones are only in files."""
        return self._ring[0].sequence if self._ring else self._sequence + 1

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self._sequence

    def after(self, sequence: int, limit: int) -> list[Event]:
        """Return up to ``limit`` events in memory with higher numbers, oldest first."""
        if sequence >= self._sequence:
            return []
        at = max(sequence + 1 - self.first, 0)  # numbers in memory have no gaps
        return list(islice(self._ring, at, at + limit))

    def report(
        self, kind: str, subject: str, text: str, now: Now, *, count: int = 1, part: str = "", **about: Any
    ) -> None:
        """Report ``count`` occurrences; repetitions on the same subject within a period are only counted.

        ``part``: what of the subject the event is about, if its other parts are to be reported separately.
        """
        period = self._periods.get(kind)
        if period is not None and now.monotonic >= period.ends:
            self._end(kind, period, now)
            period = None
        if period is None:
            period = self._periods[kind] = _Period(now.monotonic + PERIOD_SECONDS)
        if (subject, part) in period.subjects:
            period.subjects[subject, part].count += count
        elif len(period.subjects) >= SUBJECTS_MAX:
            period.more += count
        else:
            period.subjects[subject, part] = _Repetitions(about.get("severity", KINDS[kind].severity))
            self._add(kind, subject, text, count, about, now)

    def report_undated(self, kind: str, subject: str, text: str, **about: Any) -> None:
        """Queue an event from code without the time; ``settle`` reports it."""
        self._undated.append((kind, subject, text, about))

    def plugin_failed(self, trouble: Trouble) -> None:
        """Queue the event of a plugin that failed or is unavailable."""
        subject = f"{trouble.kind} {trouble.name}"
        self.report_undated("plugin-failed", subject, str(trouble), tripped=trouble.tripped)

    def settle(self, now: Now) -> None:
        """Report queued events, and the repetitions counted in periods that have ended."""
        while self._undated:
            kind, subject, text, about = self._undated.popleft()
            self.report(kind, subject, text, now, **about)
        over = [kind for kind, period in self._periods.items() if now.monotonic >= period.ends]
        for kind in over:
            self._end(kind, self._periods.pop(kind), now)

    def _end(self, kind: str, period: _Period, now: Now) -> None:
        for (subject, _), again in period.subjects.items():
            if again.count:
                self._add(kind, subject, _more(again.count), again.count, {"severity": again.severity}, now)
        if period.more:
            self._add(kind, "", f"{_more(period.more)}, on other subjects", period.more, {}, now)

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
