"""The memory engine for a daemon: serialized access by its threads, and nothing on disk."""

import threading
from collections.abc import Iterator
from pathlib import Path

from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.server.metrics.process import machine_memory
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed, Recovery, Rows
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.record import Entry

_STEPS_AT_ONCE = 4096
_GROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Files with the memory limit of a container's control group, versions 2 and 1."""


def memory_size(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory of the machine, or the limit of its container."""
    sizes = [machine_memory()]
    for name in _GROUP_LIMITS:
        try:
            sizes.append(int((groups / name).read_text()))
        except (OSError, ValueError):  # missing, or "max"
            continue
    return min(sizes)


class SharedRows:
    """Rows that the housekeeper may change during lookups of the core."""

    def __init__(self, rows: Rows, lock: threading.Lock) -> None:
        self._rows = rows
        self._lock = lock

    def get(self, key: bytes) -> bytes | None:
        """See Rows."""
        with self._lock:
            return self._rows.get(key)

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """See Rows."""
        with self._lock:
            return iter(list(self._rows.items(prefix, after)))

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """See Rows."""
        with self._lock:
            return self._rows.last(prefix, through)


class SharedMemoryEngine:
    """A memory engine that the daemon's three threads and the core may call."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self._engine = MemoryEngine(disk)
        self._lock = threading.Lock()

    @property
    def codecs(self) -> RestCodecs:
        """See Engine."""
        return self._engine.codecs

    def recover(self) -> Recovery:
        """See Engine. The store of a daemon starts empty."""
        recovery = self._engine.recover()
        return recovery._replace(rows=SharedRows(recovery.rows, self._lock))

    def commit(self, batch: Batch) -> None:
        """See Engine."""
        with self._lock:
            self._engine.commit(batch)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Engine."""
        with self._lock:
            self._engine.checkpoint(checkpoint)

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine. Combines many steps of the memory engine, of one batch each."""
        steps: list[Reclaimed] = []
        while len(steps) < _STEPS_AT_ONCE:
            with self._lock:
                step = self._engine.reclaim(compressing)
            if step is None:
                break
            steps.append(step)
        if not steps:
            return None
        before, after = sum(each.bytes_before for each in steps), sum(each.bytes_after for each in steps)
        return Reclaimed("went through", (f"{len(steps)} batches",), before, after)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Engine."""
        with self._lock:
            return self._engine.read(request)

    def check_room(self) -> None:
        """Do nothing: memory is never full."""

    def close(self) -> None:
        """Do nothing: no resources are held."""
