"""A writer to another machine: batches are sent at once, and are on their way at the same time."""

import threading
from collections import deque
from queue import SimpleQueue
from typing import Any, Final, cast

from pulsarbox.storage.ensemble.copy_writes import CopyWrite
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember

STOP_SECONDS: Final = 10.0
"""How long the writes that were sent may take when the writer is stopped."""


class PostingWriter:
    """A Writer without a thread: the thread of the link completes the writes."""

    def __init__(self, member: Member, completed: "SimpleQueue[Any]") -> None:
        """``member`` is a RemoteMember; ``completed`` collects each CopyWrite."""
        self._member = cast("RemoteMember", member)
        self._completed = completed
        self._waiting: deque[CopyWrite] = deque()
        self._changed = threading.Condition()

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
        self._member.post(write.batch, lambda error: self._done(write, error))

    def stop(self) -> None:
        """See Writer."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, STOP_SECONDS)

    def _done(self, write: CopyWrite, error: Exception | None) -> None:
        write.error = error
        write.is_done = True
        with self._changed:
            self._waiting.remove(write)
            self._changed.notify_all()
        self._completed.put(write)
