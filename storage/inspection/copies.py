"""Several data directories together: which entries exist, and how many copies of each there are. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pulsarbox.storage.inspection.findings import Finding, damage
from pulsarbox.storage.lmdb.coverage import merged, missing

RESTORE = "make the missing directories available, or restore a backup with `pulsarbox restore BACKUPS DIR`"
_LISTED_MAX = 20


class CopiedRun(NamedTuple):
    """Consecutive entries of a ledger in one directory, and the bytes of their records."""

    first: int
    entries: int
    bytes: int

    @property
    def end(self) -> int:
        """The first entry after them."""
        return self.first + self.entries


class DirectoryRuns:
    """The entries in one directory, and the ledgers that its rows list."""

    def __init__(self) -> None:
        self.runs: dict[int, list[CopiedRun]] = {}
        self.expected: dict[int, int] = {}
        """The number of entries of each ledger; -1 if it is not known, because the ledger is being written."""

    def take(self, line: Sequence[Any]) -> None:
        """Take a line of a child process: ``["run", ledger, first, entries, bytes]`` or ``["ledger", id, entries]``."""
        if line[0] == "run":
            self.runs.setdefault(line[1], []).append(CopiedRun(*line[2:5]))
        elif line[0] == "ledger":
            self.expected[line[1]] = line[2]


class LogicalSize(NamedTuple):
    """The entries of a box, each counted once."""

    entries: int
    bytes: int
    copies: dict[int, int]
    """The number of entries by the number of their copies."""


def logical_size(directories: Sequence[DirectoryRuns]) -> LogicalSize:
    """Return the size of what the directories store together. Bytes of parts of a run are estimated."""
    known = {ledger for each in directories for ledger in each.expected}
    size, copies = 0.0, Counter[int]()
    for ledger in known:
        having = [_disjoint(each.runs.get(ledger, ())) for each in directories]
        seen: list[tuple[int, int]] = []
        for runs in having:
            for run in runs:
                new = missing((run.first, run.end), seen)
                size += run.bytes * sum(end - first for first, end in new) / run.entries
            seen = merged([*seen, *((run.first, run.end) for run in runs)])
        copies.update(_copies([(run.first, run.end) for runs in having for run in runs]))
    return LogicalSize(sum(copies.values()), round(size), dict(sorted(copies.items())))


def lost_entries(directories: Sequence[DirectoryRuns]) -> list[Finding]:
    """Return the entries that exist by the rows of a directory, and are in none."""
    expected: dict[int, int] = {}
    for each in directories:
        for ledger, entries in each.expected.items():
            expected[ledger] = max(entries, expected.get(ledger, -1))
    found: list[Finding] = []
    for ledger, entries in sorted(expected.items()):
        held = merged((run.first, run.end) for each in directories for run in each.runs.get(ledger, ()))
        for first, end in missing((0, entries), held) if entries > 0 else ():
            where = f"ledger {ledger}, entries {first} to {end - 1}"
            found.append(damage(where, "no data directory has a copy", RESTORE, ledger, first))
    return found[:_LISTED_MAX]


def _disjoint(runs: Iterable[CopiedRun]) -> list[CopiedRun]:
    """Return runs without entries that are in another one: a volume being packed is stored twice for a moment."""
    seen: list[tuple[int, int]] = []
    kept: list[CopiedRun] = []
    for run in sorted(runs):
        for first, end in missing((run.first, run.end), seen):
            kept.append(CopiedRun(first, end - first, run.bytes * (end - first) // run.entries))
        seen = merged([*seen, (run.first, run.end)])
    return kept


def _copies(runs: Iterable[tuple[int, int]]) -> Counter[int]:
    """Return the number of entries by how many of the runs they are in."""
    ends = sorted(each for first, end in runs for each in ((first, 1), (end, -1)))
    found, depth, at = Counter[int](), 0, 0
    for entry, step in ends:
        if depth:
            found[depth] += entry - at
        depth, at = depth + step, entry
    return +found
