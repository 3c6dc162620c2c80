"""The volumes of a data directory: which are open, which are not sealed yet, and the start of the next one."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.lmdb.directory import DataDirectory, EnvironmentDamaged
from pulsarbox.storage.lmdb.environment import create_environment
from pulsarbox.storage.lmdb.environment_pool import EnvironmentGone, Pool
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.volume import FlushAt, Volume

Step = Callable[[str], None]
"""Called after each durable step with its name; an exception simulates a crash there."""


class Sizes(NamedTuple):
    """Sizes of volumes in bytes, and thresholds of index flushes."""

    volume: int
    map: int
    flush_at: FlushAt


class VolumeSet:
    """The volumes, shared by committer, reader and housekeeper.

    ``live`` has the newest volume, which receives the batches, then those closed but not sealed, newest first. It is a
    tuple replaced as a whole, so that readers see a consistent snapshot.
    """

    def __init__(self, directory: DataDirectory, sizes: Sizes, open_max: int, step: Step) -> None:
        self.directory = directory
        self.sizes = sizes
        self.step = step
        self.pool = Pool(open_max, self._open)
        self.metas = Pool(1, lambda _: MetaEnvironment(directory.meta))
        self.live: tuple[int, ...] = ()
        self.roll_after = 0
        """The number of the newest volume, if it must not receive more batches."""
        self.keep_until: int | None = None
        """When the newest volume is reopened, batches after this one are dropped: their commits failed."""
        self.appending = threading.Lock()
        """Held while a batch is appended: the newest volume stays the newest."""
        self._damaged: dict[int, str] = {}
        """Errors of volumes that cannot be opened, cached because verification may be slow."""
        self._lock = threading.Lock()

    @property
    def current(self) -> int:
        """The volume that receives the batches."""
        return self.live[0]

    def begin(self, live: tuple[int, ...]) -> None:
        """Set the live volumes found by recovery."""
        self.live = live
        for number in live:
            self.pool.pin(number)

    def begin_next(self) -> int:
        """Create the next volume durably and make it current. Raises lmdb.Error, OSError."""
        number = self.current + 1
        if not self.directory.volume(number).exists():
            create_environment(self.directory.volume(number), Volume.TABLES)
        self.step("next volume made")
        self.pool.pin(number)
        with self._lock:
            self.live = (number, *self.live)
        return number

    def roll(self) -> None:
        """Begin the next volume unless the newest is empty. Raises PersistenceError, lmdb.Error, OSError."""
        with self.appending:
            with self.pool.using(self.current) as volume:
                empty = not volume.last_position
            if not empty:
                self.begin_next()

    def sealed(self, number: int) -> None:
        """Remove the oldest live volume, which the tables of meta now list."""
        with self._lock:
            assert len(self.live) > 1 and self.live[-1] == number
            self.live = self.live[:-1]
        self.pool.release(number)

    def check_files(self) -> None:
        """Raise EnvironmentDamaged if the file of an open volume was removed, replaced or truncated."""
        for number in self.pool.numbers():
            with suppress(EnvironmentGone), self.pool.using(number) as volume:
                volume.check_file()

    def check_readers(self) -> None:
        """Clear the readers of killed processes in the unsealed volumes."""
        for number in self.live:
            with suppress(lmdb.Error, OSError, PersistenceError), self.pool.using(number) as volume:
                volume.environment.reader_check()

    def close(self) -> None:
        """Close all environments and release the directory."""
        self.pool.close()
        self.metas.close()
        self.directory.close()

    def _open(self, number: int) -> Volume:
        live = self.live
        path = self.directory.volume(number)
        if number == live[0]:
            return Volume(path, self.sizes.map, self.sizes.flush_at, self.keep_until)
        damage = self._damaged.get(number)
        if damage is not None:
            raise EnvironmentDamaged(damage)
        try:
            return Volume(path, self.sizes.map, self.sizes.flush_at, sealed=number not in live)
        except EnvironmentDamaged as error:
            self._damaged[number] = str(error)
            raise
