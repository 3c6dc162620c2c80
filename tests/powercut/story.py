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
    reclaimed: list[str] = field(default_factory=list)

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
        elif kind == marks.RECLAIMED:
            self.reclaimed.append(facts["what"])
