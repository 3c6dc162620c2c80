"""A subscription of a persistent topic: its cursor, its consumers, the dispatcher of its type."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from pulsarbox.broker.consumer import Consumer, Held, ack_set_bits
from pulsarbox.broker.dispatch.dispatcher import Dispatcher
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.dispatch.source import EntrySource
from pulsarbox.broker.finder import find_first_since
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy, MetadataError, NotSupported, PersistenceError, ServiceNotReady
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.topic import PersistentTopic

log = logging.getLogger(__name__)

Done = Callable[[Now], None]
Failed = Callable[[Exception], None]
Apply = Callable[[Consumer, MessageIdData, Held], None]

ABANDONED_SECONDS = 60.0
"""How long a subscription that is not durable waits for its consumer after a seek."""

TYPE_NAMES = {0: "Exclusive", 1: "Shared", 2: "Failover", 3: "Key_Shared"}


class Subscription:
    """One named subscription.

    Its type is that of the consumers it has, and may change once they have all gone. A subscription that is not
    durable lives as long as its consumers.
    """

    def __init__(self, topic: "PersistentTopic", cursor: ManagedCursor, properties: dict[str, str]) -> None:
        self.topic = topic
        self.cursor = cursor
        self.name = cursor.name
        self.properties = properties
        self.consumers: list[Consumer] = []
        self.type = CommandSubscribe.Exclusive
        self.fenced = False
        """A seek is under way: nobody may come, nobody is here."""
        self._batch_indexes = topic.core.settings.acknowledgmentAtBatchIndexLevelEnabled
        self._mark = cursor.mark_delete
        """Mark-delete as it was after the last acknowledgement."""
        self._epoch = 0
        """Resets of the cursor so far."""
        self.source = EntrySource(cursor, topic.core, self.dispatch)
        self._dispatcher: Dispatcher = self._make_dispatcher(self.type)

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its consumers."""
        return self.cursor.durable

    @property
    def active_consumer(self) -> Consumer | None:
        """The consumer that gets everything, of an Exclusive or Failover subscription."""
        dispatcher = self._dispatcher
        return dispatcher.active if isinstance(dispatcher, SingleActiveDispatcher) else None

    # Consumers

    def add_consumer(self, consumer: Consumer, sub_type: CommandSubscribe.SubType, now: Now) -> None:
        """Take a consumer of a type. Raises ConsumerBusy where it does not fit to those that are here."""
        if self.fenced:
            raise ServiceNotReady("Subscription is fenced: it is being reset, try again")
        if self.consumers and sub_type != self.type:
            raise ConsumerBusy(
                f"Subscription is of different type: it is {TYPE_NAMES[self.type]} while it has consumers"
            )
        if not self.consumers and sub_type != self.type:
            self._dispatcher = self._make_dispatcher(sub_type)
            self.type = sub_type
        self._dispatcher.add(consumer, now)
        self.consumers.append(consumer)

    def remove_consumer(self, consumer: Consumer, now: Now) -> None:
        """The consumer has gone."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self._dispatcher.remove(consumer, now)
            if not self.consumers and not self.durable and not self.fenced:
                self.topic.remove_subscription(self, now)

    def _make_dispatcher(self, sub_type: CommandSubscribe.SubType) -> Dispatcher:
        core = self.topic.core
        if sub_type == CommandSubscribe.Shared:
            return SharedDispatcher(self.cursor, self.source, core)
        if sub_type == CommandSubscribe.Key_Shared:
            raise NotSupported("Key_Shared subscriptions are not supported by this version: use Shared or Failover")
        return SingleActiveDispatcher(
            self.cursor,
            self.source,
            core.settings.dispatcherMaxReadBatchSize,
            failover=sub_type == CommandSubscribe.Failover,
            partition=self.topic.name.partition_index,
        )

    # Dispatch

    def dispatch(self, now: Now) -> None:
        """Send what can be sent."""
        if self.consumers:
            self._dispatcher.dispatch(now)

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """The consumer can take ``permits`` more messages."""
        consumer.permits += permits
        self._dispatcher.dispatch(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Send again what the consumer holds: the entries at ``positions``, or all with None."""
        self._dispatcher.redeliver(consumer, positions, now)
        if isinstance(self._dispatcher, SharedDispatcher):
            self.topic.core.commits.cursor_changed(self.cursor, now)  # the counts

    # Acknowledging

    def acknowledge(
        self, consumer: Consumer, ack: CommandAck, now: Now, done: Done | None, failed: Failed | None = None
    ) -> None:
        """Acknowledge what a command names; ``done`` is called when all of it is durable, ``failed`` where not all is.

        An entry of which nothing is known any more (it was delivered to an earlier consumer) is read first.
        """
        apply = self._apply_individual
        ids: Iterable[MessageIdData] = ack.message_id
        if ack.ack_type == CommandAck.Cumulative:
            apply = self._apply_cumulative
            if self.type == CommandSubscribe.Shared:
                ids = ()  # as Pulsar does: it means nothing where others hold what lies before
        unknown: list[MessageIdData] = []
        held_of = consumer.held.get
        for message_id in ids:
            held = held_of((message_id.ledgerId, message_id.entryId))
            if held is not None:
                apply(consumer, message_id, held)
            else:
                unknown.append(message_id)
        if unknown:
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
        left = len(ids)
        done, failed = answers
        errors: list[Exception] = []

        def found(message_id: MessageIdData, held: Held | None, when: Now) -> None:
            nonlocal left
            left -= 1
            if held is not None and epoch == self._epoch:  # a reset in between has made a new start
                apply(consumer, message_id, held)
            if left == 0:
                self._settled(consumer, None if errors else done, when)
                if errors and failed is not None:
                    failed(errors[0])

        def unread(message_id: MessageIdData, error: Exception) -> None:
            errors.append(error)
            found(message_id, None, now)

        cumulative = apply == self._apply_cumulative
        for message_id in ids:
            position = Position(message_id.ledgerId, message_id.entryId)
            # Before an entry that is acknowledged by itself there may be others that are not.
            if position <= self.cursor.mark_delete or (not cumulative and self.cursor.is_acked(*position)):
                found(message_id, None, now)
            else:
                self.topic.look_up(position, partial(found, message_id), partial(unread, message_id), now)

    def _settled(self, consumer: Consumer, done: Done | None, now: Now) -> None:
        """What a command acknowledges is applied: have it written, and go on with what it made room for."""
        commits = self.topic.core.commits
        commits.cursor_changed(self.cursor, now)
        mark = self.cursor.mark_delete
        if self._mark < self.topic.ledgers.oldest_end <= mark and self.durable:
            self.topic.trim(now)
        self._mark = mark
        if done is not None:
            if self.durable:
                commits.after_commit(done)
            else:
                done(now)
        dispatcher = self._dispatcher
        if isinstance(dispatcher, SharedDispatcher) and dispatcher.acknowledged(consumer):
            dispatcher.dispatch(now)

    def _apply_individual(self, consumer: Consumer, message_id: MessageIdData, held: Held) -> None:
        ledger_id, entry_id = message_id.ledgerId, message_id.entryId
        position = (ledger_id, entry_id)
        if message_id.ack_set:
            unacked = ack_set_bits(list(message_id.ack_set))
            if unacked and not self._batch_indexes:
                return  # only whole entries are acknowledged
            if not self.cursor.acknowledge_batch(Position(*position), held.batch_size, unacked):
                left = self.cursor.batch_acks.get(Position(*position))
                if left is not None and position in consumer.held:
                    count = left[1].bit_count()
                    consumer.unacked -= held.messages - count
                    consumer.held[position] = held._replace(messages=count)
                return
        consumer.release(position)
        self.cursor.acknowledge(ledger_id, entry_id, held.batch_size, held.size, held.total_messages, held.total_bytes)

    def _apply_cumulative(self, consumer: Consumer, message_id: MessageIdData, held: Held) -> None:
        position = Position(message_id.ledgerId, message_id.entryId)
        unacked = ack_set_bits(list(message_id.ack_set))
        through = (position, held.total_messages, held.total_bytes)
        whole = not unacked or (
            self._batch_indexes and self.cursor.acknowledge_batch(position, held.batch_size, unacked)
        )
        if not whole:
            before = Position(position.ledger_id, position.entry_id - 1)
            through = (before, held.total_messages - held.batch_size, held.total_bytes - held.size)
        self.cursor.acknowledge_through(*through)
        # What is held stands in the order of sending, which here is that of the topic.
        for each in list(takewhile(lambda held_at: held_at <= through[0], consumer.held)):
            consumer.release(each)

    # Cursor

    def seek(
        self, position: Position, ack_set: list[int], done: Done, failed: Callable[[Exception], None], now: Now
    ) -> None:
        """Start again at ``position``: the consumers are closed and come back. ``done`` comes when it is durable."""
        if self.fenced:
            raise PersistenceError("Failed to fence subscription")
        self.fenced = True
        self._epoch += 1
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now)

        def located(mark: Position, messages: int, size: int, when: Now) -> None:
            self.cursor.reset(mark, messages, size)
            self.source.rewind()
            self._dispatcher.rewind()
            self.fenced = False
            if ack_set:
                self._seek_into_batch(position, ack_set, when)
            self.topic.core.commits.cursor_changed(self.cursor, when)
            self._mark = self.cursor.mark_delete
            if self.durable:
                self.topic.trim(when)  # it may have gone forward
                self.topic.core.commits.after_commit(done)
            else:
                done(when)
                # Its client is to come back; if it does not, nobody else ever will.
                self.topic.core.timers.at(when.monotonic + ABANDONED_SECONDS, self._remove_if_abandoned)

        def lost(error: Exception) -> None:
            self.fenced = False
            failed(error)

        self.topic.locate(position, located, lost, now)

    def _remove_if_abandoned(self, now: Now) -> None:
        if not self.consumers and not self.fenced:
            self.topic.remove_subscription(self, now)

    def seek_to_time(self, publish_time: int, done: Done, failed: Callable[[Exception], None], now: Now) -> None:
        """Start again at the first entry that was published at ``publish_time`` (ms since 1970) or later."""

        def found(position: Position, when: Now) -> None:
            try:
                self.seek(position, [], done, failed, when)
            except PersistenceError as error:
                failed(error)

        find_first_since(self.topic, publish_time, found, failed, now)

    def _seek_into_batch(self, position: Position, ack_set: list[int], now: Now) -> None:
        def found(held: Held | None, when: Now) -> None:
            if held is not None and not self.cursor.is_acked(*position):
                self.cursor.acknowledge_batch(position, held.batch_size, ack_set_bits(ack_set))
                self.topic.core.commits.cursor_changed(self.cursor, when)

        def unread(error: Exception) -> None:
            log.error("subscription %s starts at the whole batch %s: %s", self.name, position, error)

        self.topic.look_up(position, found, unread, now)

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Delete the subscription. Raises MetadataError where the consumer is not the only one, unless forced."""
        if not force and self.consumers != [consumer]:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        self.close(now, asked_by=consumer)
        self.topic.remove_subscription(self, now)

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Let all consumers go; they are told, but for the one that asked for it."""
        self.fenced = True
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now, tell=consumer is not asked_by)
