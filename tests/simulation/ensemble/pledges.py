"""The model of an ensemble: what was confirmed, which of its copies were destroyed, and what must survive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulsarbox.storage.format import BATCH_HEADER
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry
from tests.simulation.model.history import Violation


class Void(Exception):
    """So much was destroyed that nothing can be said about the rest."""


class Quorums(NamedTuple):
    """Ensemble size, write quorum and ack quorum."""

    ensemble: int
    write: int
    ack: int


@dataclass
class Pledge:
    """A batch that was begun."""

    position: int
    value: bytes
    entries: list[Entry]
    quorums: Quorums
    """The highest of its parts."""
    ack_min: int
    confirmed: int = 0
    """The highest ack quorum of its parts that have receipts; 0: none has."""
    destroyed: set[str] = field(default_factory=set)
    """Directories whose copy was destroyed since all copies were complete."""

    def entries_survive(self, ack: int) -> bool:
        """Return whether its entries of a ledger with this ack quorum must survive.

        A full directory drops the copies that the batch has only because of other ledgers.
        """
        return len(self.destroyed) < min(self.confirmed, ack)

    def survives_without(self, absent: set[str]) -> bool:
        """Return whether a start must find it although some directories are absent."""
        return len(self.destroyed | absent) < self.confirmed


class Mark(NamedTuple):
    """State of a checkpoint: all rows."""

    position: int
    rows: Mapping[bytes, bytes]


class Pledges:
    """All batches begun, and the checkpoints."""

    def __init__(self) -> None:
        self.by_position: dict[int, Pledge] = {}
        self.last = 0
        """Position of the last batch that was begun or confirmed."""
        self.ledgers: dict[int, list[tuple[int, Entry]]] = {}
        """Position and entry of all entries of the live ledgers."""
        self.acks: dict[int, int] = {}
        """Ack quorums of the ledgers."""
        self.checkpoints: list[Mark] = [Mark(0, {})]
        """Checkpoints that a start may find; the first one is the last that has returned."""
        self.ack_min = 1
        """The lowest ack quorum of a confirmed batch; 1 until one is confirmed."""
        self._is_known = False
        """Whether one was confirmed."""
        self.away: set[str] = set()
        """Directories that were destroyed, even partly, or unavailable, since all copies were complete."""

    # Commits

    def begin(self, batch: Batch, entries: Iterable[Entry]) -> Pledge:
        """Add a batch that is about to be committed."""
        quorums = Quorums(batch.ensemble, batch.write_quorum, batch.ack_quorum)
        pledge = Pledge(batch.position, batch.value(), list(entries), quorums, batch.ack_quorum_min)
        self.by_position[batch.position] = pledge
        self.last = batch.position
        for entry in pledge.entries:
            self.ledgers.setdefault(entry.ledger_id, []).append((batch.position, entry))
        return pledge

    def refused(self, pledge: Pledge) -> None:
        """Remove a batch whose commit failed: nothing of it may be seen again."""
        self.cut(pledge.position - 1)

    def confirm(self, pledge: Pledge, ack: int, holders: Iterable[str]) -> None:
        """Note a receipt for the parts of a batch that ask for ``ack`` copies. Raises Violation if there are fewer."""
        copies = sorted(holders)
        if not pledge.entries:  # acknowledgements and metadata go on while one directory is writable
            ack = max(1, min(ack, len(copies)))
        if len(copies) < ack:
            text = f"batch {pledge.position} is confirmed for an ack quorum of {ack}, but only {copies} have it"
            raise Violation("quorum", text)
        pledge.confirmed = max(pledge.confirmed, ack)
        lowest = min(pledge.ack_min, ack)
        self.ack_min = min(self.ack_min, lowest) if self._is_known else lowest
        self._is_known = True

    # Destruction

    def destroy(self, name: str, positions: Iterable[int] | None = None) -> None:
        """Note that copies of a directory were destroyed; None: all of them."""
        self.away.add(name)
        for position in list(self.by_position) if positions is None else positions:
            if position in self.by_position:
                self.by_position[position].destroyed.add(name)

    def whole(self) -> None:
        """Note that all copies are complete again."""
        self.away.clear()
        for pledge in self.by_position.values():
            pledge.destroyed.clear()

    @property
    def is_safe(self) -> bool:
        """Return whether a start must succeed: fewer directories than the lowest ack quorum were hit."""
        return len(self.away) < self.ack_min

    # Starts

    def started(self, last: int, mark: int, values: list[bytes], rows: Mapping[bytes, bytes], absent: set[str]) -> None:
        """Compare a recovered log with the model, and cut the model where the log ends. Raises Violation, Void."""
        for position, value in enumerate(values, mark + 1):
            pledge = self.by_position.get(position)
            if pledge is None or not _same(pledge, value):
                self._broken(
                    pledge, absent, "whole-batches", f"batch {position} of the log is not what was committed last"
                )
        gone = [each for each in self.by_position.values() if each.position > last and each.survives_without(absent)]
        if gone:
            raise Violation(
                "nothing-lost", f"the log ends at {last}, but {[_text(each) for each in gone[:5]]} are gone"
            )
        found = [one for one in self.checkpoints if one.position == mark and one.rows == rows]
        if not found:
            legal = [(one.position, len(one.rows)) for one in self.checkpoints]
            self._broken(
                None,
                absent,
                "checkpoints",
                f"checkpoint at {mark} with {len(rows)} rows, where one of {legal} is right",
            )
        self.checkpoints = found[-1:]
        self.cut(last)

    def _broken(self, pledge: Pledge | None, absent: set[str], rule: str, text: str) -> None:
        """Raise Violation, or Void if what is wrong may be wrong."""
        if self.is_safe or (pledge is not None and pledge.survives_without(absent)):
            raise Violation(rule, text)
        raise Void(text)

    def cut(self, last: int) -> None:
        """Remove the batches after ``last``."""
        for position in [position for position in self.by_position if position > last]:
            pledge = self.by_position.pop(position)
            for ledger_id in {entry.ledger_id for entry in pledge.entries}:
                if ledger_id in self.ledgers:
                    kept = [each for each in self.ledgers[ledger_id] if each[0] <= last]
                    self.ledgers[ledger_id] = kept
        self.last = last

    # Reads

    def read(self, ledger_id: int, first: int, entries: list[Entry]) -> None:
        """Compare the answer to a read with the model. Raises Violation."""
        known = {entry.entry_id: entry for _, entry in self.ledgers[ledger_id]}
        for entry_id, entry in enumerate(entries, first):
            if known.get(entry_id) != entry:
                raise Violation("order", f"entry {ledger_id}:{entry_id} is read as {entry}, not {known.get(entry_id)}")

    def unreadable(self, ledger_id: int, entry_id: int, why: str) -> None:
        """Note that an entry cannot be read. Raises Violation if it must survive."""
        for position, entry in self.ledgers.get(ledger_id, ()):
            if entry.entry_id != entry_id:
                continue
            pledge = self.by_position[position]
            if pledge.entries_survive(self.acks[ledger_id]):
                raise Violation("nothing-lost", f"entry {ledger_id}:{entry_id} of {_text(pledge)}: {why}")

    def drop(self, ledger_ids: Iterable[int]) -> None:
        """Remove deleted ledgers."""
        for ledger_id in ledger_ids:
            self.ledgers.pop(ledger_id, None)

    def forget_before(self, position: int) -> None:
        """Remove batches that a checkpoint covers and of which no live ledger has entries."""
        live = {each for entries in self.ledgers.values() for each, _ in entries}
        for each in [each for each in self.by_position if each <= position and each not in live]:
            del self.by_position[each]


def _same(pledge: Pledge, value: bytes) -> bool:
    """Return whether a batch of the log is the one pledged; the bodies of entries may be damaged where reported."""
    if pledge.destroyed:
        return value[: BATCH_HEADER.size] == pledge.value[: BATCH_HEADER.size]
    return value == pledge.value


def _text(pledge: Pledge) -> str:
    told = f"batch {pledge.position}, confirmed for {pledge.confirmed}"
    return f"{told}, destroyed in {sorted(pledge.destroyed)}" if pledge.destroyed else told
