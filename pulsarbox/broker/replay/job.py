"""Replay jobs: their specification and progress, as rows and as JSON.

The specification is a row that is written once. The progress is another row, written in the same batch as the step it
describes, so after a crash the job continues right after its last durable step.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pulsarbox.broker.replay.job_states import RUNNING
from pulsarbox.broker.replay.message_edit import Edit, read_edit
from pulsarbox.broker.replay.message_filter import parse_filter
from pulsarbox.broker.replay.transform import Task
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now
from pulsarbox.errors import InvalidTopicName, Unprocessable
from pulsarbox.names import PERSISTENT, TopicName, parse_topic
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.record import Position

REPLAY: Final = "dlq-replay"
DROP: Final = "dlq-drop"
KINDS: Final = (REPLAY, DROP)

RATE: Final = 100.0
"""Default rate in messages per second: low, because failed messages may fail again."""
RATE_MAX: Final = 1_000_000.0
RETURNED_MAX: Final = 100
SHARE_MAX: Final = 0.2
SHARE_FROM: Final = 10
"""Minimum number of returned messages before their share is considered."""
TOLD_MAX: Final = 20
"""Reasons and targets counted individually; further ones are counted together."""
OTHERS: Final = "others"
NOWHERE: Final = Position(-1, -1)
"""The position before all entries."""
_FILTER_MAX: Final = 4000
_FIELDS: Final = (
    "kind", "topic", "subscription", "target", "filter", "edit", "rate", "dryRun", "maxReturned", "maxReturnedShare",
    "skipRefused",
)  # fmt: skip


class JobPart(NamedTuple):
    """One topic or partition that a job processes."""

    topic: str
    end: Position
    """The last entry when the job was created."""


class Spec(NamedTuple):
    """Specification of a job."""

    kind: str
    topic: TopicName
    subscription: str
    """Empty for a dry run on a topic without subscriptions."""
    target: TopicName | None
    """Target topic; None: each message's origin."""
    filter: str
    edit: Edit | None
    rate: float
    """Messages per second; 0: unlimited."""
    dry_run: bool
    max_returned: int
    """Number of returned messages that stops the job; 0: unlimited."""
    max_share: float
    """Share of returned messages that stops the job, once ``SHARE_FROM`` have returned; 0: no limit."""
    skip_refused: bool
    """Skip rejected messages and keep them; otherwise the job pauses."""
    by: str
    """Role of the creator; empty without authentication."""
    method: str
    original: str
    created: int
    """Milliseconds since 1970."""

    @property
    def principal(self) -> Principal | None:
        """The creator, whose permissions are checked again at each step."""
        return Principal(self.by, self.method, None, self.original) if self.by else None

    @property
    def row(self) -> Row:
        """The row that stores the specification."""
        return {
            "kind": self.kind,
            "topic": str(self.topic),
            "subscription": self.subscription,
            "target": None if self.target is None else str(self.target),
            "filter": self.filter,
            "edit": None if self.edit is None else self.edit.row,
            "rate": self.rate,
            "dryRun": self.dry_run,
            "maxReturned": self.max_returned,
            "maxReturnedShare": self.max_share,
            "skipRefused": self.skip_refused,
            "by": self.by,
            "method": self.method,
            "original": self.original,
            "created": self.created,
        }


def spec_of(row: Row) -> Spec:
    """Return the specification from its row."""
    return Spec(
        row["kind"],
        parse_topic(row["topic"]),
        row["subscription"],
        None if row["target"] is None else parse_topic(row["target"]),
        row["filter"],
        read_edit(row["edit"]),
        row["rate"],
        row["dryRun"],
        row["maxReturned"],
        row["maxReturnedShare"],
        row["skipRefused"],
        row["by"],
        row["method"],
        row["original"],
        row["created"],
    )


def read_spec(value: Any, principal: Principal | None, now: Now) -> Spec:
    """Parse the specification in a request. Raises Unprocessable."""
    if not isinstance(value, dict):
        raise Unprocessable('A job must be a JSON object such as {"kind": "dlq-replay", "topic": "orders-billing-DLQ"}')
    unknown = [name for name in value if name not in _FIELDS]
    if unknown:
        raise Unprocessable(f"Unknown field {unknown[0]!r} of a job; fields: {', '.join(_FIELDS)}")
    kind = value.get("kind")
    if kind not in KINDS:
        raise Unprocessable(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    text = _text(value, "filter") or ""
    if len(text) > _FILTER_MAX:
        raise Unprocessable(f"filter must not exceed {_FILTER_MAX} characters")
    parse_filter(text, now.wall)
    target, edit = _text(value, "target"), read_edit(value.get("edit"))
    if kind == DROP and (target is not None or edit is not None):
        raise Unprocessable("A job that drops messages cannot have a target or an edit")
    topic = _topic(_text(value, "topic"), "topic")
    return Spec(
        kind,
        topic,
        _text(value, "subscription") or "",
        None if target is None else _topic(target, "target"),
        text,
        edit,
        _number(value, "rate", RATE if kind == REPLAY else 0.0, RATE_MAX),
        _flag(value, "dryRun"),
        int(_number(value, "maxReturned", RETURNED_MAX, 2**31)),
        _number(value, "maxReturnedShare", SHARE_MAX, 1.0),
        _flag(value, "skipRefused"),
        "" if principal is None else principal.role,
        "" if principal is None else principal.method,
        "" if principal is None else principal.original,
        now.wall,
    )


def _text(value: dict[str, Any], name: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise Unprocessable(f"{name} must be a string")
    return found or None


def _flag(value: dict[str, Any], name: str) -> bool:
    found = value.get(name)
    if found is not None and not isinstance(found, bool):
        raise Unprocessable(f"{name} must be true or false")
    return bool(found)


def _number(value: dict[str, Any], name: str, default: float, most: float) -> float:
    found = value.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= most:
        raise Unprocessable(f"{name} must be a number from 0 to {most:g}")
    return float(found)


def _topic(text: str | None, what: str) -> TopicName:
    if text is None:
        raise Unprocessable(f"{what} is required: the name of a topic")
    try:
        name = parse_topic(text)
    except InvalidTopicName as error:
        raise Unprocessable(f"{what}: {error}") from None
    if name.domain != PERSISTENT:
        raise Unprocessable(f"{what}: {name} is non-persistent and stores no messages")
    return name


@dataclass
class JobCounts:
    """Message counts of a job."""

    seen: int = 0
    done: int = 0
    """Replayed or dropped; in a dry run those that would be."""
    skipped: int = 0
    """Excluded by the filter."""
    failed: int = 0
    """Could not be replayed, and are kept."""
    returned: int = 0
    """Replayed messages that became dead letters again, counted per subscription."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Failed messages by reason."""
    targets: dict[str, int] = field(default_factory=dict)
    """Done messages by target topic."""
    returned_in: dict[str, int] = field(default_factory=dict)
    """Returned messages by dead letter topic."""

    def tally(self, into: dict[str, int], name: str, count: int) -> None:
        """Add to the count of ``name``, or to OTHERS above TOLD_MAX names."""
        name = name if name in into or len(into) < TOLD_MAX else OTHERS
        into[name] = into.get(name, 0) + count

    def copy(self) -> "JobCounts":
        """Return a copy."""
        numbers = self.seen, self.done, self.skipped, self.failed, self.returned
        return JobCounts(*numbers, dict(self.reasons), dict(self.targets), dict(self.returned_in))


@dataclass
class JobProgress:
    """Progress of a job: its current part, the last entry processed there, and the counts."""

    part: int = 0
    at: Position = NOWHERE
    counts: JobCounts = field(default_factory=JobCounts)
    chunks: frozenset[str] = frozenset()
    """UUIDs of chunked messages that are partly done; their other chunks follow, even after the end of the part."""

    def copy(self) -> "JobProgress":
        """Return a copy."""
        return JobProgress(self.part, self.at, self.counts.copy(), self.chunks)


class Job:
    """One job."""

    def __init__(self, number: int, spec: Spec, parts: list[JobPart], total: int) -> None:
        self.number = number
        self.spec = spec
        self.parts = parts
        self.total = total
        """Messages to examine when it was created."""
        self.state = RUNNING
        self.error = ""
        """Why it stopped, or what it waits for."""
        self.progress = JobProgress()
        self.watched: dict[str, Position] = {}
        """Last position checked for returned messages, by topic; for parts only once past their end."""
        self.forgiven = (0, 0)
        """Returned and done messages when it was last resumed after a trip."""
        self.started = spec.created
        self.ended = 0

    @property
    def moves(self) -> bool:
        """Whether it changes anything, which a dry run does not."""
        return not self.spec.dry_run

    def task(self, source: str, most: int) -> Task:
        """Return the task for the messages of one part."""
        spec = self.spec
        target = None if spec.target is None else str(spec.target)
        wanted = parse_filter(spec.filter, spec.created)
        return Task(self.number, source, spec.kind == DROP, target, wanted, spec.edit, most)

    # Rows

    @property
    def asked_row(self) -> Row:
        """The row that is written once."""
        parts = [[part.topic, *part.end] for part in self.parts]
        return {"spec": self.spec.row, "parts": parts, "total": self.total}

    @property
    def row(self) -> Row:
        """The row with its state and progress."""
        progress, counts = self.progress, self.progress.counts
        return {
            "state": self.state,
            "error": self.error,
            "part": progress.part,
            "at": list(progress.at),
            "chunks": sorted(progress.chunks),
            "watched": {name: list(at) for name, at in self.watched.items()},
            "forgiven": list(self.forgiven),
            "seen": counts.seen,
            "done": counts.done,
            "skipped": counts.skipped,
            "failed": counts.failed,
            "returned": counts.returned,
            "reasons": counts.reasons,
            "targets": counts.targets,
            "returnedIn": counts.returned_in,
            "ended": self.ended,
        }

    # The API

    def as_json(self) -> dict[str, Any]:
        """Return the job for the Admin API."""
        spec, counts = self.spec, self.progress.counts
        return {
            "id": self.number,
            "kind": spec.kind,
            "state": self.state,
            "topic": str(spec.topic),
            "subscription": spec.subscription,
            "target": None if spec.target is None else str(spec.target),
            "filter": spec.filter,
            "edit": None if spec.edit is None else spec.edit.row,
            "rate": spec.rate,
            "dryRun": spec.dry_run,
            "maxReturned": spec.max_returned,
            "maxReturnedShare": spec.max_share,
            "skipRefused": spec.skip_refused,
            "total": self.total,
            "seen": counts.seen,
            "done": counts.done,
            "skipped": counts.skipped,
            "failed": counts.failed,
            "returned": counts.returned,
            "reasons": counts.reasons,
            "targets": counts.targets,
            "returnedIn": counts.returned_in,
            "started": self.started,
            "ended": self.ended or None,
            "by": spec.by or None,
            "error": self.error or None,
        }


def job_of(number: int, asked: Row, row: Row) -> Job:
    """Return a job from its rows."""
    parts = [JobPart(topic, Position(ledger, entry)) for topic, ledger, entry in asked["parts"]]
    job = Job(number, spec_of(asked["spec"]), parts, asked["total"])
    job.state, job.error, job.ended = row["state"], row["error"], row["ended"]
    job.watched = {name: Position(*at) for name, at in row["watched"].items()}
    job.forgiven = row["forgiven"][0], row["forgiven"][1]
    names = ("seen", "done", "skipped", "failed", "returned", "reasons", "targets", "returnedIn")
    counts = JobCounts(*[row[name] for name in names])
    job.progress = JobProgress(row["part"], Position(*row["at"]), counts, frozenset(row["chunks"]))
    return job
