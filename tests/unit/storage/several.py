"""A box on several data directories, without a broker, and the entries it has confirmed."""

import json
from pathlib import Path

from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from tests.unit.storage.batches import batch_of, entry_of
from tests.unit.storage.directories import ledger_row

TOPIC_ROW = b"topic/persistent://public/default/t"
NAMES = ("a", "b", "c")
IDS = iter(range(1, 1 << 30))


class Several:
    """A box on some directories of a folder, and the entries it has confirmed."""

    def __init__(self, folder: Path, names: tuple[str, ...] = NAMES, asked: tuple[int, int, int] = (3, 2, 2)) -> None:
        self.folder = folder
        self.paths = [folder / name for name in names]
        self.asked = asked
        self.ends: dict[int, int] = {}
        self.engine: EnsembleEngine
        self.replayed = 0
        self.open()

    def open(self) -> None:
        members = [LmdbMember(path, volume_size=1 << 16, index_flush_entries=8) for path in self.paths]
        self.engine = EnsembleEngine(
            members, limits=EnsembleLimits(segment_bytes=3000), new_id=lambda: f"{next(IDS)}-of-{self.folder.name}"
        )
        self.replayed = len(list(self.engine.recover().batches))

    def publish(self, *ledgers: int, rounds: int = 6, count: int = 4, size: int = 300) -> None:
        """Commit batches with entries of ledgers, in segments on other directories."""
        for _ in range(rounds):
            runs = [(ledger, self.ends.get(ledger, 0), count) for ledger in ledgers]
            batch = batch_of(self.engine.next_position, runs, size)
            batch.ask(*self.asked)
            self.engine.commit(batch)
            self.ends |= {ledger: first + count for ledger, first, count in runs}

    def checkpoint(self, *open_ledgers: int, dropped: tuple[int, ...] = ()) -> None:
        """Write a checkpoint that covers all, and give disk space back."""
        for ledger in dropped:
            del self.ends[ledger]
        topic = {"id": 1, "created": 1, "properties": {}}
        rows: dict[bytes, bytes | None] = {b"ids": _packed({"next": 1000}), TOPIC_ROW: _packed(topic)}
        rows |= {_key(each): _row(end, is_open=each in open_ledgers) for each, end in self.ends.items()}
        rows |= {_key(each): None for each in dropped}
        self.engine.checkpoint(Checkpoint(self.engine.next_position - 1, rows, dropped))
        while self.engine.reclaim() is not None:
            pass

    def close(self) -> None:
        self.engine.close()

    def assert_complete(self, ends: dict[int, int], size: int = 300) -> None:
        for ledger, end in ends.items():
            found = self.engine.read(ReadRequest(1, ledger, 0, end - 1, 1 << 30))
            assert found == [entry_of(ledger, entry, size) for entry in range(end)], ledger


def _key(ledger: int) -> bytes:
    return b"ledger/%016x/%016x" % (1, ledger)


def _row(entries: int, *, is_open: bool) -> bytes:
    return _packed(ledger_row(0, 0) if is_open else ledger_row(entries, 5))  # an open one may have an old row


def _packed(row: object) -> bytes:
    return json.dumps(row).encode()
