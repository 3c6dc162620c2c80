"""The memory engine for a daemon: its threads one at a time, and nothing on the disk."""

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
"""Where control groups have a container's limit of memory, versions 2 and 1."""


def memory_size(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that the machine has, or its container may use."""
    sizes = [machine_memory()]
    for name in _GROUP_LIMITS:
        try:
            sizes.append(int((groups / name).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(sizes)


class SharedRows:
    """Rows that the housekeeper may change while the core looks something up."""

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
        """See Engine. The daemon's starts empty."""
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
        """See Engine. Many of the memory engine's steps, which are a batch each, are one here."""
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
        """There is always room."""

    def close(self) -> None:
        """Nothing to let go of."""
