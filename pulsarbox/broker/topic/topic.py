"""Topics in memory: producers and subscriptions, and for persistent topics the stored messages."""

from collections.abc import Callable, Iterator

from pulsarbox.broker.backlog.message_expiry import MessageExpiry
from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.core import Core
from pulsarbox.broker.dead_letter.retention_warning import warn
from pulsarbox.broker.dispatch import plugin_hash_registry
from pulsarbox.broker.limits.token_bucket import More
from pulsarbox.broker.limits.topic_limits import TopicLimits
from pulsarbox.broker.persistence.replication import Room
from pulsarbox.broker.policies.kinds.deduplication import DEDUPLICATION
from pulsarbox.broker.policies.kinds.delayed_delivery import check_delay
from pulsarbox.broker.security.revocation import close_forbidden
from pulsarbox.broker.stats.commit_stats import Traffic
from pulsarbox.broker.subscription.consumer import AnySubscription
from pulsarbox.broker.subscription.skip_and_clear import SkipAndClear
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.admission_policies import Admission
from pulsarbox.broker.topic.deduplication import Deduplication
from pulsarbox.broker.topic.entry_factory import make_entry
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.maintenance.maintenance_schedule import TopicMaintenance
from pulsarbox.broker.topic.maintenance.subscription_expiration import SubscriptionExpiration
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.producer_access import ProducerClaim, Producers, StoredProducers
from pulsarbox.broker.topic.termination import Termination
from pulsarbox.broker.topic.topic_copies import TopicCopies
from pulsarbox.clock import BEGINNING, Now
from pulsarbox.errors import PersistenceError, PreconditionFailed
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName
from pulsarbox.protocol.metadata import ParsedEntry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, MessageMetadata
from pulsarbox.storage.catalog import Row, cursor_key, topic_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.dead_letter_topics import for_dead_letters
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position, pack_entry
from pulsarbox.storage.recovery import StoredTopic
from pulsarbox.storage.transactions import TxnId

CHUNK, TRANSACTION = EntryFlag.CHUNK, EntryFlag.TRANSACTION


class Topic:
    """Base class of persistent and non-persistent topics: producers, policies and limits."""

    def __init__(self, core: Core, name: TopicName) -> None:
        self.core = core
        self.events = core.events
        self._commits = core.commits
        self.name = name
        self.policies = core.policies.of(name)
        core.policies.attach(self.policies)
        self.producers: Producers = Producers(str(name))
        self.limits = TopicLimits(core.limits, self.policies, self, self._published())
        self.admission = Admission(self, self.policies, core.settings.maxMessageSize)
        self.policies.on_change(self._policies_changed)
        self.gone_in = (0, 0)
        """Messages and bytes received from producers that have since been removed."""
        self.gone_out = (0, 0)
        """Messages and bytes dispatched by subscriptions that have since been removed."""

    def _published(self) -> More | None:
        """Return a counter of published messages and bytes; None if dispatch has no rate limit."""
        return None

    def producers_now(self) -> Iterator[AttachedProducer]:
        """See Members of limits."""
        return iter(self.producers)

    def throttled_subscriptions(self) -> "Iterator[Subscription]":
        """See Members of limits."""
        return iter(())

    def _policies_changed(self, now: Now) -> None:
        """Apply policies that may have changed."""
        self.admission.changed(now)
        close_forbidden(self.core.authorization, self.producers, self.all_subscriptions(), now)

    def last_sequence_id(self, name: str) -> int:
        """Return a producer's highest stored sequence id; -1 if unknown or deduplication is off."""
        return -1

    def is_settling(self, name: str) -> bool:
        """Return whether messages that are not durable yet may still change ``last_sequence_id``."""
        return False

    def admit(self, claim: ProducerClaim, now: Now, *, again: bool) -> None:
        """Open a producer or queue it; raises as Producers.add. ``again``: its client had opened it before."""
        self.producers.add(claim, now)

    def remove_producer(self, producer: AttachedProducer, now: Now) -> None:
        """Remove a producer that was closed or lost its connection."""
        if producer in self.producers:
            self.gone_in = self.gone_in[0] + producer.messages_in, self.gone_in[1] + producer.bytes_in
        producer.release_receipts(now)
        self.producers.remove(producer, now)

    def check_not_terminated(self) -> None:
        """Raise TopicTerminated if the topic was terminated."""

    def publish(self, producer: AttachedProducer, send: CommandSend, payload: bytes, now: Now) -> None:
        """Accept a message, batch or chunk. Raise PulsarBoxError, and store nothing, if it is rejected."""
        raise NotImplementedError

    def all_subscriptions(self) -> Iterator[AnySubscription]:
        """Return an iterator over the topic's subscriptions."""
        raise NotImplementedError

    def close(self, now: Now) -> None:
        """Disconnect all producers and consumers; their clients will reconnect."""
        self.producers.close(now)
        for subscription in list(self.all_subscriptions()):
            subscription.close(now)

    def subscription_removed(self, subscription: AnySubscription) -> None:
        """Add the counters of a removed subscription to the topic's totals."""
        messages, size = subscription.removed
        self.gone_out = self.gone_out[0] + messages, self.gone_out[1] + size

    def sample(self, now: Now) -> None:
        """Sample the counters of all connected producers and consumers; see RateWindow.sample."""
        for producer in self.producers:
            producer.sample(now)
        for subscription in self.all_subscriptions():
            for consumer in subscription.consumers:
                consumer.sample(now)

    def check_idle(self) -> None:
        """Raise PreconditionFailed if producers or consumers are connected."""
        producers = len(self.producers)
        consumers = sum(len(subscription.consumers) for subscription in self.all_subscriptions())
        if producers or consumers:
            raise PreconditionFailed(
                f"Topic {self.name} has {producers + consumers} connected producers/consumers:"
                f" {consumers} consumers, {producers} producers"
            )


class PersistentTopic(Topic):
    """A topic whose messages are stored."""

    offload_refused = False
    """Whether an offload to object storage was requested since the topic was loaded: a box refuses each."""

    def __init__(self, core: Core, name: TopicName, stored: StoredTopic) -> None:
        self.ledger = stored.ledger
        self.subscriptions: dict[str, Subscription] = {}
        self.copies: TopicCopies | None = None
        """The copies of its messages; None in a box with one data directory."""
        self.room: Room = core.commits.housekeeping
        """Decides whether its messages can be stored."""
        super().__init__(core, name)
        if core.commits.replication is not None:
            self.room = self.copies = TopicCopies(core.commits.replication, self.room, self.policies)
            self.policies.on_change(self.copies.policies_changed)
        self.producers: StoredProducers = StoredProducers(core.catalog, core.commits, name)
        self.stored = stored
        self.reader = LedgerReader(stored.ledger, core.reads)
        stored.in_use = True
        self.ended_transactions = {True: 0, False: 0}
        """Committed (True) and aborted (False) transactions with messages here since the topic was loaded."""
        self.traffic = Traffic(stored.ledger)
        policies, catalog, commits = self.policies, core.catalog, core.commits
        self.deadline = TopicDeadline(core, stored)
        self.ledgers = TopicLedgers(core, stored, policies, self.deadline)
        self.expiry = MessageExpiry(core, stored, policies, self.reader, self.deadline, self.clearings)
        self.backlog = QuotaEnforcement(core, self, stored, policies, self.reader, self.expiry, self.deadline)
        self.compaction = TopicCompaction(core, self, stored, policies, self.deadline)
        self.inactivity = SubscriptionExpiration(catalog, commits, policies, self.deadline, self.all_subscriptions)
        self.upkeep = TopicMaintenance(
            self, stored, policies, self.deadline, self.inactivity, catalog, commits, core.started
        )
        self.policies.on_change(self.upkeep.run)
        topic_row = catalog.get(topic_key(str(name))) or {}
        self.termination = Termination(self, stored, topic_row, catalog, commits)
        self.for_dead_letters = for_dead_letters(name, topic_row)
        self.warned_of_loss = False
        """Whether the log has already warned that dead letters will be lost."""
        self.policies.on_change(self.dispatch)  # messages may no longer be delayed
        self.deduplication: Deduplication | None = None
        self.update_deduplication()
        for cursor in stored.cursors.values():
            row = core.catalog.get(cursor_key(stored.topic_id, cursor.cursor_id)) or {}
            restored = self.restore_subscription(cursor, row.get("properties", {}), row)
            restored.unused_since = row.get("unused") or max(row.get("created", 0), core.started)

    def begin(self, now: Now) -> None:
        """Start statistics and maintenance after the topic was loaded."""
        self.traffic.begin(now)
        self.deadline.want(self.compaction.compact_if_due(now))

    def all_subscriptions(self) -> Iterator[Subscription]:
        """See Topic."""
        return iter(self.subscriptions.values())

    def has(self, subscription: Subscription) -> bool:
        """Return whether the subscription exists, rather than a later one of its name or none."""
        return self.subscriptions.get(subscription.name) is subscription

    def clearings(self) -> list[SkipAndClear]:
        """Return the clearings of the subscriptions."""
        return [subscription.clearing for subscription in self.subscriptions.values()]

    def _published(self) -> More:
        """See Topic."""
        ledger = self.ledger
        return lambda: (ledger.confirmed_messages, ledger.confirmed_bytes)

    def throttled_subscriptions(self) -> Iterator[Subscription]:
        """See Topic."""
        return iter(list(self.subscriptions.values()))

    def sample(self, now: Now) -> None:
        """See Topic.sample."""
        super().sample(now)
        self.traffic.sample(now)
        for subscription in self.subscriptions.values():
            subscription.clearing.sample(now)

    # Producers

    def _policies_changed(self, now: Now) -> None:
        """See Topic."""
        super()._policies_changed(now)
        self.update_deduplication()
        for subscription in list(self.subscriptions.values()):
            subscription.limit_unacked(now)

    def _deduplicates(self) -> bool:
        """Return whether messages are deduplicated; the only place where this is decided."""
        return self.policies.get(DEDUPLICATION)

    def update_deduplication(self) -> None:
        """Turn deduplication on or off. Off deletes the stored sequence ids, which would become stale."""
        if not self._deduplicates():
            self.deduplication = self.producers.deduplication = None
            names = self.stored.sequences.names()
            if names:
                self._commits.forget_producers(self.stored, names)
        elif self.deduplication is None:
            self.deduplication = Deduplication(
                self._commits, self.core.settings, self.core.started, self.stored, self.producers, self.copies
            )
            self.producers.deduplication = self.deduplication

    def admit(self, claim: ProducerClaim, now: Now, *, again: bool) -> None:
        """See Topic.admit. Also raises ProducerHeld or ProducerQuotaExceeded above the backlog quota."""
        self.backlog.admit(claim, now, again=again)

    def remove_producer(self, producer: AttachedProducer, now: Now) -> None:
        """See Topic.remove_producer."""
        super().remove_producer(producer, now)
        self.backlog.forget(producer, now)
        if self.producers.unused:
            self.upkeep.maybe_unused(now)

    def last_sequence_id(self, name: str) -> int:
        """See Topic.last_sequence_id."""
        last = self.stored.sequences.last_persisted(name)
        return -1 if last is None else last

    def is_settling(self, name: str) -> bool:
        """See Topic.is_settling."""
        return self.stored.sequences.is_pending(name)

    # Publishing

    def check_not_terminated(self) -> None:
        """See Topic.check_not_terminated."""
        self.termination.check()

    def publish(self, producer: AttachedProducer, send: CommandSend, payload: bytes, now: Now) -> None:
        """See Topic.publish; the receipt is sent once the entry is durable."""
        parsed = parse_entry(payload)
        txn = self._transaction(producer, send) if send.txnid_least_bits or send.txnid_most_bits else None
        if not self._accepts(producer, send, parsed.metadata, len(payload), now):
            return
        entry = self._entry(parsed, payload, now, 0 if txn is None else TRANSACTION)
        deduplication, ids = self.deduplication, (send.sequence_id, send.highest_sequence_id)
        if deduplication is not None and not deduplication.accepts(producer, ids, entry.flags, parsed, payload, now):
            return
        self._append(entry, payload, now, txn)
        self._commits.open.receipts.append((producer, *ids, entry.ledger_id, entry.entry_id))
        producer.published(entry.num_messages, len(payload), is_chunk=bool(entry.flags & CHUNK))

    def append(self, parsed: ParsedEntry, payload: bytes, now: Now) -> Entry:
        """Add a message to the open batch; the caller has checked that it may be stored."""
        entry = self._entry(parsed, payload, now)
        self._append(entry, payload, now)
        return entry

    def _transaction(self, producer: AttachedProducer, send: CommandSend) -> TxnId:
        """Return the transaction of a message. Raise NotAllowed if the message may not be part of it."""
        return self.core.transactions.of_send(send.txnid_most_bits, send.txnid_least_bits, producer).id

    def _entry(self, parsed: ParsedEntry, payload: bytes, now: Now, more: int = 0) -> Entry:
        return make_entry(self.ledger, self.ledgers.for_append(now), parsed, payload, now, more)

    def _append(self, entry: Entry, payload: bytes, now: Now, txn: TxnId | None = None) -> None:
        ledger = self.ledger
        ledger.append(entry)
        if self.expiry.on:
            self.expiry.published(entry)
        if txn is None:
            header = pack_entry(entry)
        else:
            header = pack_entry(entry, txn[0], txn[1])
            self.stored.open.record(txn, entry)
            self._commits.open_changed(self.stored.open)
        ledger_id, entry_id = entry.ledger_id, entry.entry_id
        if entry.deliver_at > entry.append_time:
            self.stored.delays.record(ledger_id, entry_id, entry.deliver_at, len(payload))
            self.ledgers.holds_delayed()
            if self.backlog.excludes:
                self.backlog.delayed_published(len(payload), entry.deliver_at)
            self._commits.delays_changed(self.stored.delays)
        group = self._commits.open
        group.batch.add_entry(ledger_id, entry_id, header, payload)
        appended = group.appended.get(self)
        if appended is None:
            group.appended[self] = [entry]
            if ledger.total_bytes >= self.ledgers.unsubscribed.count_at:
                self.ledgers.unsubscribed.count(now)
            if not ledger.changed:
                self._commits.ledger_changed(ledger)
        else:
            appended.append(entry)

    def _accepts(
        self, producer: AttachedProducer, send: CommandSend, metadata: MessageMetadata, size: int, now: Now
    ) -> bool:
        """Return whether a message may be stored. Raise if the message itself is invalid or the topic is terminated."""
        if self.termination.begun:
            self.termination.check()
        if self.admission.measures:
            self.admission.check_message(size, metadata)
        refusal = self.room.refusal
        if refusal is not None:
            self._refuse(producer, send, refusal, now)
            return False
        if self.ledger.total_bytes >= self.backlog.full_at and self.backlog.refuses(now):
            return False
        if metadata.deliver_at_time:
            check_delay(metadata, self.policies)
        return True

    def _refuse(self, producer: AttachedProducer, send: CommandSend, reason: str, now: Now) -> None:
        """Reject a message because the store accepts no writes; close the producer, to keep later ones in order."""
        error = PersistenceError(f"The message could not be stored: {reason}")
        producer.disconnect(now, (send.sequence_id, error))

    @property
    def is_consumed(self) -> bool:
        """Whether consumers are connected, so that published messages are worth caching."""
        return any(subscription.consumers for subscription in self.subscriptions.values())

    def confirmed(self, now: Now) -> None:
        """Dispatch newly confirmed entries, and run the checks that depend on the topic's size."""
        if self.ledgers.trim_due:
            self.trim(now)
        if self.ledger.confirmed_bytes >= self.ledgers.unsubscribed.count_at:
            self.ledgers.unsubscribed.count(now)
        if self.ledger.total_bytes >= self.backlog.full_at:
            self.backlog.confirmed(now)
        if self.ledger.confirmed_bytes > self.compaction.due_at:
            self.compaction.reached(now)
        self.dispatch(now)

    def transactions_ended(self, now: Now) -> None:
        """Dispatch entries of committed transactions, and skip those of aborted ones."""
        self.trim(now)
        self.confirmed(now)
        if self.expiry.on:
            self.upkeep.schedule(now)  # entries of the transaction may have expired already
        if self.termination.ended:
            for subscription in self.subscriptions.values():
                subscription.notify_end_of_topic()

    def trim(self, now: Now) -> None:
        """Drop the ledgers that neither a subscription nor retention needs."""
        self._dropped(self.ledgers.trim(now), now)

    def compacted(self, now: Now) -> None:
        """Handle a new compacted view: messages that only compaction retained may be dropped."""
        self.trim(now)
        if self.backlog.blocked is not None:
            self.backlog.moved(now)

    def delays_lost(self) -> None:
        """Handle that delayed entries could not be stored: the next entry checks the backlog again."""
        self.backlog.full_at = 0

    def delete_unused(self, now: Now) -> None:
        """Delete the topic, which has been inactive for too long."""
        self.core.inactive(self, now)

    def trim_unsubscribed(self, now: Now) -> bool:
        """Drop the oldest ledger with unsubscribed messages; return whether one could be dropped."""
        dropped = self.ledgers.trim_unsubscribed(now)
        self._dropped(dropped, now)
        if dropped:
            self.upkeep.schedule(now)
        return bool(dropped)

    def truncate(self, done: Callable[[Now], None], now: Now) -> None:
        """Clear the backlog of every subscription and drop all ledgers, regardless of retention."""
        waiting = len(self.subscriptions) + 1

        def cleared(when: Now) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._dropped(self.ledgers.truncate(when), when)
                done(when)

        for subscription in list(self.subscriptions.values()):
            subscription.clearing.clear(cleared, now)
        cleared(now)

    def maintain_ledgers(self, now: Now) -> int:
        """Close and drop the ledgers that are due; return when to check again (ms since 1970; 0: never)."""
        dropped, again_at = self.ledgers.maintain(now)
        self._dropped(dropped, now)
        return again_at

    def _dropped(self, ledgers: list[int], now: Now) -> None:
        """Move non-durable subscriptions past dropped ledgers, as in Pulsar."""
        if not ledgers:
            return
        first = next(iter(self.ledger.ledgers.values()))
        start = self.ledger.first_position()
        for subscription in list(self.subscriptions.values()):
            cursor = subscription.cursor
            subscription.source.dropped()
            if cursor.durable:
                continue
            for ledger_id in ledgers:
                cursor.forget_ledger(ledger_id)
            if cursor.mark_delete < start:
                subscription.log_trimmed(start)
                cursor.acknowledge_through(start, first.messages_before, first.bytes_before)
            subscription.dispatch(now)
        self.backlog.dropped(now)

    def dispatch(self, now: Now) -> None:
        """Dispatch the available messages of all subscriptions."""
        for subscription in list(self.subscriptions.values()):
            subscription.dispatch(now)

    # Subscriptions

    def subscribe(self, name: str, *, earliest: bool, properties: dict[str, str], now: Now) -> Subscription:
        """Create a durable subscription at the earliest or latest message; it is stored with the next commit."""
        ledger = self.ledger
        if earliest:
            info = next(iter(ledger.ledgers.values()))
            start = ledger.first_position(), info.messages_before, info.bytes_before
        else:
            start = ledger.last_confirmed, ledger.confirmed_messages, ledger.confirmed_bytes
        return self.subscribe_behind(name, start, properties, now)

    def subscribe_behind(
        self, name: str, start: tuple[Position, int, int], properties: dict[str, str], now: Now
    ) -> Subscription:
        """Create a durable subscription; ``start`` is its mark-delete position with the totals up to there."""
        ledger, commits = self.ledger, self._commits
        cursor = ManagedCursor(commits.new_id(), name, ledger)
        cursor.reset(*start)
        self.stored.cursors[cursor.cursor_id] = cursor
        row = {"name": name, "properties": properties, "created": now.wall}
        commits.put_row(cursor_key(ledger.topic_id, cursor.cursor_id), row)
        commits.cursor_changed(cursor, now)
        subscription = self.restore_subscription(cursor, properties)
        subscription.unused_since = now.wall
        self.upkeep.subscribed(now)
        return subscription

    def restore_subscription(
        self, cursor: ManagedCursor, properties: dict[str, str], row: Row | None = None
    ) -> Subscription:
        """Create the subscription of an existing cursor, from the cursor's row."""
        subscription = self.subscriptions[cursor.name] = Subscription(self.core, self, cursor, properties, row)
        return subscription

    def read_from(self, name: str, mark: Position, messages: int, size: int) -> Subscription:
        """Create a non-durable subscription with mark-delete position ``mark`` and the totals up to there."""
        cursor = ManagedCursor(0, name, self.ledger, durable=False)
        cursor.reset(mark, messages, size)
        return self.restore_subscription(cursor, {})

    def remove_subscription(self, subscription: Subscription, now: Now) -> None:
        """Remove a subscription. The next commit deletes a durable one's rows and the ledgers it alone needed."""
        self._forget_subscription(subscription)
        if subscription.name == COMPACTION_SUBSCRIPTION:
            self.compaction.forget(now)
        elif subscription.durable:
            self.ledgers.unsubscribed_from(now)
        if subscription.durable:
            self.trim(now)
            self.backlog.check_quotas(now)
            warn(self)
        self.upkeep.maybe_unused(now)

    def _forget_subscription(self, subscription: Subscription) -> None:
        if self.subscriptions.get(subscription.name) is subscription:
            del self.subscriptions[subscription.name]
            subscription.throttle.end(BEGINNING)
            self.subscription_removed(subscription)
        if subscription.durable:
            cursor_id = subscription.cursor.cursor_id
            self.stored.cursors.pop(cursor_id, None)
            self._commits.put_row(cursor_key(self.ledger.topic_id, cursor_id), None)
            plugin_hash_registry.forget(self.ledger.topic_id, cursor_id, self._commits, self.core.catalog)
            self._commits.forget_cursor(subscription.cursor)

    # Life

    def close(self, now: Now) -> None:
        """See Topic.close."""
        self.compaction.close(now)
        self.backlog.close(now)
        super().close(now)

    @property
    def is_connected(self) -> bool:
        """Whether producers or consumers are connected, or producers wait to be admitted."""
        return not self.producers.unused or bool(self.backlog.waiting) or self.is_consumed

    def can_unload(self) -> bool:
        """Return whether the topic is unused and idle, so that it can be unloaded."""
        return not any(sub.fenced or not sub.durable for sub in self.subscriptions.values()) and self.is_settled()

    def is_settled(self) -> bool:
        """Return whether no client is connected and no operation is in progress; true some time after ``close``."""
        if not self.producers.unused or self.backlog.waiting or self.reader.in_flight or not self.stored.in_use:
            return False
        if self.stored.open.ending_now or self.compaction.run:
            return False
        if self.expiry.under_way or self.backlog.evicting or self.termination.under_way:
            return False
        if self.ledger.total_messages != self.ledger.confirmed_messages:  # each entry has one or more
            return False
        waits = self._commits.waits_for
        return not any(sub.consumers or waits(sub.cursor) or sub.moving for sub in self.subscriptions.values())

    def unload(self) -> None:
        """Write the topic's state back to its rows; see ``can_unload``."""
        self.inactivity.note_unused()
        self.ledger.tail.clear()
        self._commits.unload(self.stored)
        self.stored.in_use = False

    def delete(self, now: Now) -> None:
        """Delete the topic with its subscriptions and ledgers; disconnected clients will try to reconnect."""
        self.close(now)
        for subscription in list(self.subscriptions.values()):
            self._forget_subscription(subscription)
        self.compaction.forget(now)
        self.core.compactions.records.pop(str(self.name), None)
        commits = self._commits
        self.deadline.forget()
        self.core.unsubscribed.forget(self.stored)
        for ledger_id in self.ledger.ledgers:
            commits.drop_ledger(self.ledger, ledger_id, now)
        commits.put_row(topic_key(str(self.name)), None)
        commits.forget_topic(self.stored)
        self.stored.in_use = False
