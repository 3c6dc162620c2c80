"""A recorded process: one engine on three data directories, some of which fail a write now and then.

``python -m tests.powercut.ensemble_workload PATH SEED STEPS LEDGERS``, as in ``tests.powercut.workload``. The
directories are beside PATH. Each ledger asks for a number of copies of its own.
"""

import json
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from pulsarbox.clock import Now
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.keeping.lmdb_directories import LmdbDirectories
from pulsarbox.storage.ensemble.keeping.maintenance import MaintenanceRates
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import Member, PackedBatch
from pulsarbox.storage.ensemble.member_writers import ThreadWriters
from pulsarbox.storage.journal import Batch
from tests.powercut import marks
from tests.powercut.workload import Workload

COUNT: Final = 3
QUORUMS: Final = ((1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2))
"""Ensemble size, write quorum and ack quorum."""
RATES: Final = MaintenanceRates(0, 0, 0.0001, 5.0)
FAILURES_IN: Final = 40
"""One write in this many fails, while all directories are in use."""


class FailingMember(LmdbMember):
    """A member whose writes fail on request."""

    def __init__(self, path: Path, fails: Callable[[], bool], **settings: object) -> None:
        super().__init__(path, **settings)
        self._fails = fails

    def commit(self, batch: PackedBatch) -> None:
        """See Member."""
        if self._fails():
            raise PersistenceError(f"{self.name} does not answer")
        super().commit(batch)


def paths_of(path: Path) -> list[Path]:
    """Return the data directories."""
    return [path.with_name(f"{path.name}-{number}") for number in range(1, COUNT + 1)]


def open_ensemble(paths: Sequence[Path], create: Callable[[str], Member]) -> EnsembleEngine:
    """Return an engine on directories, with small segments and a writer thread each, which wants two copies."""
    directories = LmdbDirectories(create)
    engine = EnsembleEngine(
        [directories.member(str(path)) for path in paths],
        directories=directories,
        rates=RATES,
        limits=EnsembleLimits(segment_bytes=64 << 10),
        writers=ThreadWriters(),
        monotonic=time.monotonic,
        new_id=lambda: str(uuid.uuid4()),
    )
    assert engine.keeper is not None
    engine.keeper.wanted = lambda _: lambda ledger_id: 2
    return engine


class EnsembleWorkload(Workload):
    """An engine on several directories, and its operations."""

    def __init__(self, path: Path, seed: int, ledgers: list[tuple[int, int]], mark: marks.Marker) -> None:
        super().__init__(path, seed, ledgers, mark)
        self._failures = Random(f"failures {seed}")
        self._seed = seed
        self._instant = 0

    def _open(self) -> Engine:
        self._ensemble = open_ensemble(
            paths_of(self._path), lambda name: FailingMember(Path(name), self._fails, **self._options)
        )
        return self._ensemble

    def _fails(self) -> bool:
        return self._ensemble.writable == COUNT and self._failures.randrange(FAILURES_IN) == 0

    def _batch(self, position: int) -> Batch:
        batch = super()._batch(position)
        for ledger_id in batch.runs or [0]:
            batch.ask(*QUORUMS[(ledger_id + self._seed) % len(QUORUMS)])
        return batch

    def _keep_house(self) -> None:
        super()._keep_house()
        for _ in range(self._house_dice.randint(0, 5)):
            self._instant += 1
            done = self._ensemble.maintain(Now(self._instant, self._instant * 1000))
            if done is None:
                break
            self._mark(marks.RECLAIMED, what=done.what, volumes=[])


if __name__ == "__main__":
    _, path, seed, steps, ledgers = sys.argv
    EnsembleWorkload(Path(path), int(seed), json.loads(ledgers), marks.Marker()).run(int(steps))
