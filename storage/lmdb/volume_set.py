"""The volumes of a data directory: which are open, which are not sealed yet, how the next one is begun."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.lmdb.directory import DataDirectory, EnvironmentDamaged
from pulsarbox.storage.lmdb.environment_pool import Pool
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment
from pulsarbox.storage.lmdb.volume import FlushAt, Volume, create_environment

Step = Callable[[str], None]
"""Called between durable steps with the name of the one that is done; what it raises stands for a crash there."""


class Sizes(NamedTuple):
    """How large volumes are, in bytes, and when their index is written."""

    volume: int
    map: int
    flush_at: FlushAt


class VolumeSet:
    """The volumes, as committer, reader and housekeeper share them.

    ``live`` is the newest volume, which takes the batches, and behind it those that are closed but not sealed,
    newest first. It is one tuple, replaced as a whole, so that a reader sees it as it was at one moment.
    """

    def __init__(self, directory: DataDirectory, sizes: Sizes, open_max: int, step: Step) -> None:
        self.directory = directory
        self.sizes = sizes
        self.step = step
        self.pool = Pool(open_max, self._open)
        self.metas = Pool(1, lambda _: MetaEnvironment(directory.meta))
        self.live: tuple[int, ...] = ()
        self.roll_after = 0
        """The newest volume takes no more if it is this one."""
        self.keep_until: int | None = None
        """Where the newest volume is opened again, batches after this one are dropped: their commits have failed."""
        self._damaged: dict[int, str] = {}
        """Volumes that cannot be opened: to find that out may take long, so it is done once."""
        self._lock = threading.Lock()

    @property
    def current(self) -> int:
        """The volume that takes the batches."""
        return self.live[0]

    def begin(self, live: tuple[int, ...]) -> None:
        """Take over what recovery found."""
        self.live = live
        for number in live:
            self.pool.keep(number)

    def begin_next(self) -> int:
        """Make the next volume, durably, and let it take the batches. Raises lmdb.Error, OSError."""
        number = self.current + 1
        if not self.directory.volume(number).exists():
            create_environment(self.directory.volume(number), Volume.TABLES)
        self.step("next volume made")
        self.pool.keep(number)
        with self._lock:
            self.live = (number, *self.live)
        return number

    def sealed(self, number: int) -> None:
        """The tables of meta speak of the oldest live volume by now."""
        with self._lock:
            assert len(self.live) > 1 and self.live[-1] == number
            self.live = self.live[:-1]
        self.pool.release(number)

    def check_readers(self) -> None:
        """Have the volumes that are not sealed forget the readers of processes that were killed."""
        for number in self.live:
            with suppress(lmdb.Error, OSError, PersistenceError), self.pool.using(number) as volume:
                volume.environment.reader_check()

    def close(self) -> None:
        """Close everything that is open, and let another process have the directory."""
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
