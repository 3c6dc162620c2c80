"""Operations begun and acknowledged at the moment of a cut, gathered from the marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulsarbox.storage.record import Entry, unpack_batch
from tests.powercut import marks


class Mark(NamedTuple):
    """State of a checkpoint: all rows, and all ledgers dropped so far."""

    position: int
    rows: dict[bytes, bytes]
    dropped: frozenset[int]


class Stored(NamedTuple):
    """An entry, and the position of its batch."""

    position: int
    entry: Entry


@dataclass
class Story:
    """Operations so far, updated mark by mark."""

    options: dict[str, Any] = field(default_factory=dict)
    values: list[bytes] = field(default_factory=list)
    """Values of the batches begun, from position 1 on."""
    done: int = 0
    """Position of the last acknowledged batch."""
    checkpoints: list[Mark] = field(default_factory=lambda: [Mark(0, {}, frozenset())])
    """Checkpoints begun, preceded by an empty one."""
    checkpointed: int = 0
    """Index of the last checkpoint that has returned."""
    ledgers: dict[int, list[Stored]] = field(default_factory=dict)
    """Entries of the batches begun, by ledger."""
    checkpoints_done: int = 0
    """Number of checkpoints that have returned, over all lives."""
    reclaimed: list[str] = field(default_factory=list)
    """Reclaim steps that have returned."""

    def take(self, data: bytes) -> None:
        """Apply the next mark."""
        kind, facts, blob = marks.read_mark(data)
        if kind == marks.OPTIONS:
            self.options = facts
        elif kind == marks.BEGUN:
            assert facts["position"] == len(self.values) + 1
            self.values.append(blob)
            for _, record in unpack_batch(blob):
                if isinstance(record, Entry):
                    self.ledgers.setdefault(record.ledger_id, []).append(Stored(facts["position"], record))
        elif kind == marks.DONE:
            self.done = facts["position"]
        elif kind == marks.CHECKPOINT:
            before = self.checkpoints[-1]
            rows = dict(before.rows)
            for key, value in marks.rows_from_json(facts["rows"]).items():
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
            self.checkpoints.append(Mark(facts["position"], rows, before.dropped | set(facts["dropped"])))
        elif kind == marks.CHECKPOINTED:
            self.checkpointed = len(self.checkpoints) - 1
            self.checkpoints_done += 1
        elif kind == marks.RECLAIMED:
            self.reclaimed.append(facts["what"])
        elif kind == marks.REOPENED:
            self._reopened(facts["last"], facts["mark"], marks.rows_from_json(facts["rows"]))

    def find_checkpoint(self, mark: int, rows: dict[bytes, bytes]) -> Mark | None:
        """Return the legal checkpoint with this position and these rows, or None.

        Of two checkpoints with the same rows, the later one is returned: the ledgers that it dropped may be deleted.
        """
        found = [one for one in self.checkpoints[self.checkpointed :] if (one.position, one.rows) == (mark, rows)]
        return found[-1] if found else None

    def live_ledgers(self) -> list[tuple[int, int]]:
        """Return the ledgers that no checkpoint has dropped, each with its first entry."""
        dropped = self.checkpoints[-1].dropped
        return [(number, stored[0].entry.entry_id) for number, stored in self.ledgers.items() if number not in dropped]

    def _reopened(self, last: int, mark: int, rows: dict[bytes, bytes | None]) -> None:
        """Resolve the operations that were in progress at the cut: each is complete or has no effect."""
        checkpoint = self.find_checkpoint(mark, {key: value for key, value in rows.items() if value is not None})
        if checkpoint is None or not self.done <= last <= len(self.values):
            raise AssertionError(f"recovered up to {last} with a checkpoint at {mark}: that is no legal state")
        self.checkpoints, self.checkpointed, self.done = [checkpoint], 0, last
        del self.values[last:]
        for number, stored in list(self.ledgers.items()):
            self.ledgers[number] = [one for one in stored if one.position <= last]
            if not self.ledgers[number]:
                del self.ledgers[number]
