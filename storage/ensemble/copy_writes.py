"""Writing a batch to members: one write for each copy, and the order of its completion. Pure.

`member_writers` writes in threads; the writers here write at once, for members in memory.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pulsarbox.storage.ensemble.member import Member, MemberLate, PackedBatch


class CopyWrite:
    """The write of a batch to one member."""

    __slots__ = ("batch", "begun", "error", "is_done", "member_id")

    def __init__(self, member_id: str, batch: PackedBatch, begun: float) -> None:
        self.member_id = member_id
        self.batch = batch
        self.begun = begun
        """In seconds of the monotonic clock."""
        self.error: Exception | None = None
        self.is_done = False

    def run(self, member: Member) -> None:
        """Write the batch; note an error."""
        try:
            member.commit(self.batch)
        except Exception as error:
            self.error = error
        self.is_done = True


class Writer(Protocol):
    """Writes batches to one member, in order."""

    def submit(self, write: CopyWrite) -> None:
        """Queue a write."""

    @property
    def queue(self) -> int:
        """The number of unfinished writes."""

    @property
    def oldest(self) -> float | None:
        """When the oldest unfinished write was submitted; None if there is none."""

    def stop(self) -> None:
        """Finish the queued writes and stop, without waiting for a write that does not return."""


class Writers(Protocol):
    """Creates writers, and collects what they complete."""

    def writer(self, member: Member) -> Writer:
        """Return a new writer for a member."""

    def completed(self, seconds: float) -> CopyWrite | None:
        """Return the next completed write; wait for one up to this long, not at all with 0."""

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new reentrant lock."""


class InlineWriter:
    """Writes at once, in the thread that submits."""

    def __init__(self, member: Member, done: Callable[[CopyWrite], None]) -> None:
        self._member = member
        self._done = done
        self.queue = 0
        self.oldest: float | None = None

    def submit(self, write: CopyWrite) -> None:
        """See Writer. A write that a fault delays never completes here."""
        write.run(self._member)
        if isinstance(write.error, MemberLate):
            self.queue = 1  # the only member stays although it is late, and is tried again and again
            self.oldest = write.begun
        self._done(write)

    def stop(self) -> None:
        """See Writer."""


class InlineWriters:
    """Writers without threads."""

    def __init__(self) -> None:
        self._completed: deque[CopyWrite] = deque()

    def writer(self, member: Member) -> Writer:
        """See Writers."""
        return InlineWriter(member, self._completed.append)

    def completed(self, seconds: float) -> CopyWrite | None:
        """See Writers."""
        return self._completed.popleft() if self._completed else None

    def lock(self) -> AbstractContextManager[Any]:
        """See Writers."""
        return nullcontext()
