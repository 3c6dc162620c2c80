"""Threads that write batches to members, one for each member, so that copies are synced at the same time."""

import threading
from collections import deque
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from typing import Any

from pulsarbox.storage.ensemble.copy_writes import CopyWrite, Writer
from pulsarbox.storage.ensemble.member import Member

STOP_SECONDS = 10.0
"""How long a writer may take for its queue when it is stopped; a disk that hangs must not delay the end."""


class MemberWriter:
    """A thread that writes to one member."""

    def __init__(self, member: Member, completed: "SimpleQueue[CopyWrite]") -> None:
        self._member = member
        self._completed = completed
        self._tasks: SimpleQueue[CopyWrite | None] = SimpleQueue()
        self._waiting: deque[CopyWrite] = deque()
        self._thread = threading.Thread(target=self._run, name=f"copies {member.name}"[:60], daemon=True)
        self._thread.start()

    @property
    def queue(self) -> int:
        """See Writer."""
        return len(self._waiting)

    @property
    def oldest(self) -> float | None:
        """See Writer."""
        try:
            return self._waiting[0].begun
        except IndexError:
            return None

    def submit(self, write: CopyWrite) -> None:
        """See Writer."""
        self._waiting.append(write)
        self._tasks.put(write)

    def stop(self) -> None:
        """See Writer."""
        self._tasks.put(None)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (write := self._tasks.get()) is not None:
            write.run(self._member)
            self._waiting.popleft()
            self._completed.put(write)


class ThreadWriters:
    """Writers with a thread each."""

    def __init__(self) -> None:
        self._completed: SimpleQueue[CopyWrite] = SimpleQueue()

    def writer(self, member: Member) -> Writer:
        """See Writers. Batches for another machine are sent without waiting for those before them."""
        if member.is_remote:
            from pulsarbox.storage.ensemble.remote.posting_writer import PostingWriter

            return PostingWriter(member, self._completed)
        return MemberWriter(member, self._completed)

    def completed(self, seconds: float) -> CopyWrite | None:
        """See Writers."""
        try:
            return self._completed.get(seconds > 0, seconds or None)
        except Empty:
            return None

    def lock(self) -> AbstractContextManager[Any]:
        """See Writers."""
        return threading.RLock()
