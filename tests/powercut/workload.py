"""A recorded process: one engine, driven randomly through commits, checkpoints, reclaiming and restarts.

``python -m tests.powercut.workload PATH SEED STEPS LEDGERS``. Half of the seeds run everything in one thread; the
others have a housekeeper thread beside the committer, as the daemon has. LEDGERS lists the ledgers already in the
store, as JSON, each with its first entry.
"""

import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Engine, ReadRequest, Recovery
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import (
    Acked,
    AckedRange,
    BatchAcked,
    MarkDelete,
    Meta,
    Position,
    pack_acked,
    pack_batch_acked,
    pack_entry,
    pack_mark_delete,
    pack_meta,
)
from tests.powercut import marks
from tests.powercut.lives import lives
from tests.unit.storage.batches import compress_with, entry_of

KIB = 1 << 10
LIVE_LEDGERS = 6
ENSEMBLE_ROWS = b"ensemble/"


class Workload:
    """The store and its operations."""

    def __init__(self, path: Path, seed: int, ledgers: list[tuple[int, int]], mark: marks.Marker) -> None:
        self._path = path
        self._dice = random.Random(f"committer {seed}")
        self._house_dice = random.Random(f"housekeeper {seed}")
        self._mark = mark
        self._options: dict[str, Any] = {
            "volume_size": self._dice.choice((48 * KIB, 64 * KIB, 128 * KIB)),
            "index_flush_entries": self._dice.choice((10, 40, 200)),
            "index_flush_bytes": self._dice.choice((8 * KIB, 64 * KIB)),
            "open_volumes_max": self._dice.choice((2, 4)),
            "pack_live_percent": self._dice.choice((30, 50, 90)),
        }
        self._options["learn_from_bytes"] = 4 * KIB
        self._threaded = seed % 2 == 1
        # Chosen by the seed, without a random draw: two of three seeds compress packed volumes, with or without
        # dictionaries.
        codec = (None, "zstd", "zlib")[seed % 3]
        self._compressing = compress_with(codec) if codec else None
        self._found = ledgers
        self._ledgers: dict[int, int] = {}
        """Next entry of each ledger."""
        self._next_ledger = 1
        self._committed = 0
        self._given_up: list[int] = []
        self._quiet = 0
        """Number of further batches without entries."""
        self._rows: dict[bytes, bytes] = {}
        mark(marks.OPTIONS, **self._options)

    def run(self, steps: int) -> None:
        """Run all lives."""
        for life in lives(steps, self._dice):
            self._live(life)

    def _live(self, steps: int) -> None:
        """Run one life of the store, from recovery to close."""
        self._engine = self._open()
        self._recover()
        stop = threading.Event()
        failed: list[BaseException] = []

        def keep_house() -> None:
            try:
                while not stop.is_set():
                    self._keep_house()
                    stop.wait(self._house_dice.uniform(0, 0.002))
            except BaseException as error:
                failed.append(error)

        housekeeper = threading.Thread(target=keep_house)
        if self._threaded:
            housekeeper.start()
        for _ in range(steps):
            if not self._threaded and self._dice.random() < 0.5:
                self._keep_house()
            self._commit()
        if self._threaded:
            stop.set()
            housekeeper.join()
        if failed:
            raise failed[0]
        self._engine.close()

    def _open(self) -> Engine:
        return LmdbEngine(self._path, **self._options)

    def _recover(self) -> None:
        recovery = self._engine.recover()
        rows, batches = rows_of(recovery), list(recovery.batches)
        self._committed = recovery.next_position - 1
        packed = marks.rows_to_json({**rows})
        self._mark(marks.REOPENED, last=self._committed, mark=self._committed - len(batches), rows=packed)
        for ledger_id, entry_id in self._found:
            self._ledgers[ledger_id] = self._end_of(ledger_id, entry_id)
            self._next_ledger = max(self._next_ledger, ledger_id + 100)
        self._found = []

    def _end_of(self, ledger_id: int, entry_id: int) -> int:
        while True:
            try:
                entry_id += len(self._engine.read(ReadRequest(1, ledger_id, entry_id, 1 << 60, 1 << 20)))
            except PersistenceError:
                return entry_id

    def _commit(self) -> None:
        batch = self._batch(self._committed + 1)
        self._mark(marks.BEGUN, batch.value(), position=batch.position)
        self._engine.commit(batch)
        self._mark(marks.DONE, position=batch.position)
        self._committed = batch.position

    def _batch(self, position: int) -> Batch:
        dice = self._dice
        while len(self._ledgers) < LIVE_LEDGERS:
            self._ledgers[self._next_ledger] = dice.choice((0, 0, 1000))
            self._next_ledger += 1
        # One ledger lives long: volumes with its entries are packed.
        for ledger_id in sorted(self._ledgers)[1:]:
            if dice.random() < 0.08:
                del self._ledgers[ledger_id]
                self._given_up.append(ledger_id)
        batch = Batch(position)
        batch.wall = 1_700_000_000_000 + position
        big = dice.random() < 0.05
        if self._quiet:
            # Although they have no entries, the log needs these batches until a checkpoint covers them.
            self._quiet -= 1
            batch.add(pack_meta(Meta(b"row/large", dice.randbytes(dice.randint(1_000, 20_000)))))
            return batch
        if dice.random() < 0.06:
            self._quiet = dice.randint(3, 8)
        for _ in range(dice.randint(0, 4)):
            ledger_id = dice.choice(sorted(self._ledgers))
            for _ in range(dice.randint(1, 5)):
                entry_id = self._ledgers[ledger_id]
                entry = entry_of(ledger_id, entry_id, dice.randint(20_000, 60_000) if big else dice.randint(10, 3_000))
                batch.add_entry(ledger_id, entry_id, pack_entry(entry), entry.body)
                self._ledgers[ledger_id] = entry_id + 1
                big = False
            batch.add(self._other_record())
        batch.add(self._other_record())
        return batch

    def _other_record(self) -> bytes:
        dice = self._dice
        cursor, ledger, entry = dice.randint(1, 9), dice.randint(1, 9), dice.randint(0, 99)
        kind = dice.randrange(4)
        if kind == 0:
            return pack_mark_delete(MarkDelete(cursor, Position(ledger, entry), entry, 9 * entry, dice.random() < 0.1))
        if kind == 1:
            ranges = [AckedRange(ledger, i, i, i, i + 1, i, i + 1) for i in range(0, 2 * dice.randint(1, 9), 2)]
            return pack_acked(Acked(cursor, tuple(ranges)))
        if kind == 2:
            return pack_batch_acked(BatchAcked(cursor, Position(ledger, entry), 70, dice.getrandbits(70)))
        return pack_meta(Meta(b"row/%d" % entry, dice.choice((None, dice.randbytes(dice.randint(0, 300))))))

    def _keep_house(self) -> None:
        if not self._committed:
            return
        if self._house_dice.random() < 0.5:
            self._checkpoint()
            return
        for _ in range(self._house_dice.randint(1, 4)):
            done = self._engine.reclaim(self._compressing)
            if done is None:
                break
            self._mark(marks.RECLAIMED, what=done.what, volumes=done.volumes)

    def _checkpoint(self) -> None:
        dice = self._house_dice
        # The committer gives up a ledger before its next commit, so all its entries are in the log by now.
        dropped, position = self._take_given_up(), self._committed
        rows: dict[bytes, bytes | None] = {}
        for _ in range(dice.randint(0, 8)):
            key = b"row/%d/" % dice.randint(0, 40)
            key = key.ljust(dice.choice((1, 510, 511, 512, 900)), b"k") if dice.random() < 0.1 else key
            gone = dice.random() < 0.2
            rows[key] = None if gone else dice.randbytes(dice.choice((0, 20, 300, 300, 5_000)))
        self._mark(marks.CHECKPOINT, position=position, rows=marks.rows_to_json(rows), dropped=dropped)
        self._engine.checkpoint(Checkpoint(position, rows, tuple(dropped)))
        self._mark(marks.CHECKPOINTED, position=position)

    def _take_given_up(self) -> list[int]:
        taken = self._given_up[: len(self._given_up)]
        del self._given_up[: len(taken)]
        return taken


def rows_of(recovery: Recovery) -> dict[bytes, bytes]:
    """Return the rows of a checkpoint, except those that an ensemble adds."""
    return {key: value for key, value in recovery.rows.items(b"") if not key.startswith(ENSEMBLE_ROWS)}


if __name__ == "__main__":
    _, path, seed, steps, ledgers = sys.argv
    Workload(Path(path), int(seed), json.loads(ledgers), marks.Marker()).run(int(steps))
