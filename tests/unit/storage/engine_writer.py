"""A process that writes a data directory: ledgers are created, closed and deleted, volumes are packed."""

import json
import sys
import time
from pathlib import Path

from pulsarbox.storage.catalog import ledger_key, topic_key
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Meta, pack_entry, pack_meta
from tests.unit.storage.batches import entry_of
from tests.unit.storage.directories import TOPIC, ledger_row

TOPIC_ID = 1
_ENTRIES = 20
_CHECKPOINT_EVERY = 7


class Writer:
    """Writer of one ledger after another, in four batches each; three of four ledgers are deleted soon."""

    def __init__(self, path: Path, size: int = 400) -> None:
        self.engine = LmdbEngine(path, volume_size=200_000, index_flush_entries=50)
        self.position = self.engine.recover().next_position
        self.size = size
        self.rows: dict[bytes, bytes | None] = {}
        self.dropped: list[int] = []
        self.alive: list[int] = []
        self.ledger = 10
        self.steps: list[str] = []

    def round(self) -> None:
        """Write a ledger and delete an old one; at intervals write a checkpoint and reclaim all space."""
        self.ledger += 1
        if self.ledger == 11:
            self._commit([], {topic_key(TOPIC): {"id": TOPIC_ID, "created": 1}})
        self._commit([], {ledger_key(TOPIC_ID, self.ledger): ledger_row(0, 0)})
        for first in range(0, _ENTRIES, 5):
            self._commit(list(range(first, first + 5)), {})
        rows: dict[str, object] = {ledger_key(TOPIC_ID, self.ledger): ledger_row(_ENTRIES, 9)}
        self.alive.append(self.ledger)
        if len(self.alive) > 12:
            dead = [ledger for ledger in self.alive[:8] if ledger % 4]
            self.alive = [ledger for ledger in self.alive if ledger not in dead]
            rows |= dict.fromkeys([ledger_key(TOPIC_ID, ledger) for ledger in dead])
            self.dropped += dead
        self._commit([], rows)
        if self.ledger % _CHECKPOINT_EVERY == 0:
            self.engine.checkpoint(Checkpoint(self.position - 1, self.rows, tuple(self.dropped)))
            self.rows, self.dropped = {}, []
            while (step := self.engine.reclaim()) is not None:
                self.steps.append(step.what)

    def _commit(self, entries: list[int], rows: dict[str, object]) -> None:
        batch = Batch(self.position)
        for key, row in rows.items():
            value = None if row is None else json.dumps(row).encode()
            batch.add(pack_meta(Meta(key.encode(), value)))
            self.rows[key.encode()] = value
        for entry_id in entries:
            entry = entry_of(self.ledger, entry_id, self.size)
            batch.add_entry(self.ledger, entry_id, pack_entry(entry), entry.body)
        self.engine.commit(batch)
        self.position += 1


def main(path: Path) -> None:
    """Write until killed."""
    writer = Writer(path)
    while True:
        writer.round()
        if writer.ledger == 60:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        # Slow enough that the data to check does not grow with the duration of the check.
        time.sleep(0.02 if writer.ledger < 60 else 0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
