"""Statistics of an ensemble: its members, the segment being written, what lacks copies, and the repair of it."""

from typing import NamedTuple

FRAGMENTS_MAX = 1000
"""Under-replicated fragments that a status lists."""


class ScrubStatus(NamedTuple):
    """Progress of verifying all entries of a member."""

    done_bytes: int
    total_bytes: int
    """0 if no scrub is running."""
    found: int
    """Runs of damaged entries found since the start of the process, each once while it stays damaged."""
    started: int
    """Milliseconds since 1970; 0 if none has run."""
    finished: int
    """The end of the last complete scrub."""


class MemberStatus(NamedTuple):
    """One member at present."""

    name: str
    member_id: str
    state: str
    """One of MemberState."""
    why: str
    """The error that led to its state; empty if active."""
    since: int
    """When it entered its state, in milliseconds since 1970."""
    device: int
    """The number of its device, 0 if unknown."""
    shares_device_with: tuple[str, ...]
    """Names of the members on the same device."""
    bytes_used: int
    bytes_free: int
    ledgers: int
    """Ledgers of which it has entries, as of the last audit."""
    entries: int
    commits: int
    commit_errors: int
    read_errors: int
    queue: int
    """Batches that wait to be written."""
    oldest_write_seconds: float
    """Age of the oldest unfinished write."""
    scrub: ScrubStatus


class Fragment(NamedTuple):
    """Consecutive entries of a ledger with too few copies."""

    ledger_id: int
    first: int
    end: int
    """Exclusive."""
    have: tuple[str, ...]
    """Names of the members that have them."""
    want: int
    """Number of copies that the policy of the topic asks for."""


class SegmentStatus(NamedTuple):
    """Batches in a row that are written to the same members."""

    number: int
    first_position: int
    members: tuple[str, ...]
    """Names of the write set, in order."""


class RepairStatus(NamedTuple):
    """Progress of copying fragments."""

    bytes_done: int
    """Since the start of the process."""
    fragments_left: int
    entries_left: int
    last_error: str


class EnsembleStatus(NamedTuple):
    """A consistent snapshot of an ensemble."""

    generation: int
    segment: SegmentStatus
    members: tuple[MemberStatus, ...]
    under_replicated: tuple[Fragment, ...]
    """At most FRAGMENTS_MAX."""
    under_replicated_count: int
    audited: int
    """When the last audit ended, in milliseconds since 1970; 0 if none has."""
    repair: RepairStatus
    copies_wanted: int = 1
    """The highest number of copies that a policy asks for, of the ledgers of the last audit."""


class MemberEvent(NamedTuple):
    """A change worth an event and a line in the log."""

    kind: str
    """``member-lost``, ``member-full``, ``member-late``, ``member-fenced``, ``member-joined``, ``member-left``,
    ``fragments-repaired``, ``entries-damaged``, ``segment`` or ``shared-device``.
    """
    member: str
    text: str
    """One sentence for people."""
