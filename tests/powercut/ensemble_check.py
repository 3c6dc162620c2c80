"""Opens images of several data directories after a power cut: all of them, or some that remain."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Engine, ReadRequest
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.recovery import EnsembleIncomplete
from pulsarbox.storage.format import BATCH_HEADER
from tests.powercut.check import Checked, Violation
from tests.powercut.ensemble_workload import COUNT, open_ensemble, paths_of
from tests.powercut.story import Story


class EnsembleChecked(Checked):
    """One opened image of several directories. In half of them, one or two directories are destroyed."""

    def __init__(self, folder: Path, story: Story, dice: random.Random) -> None:
        super().__init__(folder, story, dice)
        self._destroyed = dice.choice((0, 0, 1, 1, 2))
        for path in dice.sample(paths_of(self._path), self._destroyed):
            shutil.rmtree(path, ignore_errors=True)

    def check(self) -> None:
        """See Checked. A start may be refused if as many directories are destroyed as a batch has copies."""
        try:
            super().check()
        except EnsembleIncomplete as error:
            if self._destroyed < self._ack_min():
                raise Violation(f"{self._destroyed} of {COUNT} directories are destroyed: {error}") from error

    def _ack_min(self) -> int:
        acks = [_ack_min(value) for value in self._story.values]
        return min(acks, default=1)

    def _open(self) -> Engine:
        return open_ensemble(paths_of(self._path), lambda name: LmdbMember(name, **self._story.options))

    def _read_all(self, engine: Engine, dropped: Iterable[int], last: int) -> None:
        if not self._destroyed:
            super()._read_all(engine, dropped, last)
            return
        gone = set(dropped)
        for ledger_id, stored in self._story.ledgers.items():
            for position, entry in stored:
                if ledger_id not in gone and position <= last:
                    self._read_one(engine, position, entry.entry_id, ledger_id)

    def _read_one(self, engine: Engine, position: int, entry_id: int, ledger_id: int) -> None:
        entry = next(one.entry for one in self._story.ledgers[ledger_id] if one.entry.entry_id == entry_id)
        try:
            got = engine.read(ReadRequest(1, ledger_id, entry_id, entry_id, 1))
        except PersistenceError as error:
            if position <= self._story.done and self._destroyed < _ack_min(self._story.values[position - 1]):
                raise Violation(f"entry {ledger_id}:{entry_id} of batch {position}: {error}") from error
            return
        if got != [entry]:
            raise Violation(f"entry {ledger_id}:{entry_id} is not as committed")


def _ack_min(value: bytes) -> int:
    return int(BATCH_HEADER.unpack_from(value)[1]) or 1
