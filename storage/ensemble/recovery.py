"""Recovery: the log merged from the logs of all members. Pure.

The rule for the log after the last checkpoint: a batch that any valid copy has is part of the log. A batch without a
copy was never confirmed if fewer members that might have one are missing than its ack quorum; otherwise the box must
not start, because confirmed messages may be lost. A copy is valid if its member belonged to the ensemble when the batch
was decided: the membership records, for each member that left, the position from which its log is not valid.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.record import Entry, unpack_batch, verify_entry

HOLES_MAX = 1000
DAMAGED_MAX = 10_000
"""Positions after a damaged batch at which reading a log is tried again."""


class EnsembleIncomplete(PersistenceError):
    """Confirmed messages may be only in directories that are missing."""


class LogSource(NamedTuple):
    """The log of an open member."""

    name: str
    valid_before: int
    """Batches from this position on are not valid; 0 if all are."""
    batches: Callable[[int], Iterator[tuple[int, bytes]]]
    """See Member.batches."""


class MissingMember(NamedTuple):
    """A member whose directory is missing or cannot be read."""

    name: str
    valid_before: int
    """It may have batches before this position; 0 if it may have any."""


class DamagedLogBatch(NamedTuple):
    """A batch in the log of a member that cannot be read."""

    name: str
    error: str
    is_last: bool
    """Whether no later batch could be read."""


class Holes(NamedTuple):
    """The positions of a log that have a batch."""

    last: int
    """The last position, or the mark if there is none after it."""
    missing: tuple[int, ...]
    """Positions without a batch, at most HOLES_MAX, before ``last`` or before the membership in force began."""
    damage: tuple[DamagedLogBatch, ...]
    with_last: frozenset[str] = frozenset()
    """Names of the sources that have the last batch."""


def find_holes(sources: Sequence[LogSource], mark: int, first: int) -> Holes:
    """Read all logs after ``mark`` once, and return what is missing.

    ``first`` is the position at which the membership in force began: there is a batch at each position before it.
    """
    present: set[int] = set()
    damage: list[DamagedLogBatch] = []
    ends: dict[str, int] = {}
    for source in sources:
        for position, _ in readable(source, mark, damage.append):
            present.add(position)
            ends[source.name] = position
    last = max(present, default=mark)
    expected = range(mark + 1, max(last, first))
    missing = islice((position for position in expected if position not in present), HOLES_MAX)
    with_last = frozenset(name for name, end in ends.items() if end == last)
    return Holes(last, tuple(missing), tuple(damage), with_last)


def check_complete(holes: Holes, missing: Sequence[MissingMember], ack_quorum_min: int, first: int) -> None:
    """Raise EnsembleIncomplete if confirmed batches may be lost with the members that are missing.

    ``ack_quorum_min`` and ``first`` are of the membership in force. A damaged batch counts as a missing one.
    """
    suspects = {each.name for position in holes.missing for each in missing if may_have(each, position)}
    if holes.missing:
        at = holes.missing[0]
        raise _incomplete(f"batch {at} of the journal is in none of the directories", sorted(suspects), holes.damage)
    unknown = [each.name for each in missing if may_have(each, max(holes.last + 1, first))]
    damage = [each for each in holes.damage if each.is_last]
    if len(unknown) + len(damage) >= ack_quorum_min and (unknown or damage):
        raise _incomplete(
            f"messages that were acknowledged after batch {holes.last} may be lost", sorted(unknown), damage
        )


def may_have(member: MissingMember, position: int) -> bool:
    """Return whether a missing member may have a valid copy of a batch."""
    return not member.valid_before or position < member.valid_before


def _incomplete(what: str, names: Sequence[str], damage: Sequence[DamagedLogBatch]) -> EnsembleIncomplete:
    if not names:
        why = "".join(f"; {each.name}: {each.error}" for each in damage[:3])
        return EnsembleIncomplete(f"{what}{why}; restore a backup with `pulsarbox restore BACKUPS DIR`")
    listed = ", ".join(names)
    options = " ".join(f"--accept-loss-of {each}" for each in names)
    return EnsembleIncomplete(
        f"{what}: make {listed} available again, or accept the loss with `pulsarbox start {options}`"
    )


def readable(
    source: LogSource, after: int, damaged: Callable[[DamagedLogBatch], None] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the valid batches of a log after a position, and pass over damaged ones."""
    error = ""
    failures = 0
    while failures <= DAMAGED_MAX:
        try:
            for position, value in source.batches(after):
                if source.valid_before and position >= source.valid_before:
                    break
                if error and damaged is not None:
                    damaged(DamagedLogBatch(source.name, error, is_last=False))
                yield position, value
                after, failures, error = position, 0, ""
            break
        except PersistenceError as failure:
            error = error or str(failure)
            failures += 1
            after += 1
    if error and damaged is not None:
        damaged(DamagedLogBatch(source.name, error, is_last=True))


def merged(sources: Sequence[LogSource], mark: int, last: int) -> Iterator[bytes]:
    """Yield the batches after ``mark`` through ``last``, each from the first member that has it."""
    heads: list[tuple[Iterator[tuple[int, bytes]], tuple[int, bytes] | None]] = []
    for source in sources:
        batches = readable(source, mark)
        heads.append((batches, next(batches, None)))
    while True:
        position = min([head[0] for _, head in heads if head is not None], default=last + 1)
        if position > last:
            return
        yield next(head[1] for _, head in heads if head is not None and head[0] == position)
        heads = [(it, next(it, None) if head is not None and head[0] == position else head) for it, head in heads]


def last_batch(sources: Sequence[LogSource], last: int) -> bytes | None:
    """Return the last batch from the first source in which all of its entries are intact, None if there is none."""
    for source in sources:
        for position, value in readable(source, last - 1):
            if position == last and _is_intact(value):
                return value
    return None


def _is_intact(value: bytes) -> bool:
    try:
        for _, record in unpack_batch(value):
            if isinstance(record, Entry):
                verify_entry(record)
    except PersistenceError:
        return False
    return True
