"""Subscriptions of persistent topics: cursor, consumers and the dispatcher for the subscription type."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from pulsarbox.broker.compaction.compacted_reader import CompactedReading, ViewServices
from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.dead_letter.message import IndexAcks
from pulsarbox.broker.dead_letter.redelivery_limit import LetterServices, RedeliveryLimit
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.compatibility import check_compatible
from pulsarbox.broker.dispatch.delayed import Delayed, DelayServices, count_early, cutoff_of
from pulsarbox.broker.dispatch.dispatcher import Dispatcher
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.dispatch.multiple_consumers import DispatchServices, MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.plugin_hash_registry import HashServices, key_hash_of
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher, SingleActiveServices
from pulsarbox.broker.limits.topic_limits import TopicLimits
from pulsarbox.broker.policies.kinds.unacked import MAX_UNACKED_PER_CONSUMER, MAX_UNACKED_PER_SUBSCRIPTION
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.replay.job_claims import JobClaims
from pulsarbox.broker.stats.blocked_reason_text import BlockedReasonText, reason_with_text
from pulsarbox.broker.subscription.acknowledgement import AcknowledgedTopic, AcknowledgementHandling, Done, Failed
from pulsarbox.broker.subscription.consumer import Consumer, HeldEntry
from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.subscription.skip_and_clear import SkipAndClear
from pulsarbox.broker.topic.maintenance.maintenance_schedule import TopicMaintenance
from pulsarbox.broker.topic.maintenance.subscription_expiration import SubscriptionExpiration
from pulsarbox.broker.transactions.pending_acks import PendingAcks
from pulsarbox.broker.transactions.transaction_table import TransactionTable
from pulsarbox.clock import Now
from pulsarbox.errors import (
    EntryDamaged,
    MetadataError,
    NotFound,
    PersistenceError,
    PreconditionFailed,
    ServiceNotReady,
    SubscriptionFenced,
)
from pulsarbox.names import TopicName
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe
from pulsarbox.storage.catalog import Row, cursor_key
from pulsarbox.storage.compacted_ledger import Behind
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.recovery import StoredTopic

ABANDONED_SECONDS = 60.0
"""How long a non-durable subscription waits for its consumer to reconnect after a seek."""

ONE_ACTIVE = frozenset({CommandSubscribe.Exclusive, CommandSubscribe.Failover})
"""Subscription types with a single active consumer."""
TYPE_NAMES = {0: "Exclusive", 1: "Shared", 2: "Failover", 3: "Key_Shared"}


class SubscribedTopic(AcknowledgedTopic, Protocol):
    """The parts of a persistent topic that its subscriptions share."""

    name: TopicName
    stored: StoredTopic
    policies: TopicPolicies
    limits: TopicLimits
    upkeep: TopicMaintenance
    inactivity: SubscriptionExpiration
    compaction: TopicCompaction

    def has(self, subscription: "Subscription") -> bool:
        """Return whether the subscription exists, rather than a later one of its name or none."""

    def remove_subscription(self, subscription: "Subscription", now: Now) -> None:
        """Remove a subscription."""


class SubscriptionServices(
    DispatchServices, DelayServices, SingleActiveServices, ViewServices, LetterServices, HashServices, Protocol
):
    """The services of the broker that a subscription and its parts use."""

    @property
    def job_claims(self) -> JobClaims:
        """Subscriptions that running jobs use alone."""

    @property
    def transactions(self) -> TransactionTable:
        """The transactions of the box."""


class Reset:
    """A seek that can be cancelled until the cursor is reset."""

    cancelled = False


class Subscription:
    """One named subscription.

    Its type is that of its consumers, and may change when it has none. A non-durable subscription exists as long as it
    has consumers.
    """

    mark_moved = 0
    """When mark-delete last moved since it was loaded (ms since 1970)."""
    job_moves = 0
    """Entries that a job is moving to another topic and that are not durable there yet."""
    resets = 0
    """How often its cursor was reset since it was loaded."""

    def __init__(
        self,
        services: SubscriptionServices,
        topic: SubscribedTopic,
        cursor: ManagedCursor,
        properties: dict[str, str],
        row: Row | None = None,
    ) -> None:
        """``row`` is that of the cursor."""
        self._services = services
        self._commits = services.commits
        self._topic = topic
        self.topic_name = topic.name
        self.stored = topic.stored
        self.ledger = cursor.ledger
        self.reader = topic.reader
        self._policies = topic.policies
        self._upkeep = topic.upkeep
        self._inactivity = topic.inactivity
        self._termination = topic.termination
        self.compaction = topic.compaction
        self.cursor = cursor
        self.name = cursor.name
        self.properties = properties
        self.consumers: list[Consumer] = []
        self.type = CommandSubscribe.Exclusive
        self.fenced = False
        """Being reset or closed: it has no consumers and accepts none."""
        self._reset: Reset | None = None
        """The seek that has fenced it; None without a seek, or if the topic closes."""
        self.served = False
        """Whether it has had a consumer since it was loaded; before that its type is meaningless."""
        self.removed = (0, 0)
        """Messages and bytes sent to consumers that have since been removed."""
        self.replicated = bool((row or {}).get("replicated"))
        """Whether clients asked for its position to be replicated; a box does not replicate it."""
        self.unused_since = 0
        """Since when a durable subscription has no consumers (ms since 1970); 0 while it has."""
        self.clearing = SkipAndClear(self, cursor, topic.stored.open, topic.reader, services.commits, services.timers)
        self.dead_letters = RedeliveryLimit(services, self, topic.name, cursor, row or {})
        self.source = EntrySource(cursor, services, self.dispatch, self._set_aside)
        batch_indexes = services.settings.acknowledgmentAtBatchIndexLevelEnabled
        self._acks = AcknowledgementHandling(
            self, topic, cursor, self.source, services.commits, batch_indexes=batch_indexes
        )
        self.throttle = topic.limits.throttle(self.name, self.source, self.dispatch)
        self.key_shared = KeySharedMeta()
        """Request of the last consumers, if Key_Shared."""
        self._plugins = services.plugins.generation_of(self.type, properties, services.settings)
        """The plugin configuration of its dispatcher."""
        self.dispatcher: Dispatcher = self._make_dispatcher(self.type, self.key_shared)
        self.pending: PendingAcks | None = None
        """Acknowledgements of open transactions; None if there were none since it was loaded."""
        topic.stored.skip_aborted(cursor)
        for txn, rows in services.transactions.acks_on(cursor.ledger.topic_id, cursor.cursor_id):
            self.pending_acks().restore(txn, rows)

    def __str__(self) -> str:
        """Return Pulsar's description of a subscription in errors."""
        return f"PersistentSubscription{{topic={self.topic_name}, name={self.name}}}"

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its consumers."""
        return self.cursor.durable

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer of an Exclusive or Failover subscription."""
        dispatcher = self.dispatcher
        return dispatcher.active if isinstance(dispatcher, SingleActiveDispatcher) else None

    @property
    def key_ranges(self) -> dict[Consumer, list[tuple[int, int]]]:
        """The hash slots of each consumer of a Key_Shared subscription."""
        dispatcher = self.dispatcher
        return dispatcher.selector.ranges() if isinstance(dispatcher, KeySharedDispatcher) else {}

    @property
    def waiting_again(self) -> int:
        """Entries waiting for redelivery in a Shared or Key_Shared subscription."""
        dispatcher = self.dispatcher
        return dispatcher.waiting_again if isinstance(dispatcher, MultipleConsumersDispatcher) else 0

    @property
    def blocked(self) -> bool:
        """Whether its consumers together have too many unacknowledged messages."""
        dispatcher = self.dispatcher
        return isinstance(dispatcher, MultipleConsumersDispatcher) and dispatcher.blocked

    @property
    def awaits_failover(self) -> bool:
        """Whether a Failover subscription has chosen an active consumer that does not receive messages yet."""
        dispatcher = self.dispatcher
        return isinstance(dispatcher, SingleActiveDispatcher) and dispatcher.awaits_failover

    # Consumers

    def add_consumer(self, consumer: Consumer, sub_type: CommandSubscribe.SubType, now: Now) -> None:
        """Add a consumer. Raise ConsumerBusy if incompatible with existing ones, ServiceNotReady to retry later."""
        if self.fenced:
            raise ServiceNotReady("Subscription is fenced: it is being reset, try again")
        self._services.job_claims.check_consumer(self)
        if self.consumers:
            check_compatible(self.consumers[0], self.type, consumer, sub_type)
        if sub_type in ONE_ACTIVE and self.dead_letters.moving:
            raise ServiceNotReady("Dead letters of the subscription are still being committed, try again")
        if consumer.read_compacted:
            self.compacted_reading()
        asked = consumer.key_shared
        services = self._services
        plugins = services.plugins.generation_of(sub_type, self.properties, services.settings)
        if not self.consumers and (sub_type, asked, plugins) != (self.type, self.key_shared, self._plugins):
            self.dispatcher = self._make_dispatcher(sub_type, asked)
            self._plugins = plugins
            self.type = sub_type
            self.key_shared = asked
            self.limit_unacked(now)
        self.dispatcher.add(consumer, now)
        self.consumers.append(consumer)
        self.served = True
        if self.durable and self.unused_since:
            self._inactivity.consumer_connected(self, now)

    def set_replicated(self, replicated: bool, now: Now) -> None:
        """Store whether the subscription is replicated, which only affects its expiration."""
        if replicated == self.replicated or not self.durable:
            return
        self.replicated = replicated
        key = cursor_key(self.ledger.topic_id, self.cursor.cursor_id)
        row = dict(self._services.catalog.get(key) or {})
        row.pop("replicated", None)
        self._commits.put_row(key, row | ({"replicated": True} if replicated else {}))
        if not replicated:
            self._inactivity.expires_again(self, now)

    def compacted_reading(self) -> CompactedReading:
        """Return the state of reading the compacted view, created on first use."""
        source = self.source
        if source.compactable is None:
            source.compactable = CompactedReading(self.compaction, self.cursor, self._services, self.dispatch)
            key = cursor_key(self.ledger.topic_id, self.cursor.cursor_id)
            row = self._services.catalog.get(key) if self.durable else None
            source.compactable.restore(Behind.of((row or {}).get("compacted")))
        return source.compactable

    def log_trimmed(self, mark: Position) -> None:
        """Prepare for trimming up to ``mark``, to which the caller moves the non-durable mark-delete."""
        if self.source.compactable is not None:
            self.source.compactable.trimmed(mark)

    def limit_unacked(self, now: Now) -> None:
        """Apply the limits on unacknowledged messages per consumer and per subscription."""
        dispatcher, get = self.dispatcher, self._policies.get
        if isinstance(dispatcher, MultipleConsumersDispatcher):
            dispatcher.limit_unacked(get(MAX_UNACKED_PER_CONSUMER), get(MAX_UNACKED_PER_SUBSCRIPTION), now)

    def remove_consumer(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """Remove a consumer. ``lost``: its connection broke instead of it being closed."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self.removed = consumer.added_to(self.removed)
            held = lost and bool(consumer.held)
            self.dispatcher.remove(consumer, now, lost=lost)
            if not self.consumers and self.throttle.limiters:
                self.throttle.stop_waiting(now)
            if held and isinstance(self.dispatcher, MultipleConsumersDispatcher):
                self._commits.cursor_changed(self.cursor, now)  # redelivery counts
            if not self.consumers:
                self._is_unused(now)

    def _is_unused(self, now: Now) -> None:
        """Handle the removal of the last consumer."""
        if not self.durable and not self.fenced:
            self.remove(now)
        elif self.durable and self.stored.in_use:
            self._inactivity.consumers_left(self, now)
            self._upkeep.maybe_unused(now)

    def _make_dispatcher(self, sub_type: CommandSubscribe.SubType, asked: KeySharedMeta) -> Dispatcher:
        services = self._services
        self._set_delayed(sub_type)
        if sub_type == CommandSubscribe.Shared:
            choose = services.plugins.choice_of(services.settings.sharedConsumerSelection, self.properties)
            shared = SharedDispatcher(self.cursor, self.source, services, self.throttle, choose)
            shared.dead_letters = self.dead_letters
            return shared
        if sub_type == CommandSubscribe.Key_Shared:
            selector = services.plugins.selector_of(asked.mode, services.settings, self.properties)
            draining = asked.mode is KeySharedMode.AUTO_SPLIT and not asked.allow_out_of_order
            hash32 = key_hash_of(
                services, self.topic_name, self.cursor, self.properties, services.settings.keySharedHashing
            )
            by_key = KeySharedDispatcher(
                self.cursor, self.source, services, self.throttle, selector, draining=draining, hash32=hash32
            )
            by_key.dead_letters = self.dead_letters
            return by_key
        failover = sub_type == CommandSubscribe.Failover
        return SingleActiveDispatcher(
            self.cursor, self.source, services, self.throttle, failover=failover, topic=self.topic_name
        )

    def _set_delayed(self, sub_type: CommandSubscribe.SubType) -> None:
        """Set up delayed delivery; Exclusive and Failover subscriptions ignore delays."""
        if self.source.delayed is not None:
            self.source.delayed.clear()
            self.source.delayed = None
        if sub_type not in ONE_ACTIVE:
            delays = self.stored.delays
            self.source.delayed = Delayed(
                self.cursor, delays, self._policies, self._services, self.dispatch, self._set_aside
            )

    def delayed(self, now: Now) -> int:
        """Return the number of entries that are not due yet; before the first consumer, as if the type had delays."""
        if self.served and self.type in ONE_ACTIVE:
            return 0
        return count_early(self.cursor, self.stored.delays, cutoff_of(self._policies, self._services, now))

    # Dispatch

    def dispatch(self, now: Now) -> None:
        """Dispatch the available messages."""
        if self.consumers:
            self.dispatcher.dispatch(now)

    def flow(self, consumer: Consumer, permits: int, now: Now) -> None:
        """Add permits of a consumer, and dispatch to it."""
        consumer.add_permits(permits, now)
        self.dispatcher.flow(consumer, now)
        if self._termination.ended:
            self.notify_end_of_topic()

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Redeliver entries held by a consumer: those at ``positions``, or all with None."""
        self.dispatcher.redeliver(consumer, positions, now)
        if isinstance(self.dispatcher, MultipleConsumersDispatcher):
            self._commits.cursor_changed(self.cursor, now)  # redelivery counts

    def acknowledge(
        self, consumer: Consumer, ack: CommandAck, now: Now, done: Done | None, failed: Failed | None = None
    ) -> None:
        """Carry out an ACK command; see AcknowledgementHandling.acknowledge."""
        self._acks.acknowledge(consumer, ack, now, done, failed)

    @property
    def index_acks(self) -> IndexAcks:
        """See AcknowledgementHandling.index_acks."""
        return self._acks.index_acks

    def pending_acks(self) -> PendingAcks:
        """Return the acknowledgements of open transactions, created on first use."""
        if self.pending is None:
            self.pending = PendingAcks(self._services, self, self.topic_name, self.cursor, self.source, self.reader)
        return self.pending

    def acknowledged_in_transaction(self, positions: list[Position], now: Now) -> None:
        """Handle positions acknowledged by a committed transaction."""
        self._acks.settle(now, positions)
        for each in positions:
            self.dispatcher.acknowledged_unheld(each)
        for consumer in list(self.consumers):
            self.dispatcher.acknowledged(consumer, now)
        self.dispatch(now)
        if self._termination.ended:
            self.notify_end_of_topic()

    @property
    def life(self) -> object:
        """An object that is replaced whenever the dispatcher rewinds to mark-delete."""
        dispatcher = self.dispatcher
        return dispatcher.life if isinstance(dispatcher, MultipleConsumersDispatcher) else None

    @property
    def is_current(self) -> bool:
        """Whether its topic is loaded and has it."""
        return self.stored.in_use and self._topic.has(self)

    def check_clearable(self) -> None:
        """Raise NotFound if the subscription is gone, PreconditionFailed if it is being reset or closed."""
        if not self._topic.has(self):
            raise NotFound(f"Subscription {self.name} not found for topic {self.topic_name}")
        if self.fenced:
            raise PreconditionFailed("Failed for Subscription Busy: it is being reset or closed, try again")

    def remove(self, now: Now) -> None:
        """Delete the subscription."""
        self._topic.remove_subscription(self, now)

    @property
    def moving(self) -> bool:
        """Whether entries are being moved to another topic."""
        return self.dead_letters.moving or self.job_moves > 0

    def moved_on(self, entries: Iterable[Entry], now: Now) -> None:
        """Handle acknowledged entries that no consumer holds, such as dead letters or expired ones, and dispatch."""
        self._passed([(entry.ledger_id, entry.entry_id) for entry in entries], now)
        self.dispatch(now)

    def _set_aside(self, damage: EntryDamaged, now: Now) -> None:
        """See SetAside."""
        if self._services.quarantine.add(damage, self.cursor, now):
            self._passed([(damage.ledger_id, damage.first)], now)

    def _passed(self, acknowledged: Collection[tuple[int, int]], now: Now) -> None:
        """Handle acknowledged entries that no consumer holds."""
        self._acks.settle(now, acknowledged)
        for at in acknowledged:
            self.dispatcher.acknowledged_unheld(at)
        if not self.consumers:
            self._upkeep.maybe_unused(now)
        if self._termination.ended:
            self.notify_end_of_topic()

    def send_again(self, entries: list[Entry], now: Now) -> None:
        """Redeliver entries that could not be moved to the dead letter topic."""
        if isinstance(self.dispatcher, MultipleConsumersDispatcher):
            self.dispatcher.send_again(entries, now)

    def marked(self, now: Now) -> None:
        """Handle a mark-delete moved without a consumer; entries waiting for redelivery may be acknowledged now."""
        if self.durable:
            self._topic.trim(now)
            backlog = self._topic.backlog
            if backlog.blocked is not None:
                backlog.moved(now)
            self._upkeep.maybe_unused(now)
        self._acks.end_reset()
        self.dispatcher.acknowledged_unheld(self.cursor.mark_delete)
        if self._termination.ended:
            self.notify_end_of_topic()

    def notify_end_of_topic(self) -> None:
        """Notify the consumers of a terminated topic once everything is acknowledged; each only once."""
        if not self.cursor.backlog_entries:
            for consumer in self.consumers:
                consumer.notify_end_of_topic()

    def blocked_reason(self) -> BlockedReasonText:
        """Return the reason why nothing is being dispatched right now, and since when."""
        if self.fenced:
            return reason_with_text(Reason.RESETTING, self.dispatcher.standstill.since)
        reason, limiter, delayed = self.dispatcher.blocked_reason(), self.throttle.refusing, self.source.delayed
        until = delayed.next_at if reason == Reason.DELAYED and delayed is not None else 0
        if reason == Reason.END_OF_LOG and self._waits_for_transaction():
            reason = Reason.OPEN_TRANSACTION
        why = reason_with_text(reason, self.dispatcher.standstill.since, until)
        if reason == Reason.THROTTLED and limiter is not None:
            why = why._replace(text=f"{why.text}: {limiter.in_words}")
        return why

    def _waits_for_transaction(self) -> bool:
        """Return whether its next entry is held back by an open transaction."""
        ledger = self.ledger
        if self.source.position < ledger.read_limit or ledger.last_confirmed < ledger.read_limit:
            return False
        return self.cursor.next_unacked(Position(*ledger.read_limit)) <= ledger.last_confirmed

    # Cursor

    def seek(
        self,
        position: Position,
        ack_set: list[int],
        done: Done,
        failed: Callable[[Exception], None],
        now: Now,
        reset: Reset | None = None,
    ) -> None:
        """Reset the cursor to ``position``, within a batch if there is a set of its unacknowledged messages.

        The consumers are disconnected. ``done`` is called once that is durable.
        """
        if self.fenced:
            raise SubscriptionFenced("Failed to fence subscription")
        self.fenced = True
        self._reset = reset = reset or Reset()
        reading = self._reading_of_seek()
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now)

        def located(batch: HeldEntry | None, mark: Position, messages: int, size: int, when: Now) -> None:
            if reset.cancelled:
                return
            self._acks.begin_reset()
            self.cursor.reset(mark, messages, size)
            self.stored.skip_aborted(self.cursor)
            if batch is not None and not self.cursor.is_acked(*position):
                self.cursor.acknowledge_batch(position, batch.batch_size, bits_of(ack_set))
            self.resets += 1
            self.dead_letters.forget()
            if reading is not None:
                reading.start_at(position, mark)
                reading.schedule_write(when)
            self.source.rewind()
            self.dispatcher.rewind()
            self._unfence(reset)
            self._commits.cursor_changed(self.cursor, when)
            self._acks.end_reset()
            if self.durable:
                self._topic.trim(when)  # the cursor may have moved forward
                self._upkeep.subscribed(when)
                self._commits.after_commit(done)
            else:
                done(when)
                # Its client should reconnect; no other client can use a non-durable subscription.
                self._services.timers.at(when.monotonic + ABANDONED_SECONDS, self._remove_if_abandoned)

        def lost(error: Exception, when: Now) -> None:
            if not reset.cancelled:
                self._unfence(reset)
                failed(error)

        self.reader.locate_within(position, ack_set, located, lost, now)

    def _remove_if_abandoned(self, now: Now) -> None:
        if not self.consumers and not self.fenced:
            self.remove(now)

    def cancel(self, reset: Reset) -> None:
        """Leave the cursor where it is, and admit consumers again; without effect once the cursor is reset."""
        reset.cancelled = True
        self._unfence(reset)

    def _unfence(self, reset: Reset) -> None:
        if self._reset is reset:
            self.fenced, self._reset = False, None

    def seek_to_time(
        self,
        publish_time: int,
        done: Done,
        failed: Callable[[Exception], None],
        now: Now,
        reset: Reset | None = None,
    ) -> None:
        """Reset the cursor to the first entry published at ``publish_time`` (ms since 1970) or later."""

        def found(position: Position, when: Now) -> None:
            if reset is not None and reset.cancelled:
                return
            try:
                self.seek(position, [], done, failed, when, reset)
            except PersistenceError as error:
                failed(error)

        compaction = self.compaction if self._reading_of_seek() is not None else None
        find_first_since(self.reader, publish_time, found, failed, now, compaction=compaction)

    def _reading_of_seek(self) -> CompactedReading | None:
        """Return the state of reading the compacted view; create it before the first consumer, which may need it."""
        if self.source.compactable is None and not self.served and self.compaction.view is not None:
            return self.compacted_reading()
        return self.source.compactable

    def unsubscribe(self, consumer: Consumer, force: bool, now: Now) -> None:
        """Delete the subscription. Raise MetadataError if the consumer is not the only one, unless forced."""
        if not force and self.consumers != [consumer]:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        self.close(now, asked_by=consumer)
        self.remove(now)

    def close(self, now: Now, asked_by: Consumer | None = None) -> None:
        """Disconnect all consumers; notify all clients but that of ``asked_by``."""
        self.fenced, self._reset = True, None
        for consumer in list(self.consumers):
            self.remove_consumer(consumer, now)
            consumer.disconnect(now, tell=consumer is not asked_by)
