"""Opens an image as the daemon does after a power cut, and compares it with the acknowledged operations."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Engine, ReadRequest
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, Meta, pack_entry, pack_meta
from tests.powercut.story import Mark, Story
from tests.powercut.workload import rows_of
from tests.unit.storage.batches import entry_of

DATA: Final = "data"
"""Data directory, relative to the root of the recording."""
NEW_LEDGER: Final = 1 << 40
AFTER: Final = b"after the cut"
_STEPS_MAX: Final = 200


class Violation(Exception):
    """An image has lost or corrupted data."""


class Checked:
    """One opened image."""

    def __init__(self, folder: Path, story: Story, dice: random.Random) -> None:
        self._folder = folder
        self._path = folder / DATA
        self._story = story
        self._dice = dice

    def check(self) -> None:
        """Recover, read everything, continue to write, reclaim, and recover again. Raises Violation."""
        engine = self._open()
        try:
            checkpoint, last = self._recovered(engine)
            self._read_all(engine, checkpoint.dropped, last)
            dropped = self._go_on(engine, checkpoint, last)
        finally:
            engine.close()
        engine = self._open()
        try:
            self._recovered_again(engine, checkpoint, last + 1)
            self._read_all(engine, dropped, last)
            self._read_new(engine)
        finally:
            engine.close()

    def _open(self) -> Engine:
        return LmdbEngine(self._path, **self._story.options)

    def _recovered(self, engine: Engine) -> tuple[Mark, int]:
        """Return the recovered checkpoint and the last recovered batch."""
        story = self._story
        recovery = engine.recover()
        rows, batches, last = rows_of(recovery), list(recovery.batches), recovery.next_position - 1
        if not story.done <= last <= len(story.values):
            raise Violation(
                f"the log ends at batch {last}: {story.done} were acknowledged, {len(story.values)} were begun"
            )
        mark = last - len(batches)
        for position, value in enumerate(batches, mark + 1):
            if value != story.values[position - 1]:
                raise Violation(f"batch {position} is not what was committed")
        found = story.find_checkpoint(mark, rows)
        if found is None:
            raise Violation(
                f"checkpoint at {mark} with {len(rows)} rows, where one of"
                f" {[(one.position, len(one.rows)) for one in story.checkpoints[story.checkpointed :]]} should be"
            )
        if mark > story.done:
            raise Violation(f"the checkpoint covers batch {mark}, only {story.done} were acknowledged")
        return found, last

    def _read_all(self, engine: Engine, dropped: Iterable[int], last: int) -> None:
        gone = set(dropped)
        for ledger_id, stored in self._story.ledgers.items():
            if ledger_id in gone:
                continue
            entries = [one.entry for one in stored if one.position <= last]
            at = 0
            while at < len(entries):
                size = self._dice.choice((0, 5_000, 1 << 20))
                request = ReadRequest(1, ledger_id, entries[at].entry_id, entries[-1].entry_id + 9, size)
                got = engine.read(request)
                if not got or got != entries[at : at + len(got)]:
                    raise Violation(f"entry {ledger_id}:{entries[at].entry_id} is not as committed, or one behind it")
                at += len(got)
            self._reads_nothing(engine, ledger_id, stored[-1].entry.entry_id + 1)
            if len(entries) < len(stored):
                self._reads_nothing(engine, ledger_id, stored[len(entries)].entry.entry_id)

    def _reads_nothing(self, engine: Engine, ledger_id: int, entry_id: int) -> None:
        try:
            got = engine.read(ReadRequest(1, ledger_id, entry_id, entry_id, 1))
        except PersistenceError as error:
            if "does not exist" not in str(error):
                raise
            return
        raise Violation(f"entry {ledger_id}:{entry_id} was never acknowledged with its batch, but {got} is read")

    def _go_on(self, engine: Engine, checkpoint: Mark, last: int) -> set[int]:
        """Commit, drop a ledger, and reclaim all volumes that can be; return the dropped ledgers."""
        batch = Batch(last + 1)
        entry = self._new_entry()
        batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
        batch.add(pack_meta(Meta(b"key", b"value")))
        engine.commit(batch)
        live = sorted(self._story.ledgers.keys() - checkpoint.dropped)
        fresh = self._dice.sample(live, min(len(live), self._dice.choice((0, 1, 3))))
        engine.checkpoint(Checkpoint(last + 1, {AFTER: b"row"}, tuple(fresh)))
        dropped = {*checkpoint.dropped, *fresh}
        for _ in range(_STEPS_MAX):
            if engine.reclaim() is None:
                break
        else:
            raise Violation(f"{_STEPS_MAX} steps of reclaiming, and no end")
        self._read_all(engine, dropped, last)
        self._read_new(engine)
        return dropped

    def _recovered_again(self, engine: Engine, checkpoint: Mark, last: int) -> None:
        recovery = engine.recover()
        rows, batches = rows_of(recovery), list(recovery.batches)
        if (batches, recovery.next_position) != ([], last + 1):
            raise Violation(
                f"after one more batch the log ends at {recovery.next_position - 1}, {len(batches)} of it behind the"
                f" checkpoint, where {last} and none are right"
            )
        if rows != checkpoint.rows | {AFTER: b"row"}:
            raise Violation(f"after one more checkpoint there are {len(rows)} rows, not what they should be")

    def _read_new(self, engine: Engine) -> None:
        if engine.read(ReadRequest(1, NEW_LEDGER, 0, 0, 1)) != [self._new_entry()]:
            raise Violation("the entry written after the cut is not read back")

    def _new_entry(self) -> Entry:
        return entry_of(NEW_LEDGER, 0, 100)
