"""Application of ACK commands to the cursor, for entries held by any consumer of the subscription."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile
from typing import Final, Protocol

from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from pulsarbox.broker.dead_letter.message import IndexAcks
from pulsarbox.broker.dispatch.dispatcher import Dispatcher
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.subscription.consumer import Consumer, HeldEntry
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.termination import Termination
from pulsarbox.clock import Now
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Position

Done = Callable[[Now], None]
Failed = Callable[[Exception], None]
Apply = Callable[[Consumer, MessageIdData, HeldEntry], None]
NOTHING: Final = HeldEntry(0, 0, 0, 0, 0)
"""For an entry that is no longer in the log."""


class AcknowledgedSubscription(Protocol):
    """A subscription as its acknowledgements need it."""

    type: CommandSubscribe.SubType
    consumers: list[Consumer]
    dispatcher: Dispatcher
    mark_moved: int

    def notify_end_of_topic(self) -> None:
        """Notify the consumers of a terminated topic once everything is acknowledged."""


class AcknowledgedTopic(Protocol):
    """The parts of a topic that acknowledgements affect."""

    reader: LedgerReader
    ledgers: TopicLedgers
    backlog: QuotaEnforcement
    termination: Termination

    def trim(self, now: Now) -> None:
        """Drop the ledgers that neither a subscription nor retention needs."""


class AcknowledgementHandling:
    """The acknowledgements of one subscription."""

    def __init__(
        self,
        subscription: AcknowledgedSubscription,
        topic: AcknowledgedTopic,
        cursor: ManagedCursor,
        source: EntrySource,
        commits: GroupCommit,
        *,
        batch_indexes: bool,
    ) -> None:
        """``batch_indexes``: single messages of a batch can be acknowledged."""
        self._subscription = subscription
        self._source = source
        self._topic = topic
        self._ledgers = topic.ledgers
        self._backlog = topic.backlog
        self._termination = topic.termination
        self._cursor = cursor
        self._commits = commits
        self._batch_indexes = batch_indexes
        self._has_index_acks = False
        """Whether a consumer has acknowledged by batch index since the subscription was loaded."""
        self._mark = self._cursor.mark_delete
        """Mark-delete after the last acknowledgement."""
        self._closed: set[int] = set()
        """Closed ledgers with acknowledgements since the last check for trimmable ones."""
        self._epoch = 0
        """Number of cursor resets."""

    @property
    def index_acks(self) -> IndexAcks:
        """Batch index acknowledgements seen so far; see ``IndexAcks``."""
        if not self._batch_indexes:
            return IndexAcks.OFF
        return IndexAcks.KEPT if self._has_index_acks or self._cursor.batch_acks else IndexAcks.NONE

    def begin_reset(self) -> None:
        """Discard the results of earlier reads, because the cursor is being reset."""
        self._epoch += 1

    def end_reset(self) -> None:
        """Resume after a cursor reset."""
        self._mark = self._cursor.mark_delete

    def acknowledge(
        self, consumer: Consumer, ack: CommandAck, now: Now, done: Done | None, failed: Failed | None = None
    ) -> None:
        """Apply an ACK command. ``done`` is called once everything is durable, ``failed`` if a part cannot be applied.

        An entry that no consumer holds, because it was delivered to an earlier one, is read first.
        """
        apply = self._apply_individual
        ids: Iterable[MessageIdData] = ack.message_id
        if ack.ack_type == CommandAck.Cumulative:
            apply = self._apply_cumulative
            if self._side_by_side:
                ids = ()  # as in Pulsar: other consumers may hold earlier entries
        unknown: list[MessageIdData] = []
        held_of = consumer.held.get
        compacted = self._source.compacted
        for message_id in ids:
            position = (message_id.ledgerId, message_id.entryId)
            held = held_of(position)
            if held is None and compacted is not None and compacted.claims(position):
                held = NOTHING
            if held is not None:
                apply(consumer, message_id, held)
                continue
            holder = self._holder(position)
            if holder is not None:
                apply(holder, message_id, holder.held[position])
                self._subscription.dispatcher.acknowledged(holder, now)
            else:
                unknown.append(message_id)
        if unknown:
            if len(unknown) < len(ack.message_id):
                self._subscription.dispatcher.acknowledged(consumer, now)  # reading the other entries may take long
            self._look_up(consumer, unknown, apply, (done, failed), now)
        else:
            self._settled(consumer, done, now)

    def _look_up(
        self,
        consumer: Consumer,
        ids: list[MessageIdData],
        apply: Apply,
        answers: tuple[Done | None, Failed | None],
        now: Now,
    ) -> None:
        epoch = self._epoch
        cumulative = apply == self._apply_cumulative
        left = len(ids)
        done, failed = answers
        errors: list[Exception] = []

        def found(message_id: MessageIdData, held: HeldEntry | None, when: Now) -> None:
            nonlocal left
            left -= 1
            if held is not None and epoch == self._epoch:  # the cursor was reset meanwhile
                holder = self._holder((message_id.ledgerId, message_id.entryId)) or consumer
                apply(holder, message_id, held)
                self._subscription.dispatcher.acknowledged(holder, when)
            elif cumulative and not errors and epoch == self._epoch:
                self._apply_behind(consumer, Position(message_id.ledgerId, message_id.entryId))
            if left == 0:
                self._settled(consumer, None if errors else done, when)
                if errors and failed is not None:
                    failed(errors[0])

        def unread(message_id: MessageIdData, error: Exception, when: Now) -> None:
            errors.append(error)
            found(message_id, None, when)

        for message_id in ids:
            position = Position(message_id.ledgerId, message_id.entryId)
            # Entries before one that is acknowledged individually may be unacknowledged.
            if position <= self._cursor.mark_delete or (not cumulative and self._cursor.is_acked(*position)):
                found(message_id, None, now)
            else:
                self._topic.reader.look_up(position, partial(found, message_id), partial(unread, message_id), now)

    @property
    def _side_by_side(self) -> bool:
        """Whether entries are dispatched to several consumers."""
        return self._subscription.type in (CommandSubscribe.Shared, CommandSubscribe.Key_Shared)

    def _holder(self, position: tuple[int, int]) -> Consumer | None:
        """Return the consumer that holds the entry unacknowledged; None unless several consumers share entries."""
        if self._side_by_side:
            for consumer in self._subscription.consumers:
                if position in consumer.held:
                    return consumer
        return None

    def _settled(self, consumer: Consumer, done: Done | None, now: Now) -> None:
        """Commit the changes of a command, and resume dispatch to its consumer."""
        compacted = self._source.compacted
        if compacted is not None:
            compacted.schedule_write(now)
        consumer.last_acked = now.wall
        self.settle(now)
        if done is not None:
            if self._cursor.durable:
                self._commits.after_metadata(done)
            else:
                done(now)
        self._subscription.dispatcher.acknowledged(consumer, now)
        if self._termination.ended:
            self._subscription.notify_end_of_topic()

    def settle(self, now: Now, unheld: Iterable[tuple[int, int]] = ()) -> None:
        """Commit a changed cursor, and trim ledgers if possible.

        ``unheld`` are entries acknowledged without a consumer: they too may release a ledger.
        """
        growing = self._ledgers.growing
        self._closed.update(ledger_id for ledger_id, _ in unheld if ledger_id < growing)
        self._commits.cursor_changed(self._cursor, now)
        mark = self._cursor.mark_delete
        moved = mark != self._mark
        if moved:
            self._subscription.mark_moved = now.wall
            another = mark.ledger_id != self._mark.ledger_id
            if self._cursor.durable and (another or self._mark < self._ledgers.oldest_end <= mark):
                self._topic.trim(now)
            self._mark = mark
        if self._backlog.blocked is not None and self._cursor.durable:
            self._backlog.acknowledged(now, moved=moved)
        if self._closed:
            self._maybe_trim(now)

    def _maybe_trim(self, now: Now) -> None:
        """Trim the topic if this subscription was the last that retained one of the closed ledgers."""
        closed, self._closed = self._closed, set()
        if self._cursor.durable and any(self._ledgers.may_release_ledger(self._cursor, each) for each in closed):
            self._topic.trim(now)

    def _apply_individual(self, consumer: Consumer, message_id: MessageIdData, held: HeldEntry) -> None:
        position = (message_id.ledgerId, message_id.entryId)
        compacted, ack_set = self._source.compacted, message_id.ack_set
        unacked = bits_of(ack_set) if ack_set else 0
        if compacted is not None:
            unacked = compacted.unacked(position, unacked) if ack_set else 0
            if compacted.claims(position):
                if not unacked:
                    self._release(consumer, position, held)
                    compacted.acknowledged(position)
                return
        if ack_set:
            self._has_index_acks = True
            if not self._is_whole(consumer, position, held, unacked):
                return
        self._release(consumer, position, held)
        (_, size, total_messages, total_bytes, batch_size, _) = held
        self._cursor.acknowledge(position[0], position[1], batch_size, size, total_messages, total_bytes)
        if position[0] < self._ledgers.growing:
            self._closed.add(position[0])
        if compacted is not None:
            compacted.acknowledged(position)

    def _is_whole(self, consumer: Consumer, position: tuple[int, int], held: HeldEntry, unacked: int) -> bool:
        """Return whether the whole batch is acknowledged now; if not, record the remaining messages."""
        if unacked and not self._batch_indexes:
            return False  # batch index acknowledgement is disabled
        if self._cursor.acknowledge_batch(Position(*position), held.batch_size, unacked):
            return True
        left = self._cursor.batch_acks.get(Position(*position))
        now_held = consumer.held.get(position)  # ``held`` may come from a read
        if left is not None and now_held is not None:
            count = left[1].bit_count()
            consumer.unacked -= now_held.messages - count
            consumer.held[position] = now_held._replace(messages=count)
        return False

    def _release(self, consumer: Consumer, position: tuple[int, int], held: HeldEntry) -> None:
        if consumer.release(position) is None:
            consumer.forgotten -= held.messages
            self._subscription.dispatcher.acknowledged_unheld(position)

    def _apply_cumulative(self, consumer: Consumer, message_id: MessageIdData, held: HeldEntry) -> None:
        position = Position(message_id.ledgerId, message_id.entryId)
        unacked = bits_of(message_id.ack_set)
        compacted = self._source.compacted
        if compacted is not None:
            unacked = compacted.unacked(position, unacked)
            if compacted.claims(position):
                through = position if not unacked else Position(position.ledger_id, position.entry_id - 1)
                compacted.acknowledged_through(through)
                self._release_through(consumer, through)
                return
        totals = (position, held.total_messages, held.total_bytes)
        whole = not unacked or (
            self._batch_indexes and self._cursor.acknowledge_batch(position, held.batch_size, unacked)
        )
        if not whole:
            before = Position(position.ledger_id, position.entry_id - 1)
            totals = (before, held.total_messages - held.batch_size, held.total_bytes - held.size)
        if position.ledger_id < self._ledgers.growing:
            self._closed.add(position.ledger_id)
        self._through(consumer, *totals)

    def _apply_behind(self, consumer: Consumer, position: Position) -> None:
        """Apply a cumulative acknowledgement of a trimmed entry; earlier entries may remain."""
        through = self._cursor.ledger.behind_dropped(position)
        if through is not None:
            self._through(consumer, *through)

    def _through(self, consumer: Consumer, mark: Position, messages: int, size: int) -> None:
        self._cursor.acknowledge_through(mark, messages, size)
        compacted = self._source.compacted
        if compacted is not None:
            compacted.acknowledged_through(mark)
        self._release_through(consumer, mark)

    def _release_through(self, consumer: Consumer, position: Position) -> None:
        # Held entries are in dispatch order, which is the topic's order here.
        for each in list(takewhile(lambda held_at: held_at <= position, consumer.held)):
            consumer.release(each)
