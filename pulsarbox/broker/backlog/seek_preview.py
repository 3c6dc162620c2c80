"""Effect of a seek on a backlog, computed without moving the cursor.

Most of it is a subtraction of running totals. Only entries acknowledged out of order before the new position are
counted one by one: the caller passes each of ``steps`` to ``add``, some per turn.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.subscription import Subscription

SOME: Final = 500
"""Ranges and batches copied at a time, as the cursor may change between steps."""


class SeekTarget(NamedTuple):
    """A new mark-delete position with the topic's message total there."""

    mark: Position
    messages: int
    in_batch: int = 0
    """Messages of the entry after ``mark`` that the seek skips."""


class SeekCounts(NamedTuple):
    """Messages of a subscription before and after a seek."""

    before: int
    after: int
    skipped: int
    """Unacknowledged messages before the new position."""

    @property
    def redelivered(self) -> int:
        """Acknowledged messages after the new position."""
        return self.after - self.before + self.skipped


class SeekPreview:
    """Counts for one subscription and one target. Acknowledgements during the count may or may not be included."""

    def __init__(self, subscription: "Subscription", target: SeekTarget) -> None:
        self._subscription = subscription
        self._cursor = subscription.cursor
        self._target = target
        self._acked = 0
        """Messages acknowledged out of order up to the target."""

    def steps(self) -> Iterator[int]:
        """Yield numbers of messages for ``add``."""
        if self._target.mark > self._cursor.mark_delete:
            yield from self._acked_in_ranges()
            yield from self._acked_in_batches()

    def add(self, acked: int) -> None:
        """Count the messages of a step."""
        self._acked += acked

    def counts(self) -> SeekCounts:
        """Return the counts after the last step."""
        cursor, target = self._cursor, self._target
        end = cursor.ledger.messages_behind(target.messages)
        skipped = max(cursor.ledger.messages_behind(cursor.mark_messages) - end, 0) - self._acked
        after = end - target.in_batch - self._subscription.stored.aborted_after(target.mark, target.messages)
        return SeekCounts(cursor.backlog_messages, max(after, 0), max(skipped, 0) + self._skipped_in_batch())

    def _acked_in_ranges(self) -> Iterator[int]:
        cursor, target = self._cursor, self._target
        at, full = (cursor.mark_delete.ledger_id, cursor.mark_delete.entry_id + 1), True
        while full:
            some = list(islice(cursor.ranges.runs_from(*at), SOME))
            full = len(some) == SOME
            for each in cursor.ranges.around([begin for begin, _ in some if begin >= at]):
                if (each.ledger_id, each.first) > target.mark:
                    return
                yield max(min(each.messages_after, target.messages) - each.messages_before, 0)
            if some:
                at = (some[-1][1][0], some[-1][1][1] + 1)

    def _acked_in_batches(self) -> Iterator[int]:
        at = self._cursor.mark_delete
        while some := list(islice(self._cursor.batch_acks.items_after(at), SOME)):
            for at, (messages, unacked) in some:
                if at > self._target.mark:
                    return
                yield messages - unacked.bit_count()

    def _skipped_in_batch(self) -> int:
        """Count the unacknowledged messages that a seek into a batch skips."""
        cursor, target = self._cursor, self._target
        at = cursor.ledger.next(*target.mark)
        if not target.in_batch or cursor.is_acked(*at):
            return 0
        batch = cursor.batch_acks.get(at)
        return target.in_batch if batch is None else (batch[1] & ((1 << target.in_batch) - 1)).bit_count()
