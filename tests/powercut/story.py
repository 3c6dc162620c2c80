"""What had been begun and what had been acknowledged at the moment of a cut: gathered from the marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulsarbox.storage.record import Entry, unpack_batch
from tests.powercut import marks


class Mark(NamedTuple):
    """The state that a checkpoint leaves: all rows, and all ledgers dropped so far."""

    position: int
    rows: dict[bytes, bytes]
    dropped: frozenset[int]


class Stored(NamedTuple):
    """An entry, and the batch that holds it."""

    position: int
    entry: Entry


@dataclass
class Story:
    """Grows mark by mark."""

    options: dict[str, Any] = field(default_factory=dict)
    values: list[bytes] = field(default_factory=list)
    """Of the batches begun, from position 1 on."""
    done: int = 0
    """The last batch acknowledged."""
    checkpoints: list[Mark] = field(default_factory=lambda: [Mark(0, {}, frozenset())])
    """Of the checkpoints begun, an empty one before them."""
    checkpointed: int = 0
    """Which of them was the last to return."""
    ledgers: dict[int, list[Stored]] = field(default_factory=dict)
    """The entries of the batches begun."""
    checkpoints_done: int = 0
    """How many checkpoints have returned, over all lives."""
    reclaimed: list[str] = field(default_factory=list)
    """The steps of reclaiming that have returned."""

    def take(self, data: bytes) -> None:
        """Take over the next mark."""
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
        """The checkpoint that a store has which says this, if it may have it.

        Of two with the same rows the later one has dropped more: what it dropped may be gone.
        """
        found = [one for one in self.checkpoints[self.checkpointed :] if (one.position, one.rows) == (mark, rows)]
        return found[-1] if found else None

    def live_ledgers(self) -> list[tuple[int, int]]:
        """The ledgers that no checkpoint has dropped, with their first entries."""
        dropped = self.checkpoints[-1].dropped
        return [(number, stored[0].entry.entry_id) for number, stored in self.ledgers.items() if number not in dropped]

    def _reopened(self, last: int, mark: int, rows: dict[bytes, bytes | None]) -> None:
        """What was under way at the cut is decided: it is there, or it has never been."""
        checkpoint = self.find_checkpoint(mark, {key: value for key, value in rows.items() if value is not None})
        if checkpoint is None or not self.done <= last <= len(self.values):
            raise AssertionError(f"recovered up to {last} with a checkpoint at {mark}: that is no legal state")
        self.checkpoints, self.checkpointed, self.done = [checkpoint], 0, last
        del self.values[last:]
        for number, stored in list(self.ledgers.items()):
            self.ledgers[number] = [one for one in stored if one.position <= last]
            if not self.ledgers[number]:
                del self.ledgers[number]
