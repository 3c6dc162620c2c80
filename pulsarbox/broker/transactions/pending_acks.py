"""Pending acknowledgements of transactions: claimed at once, applied by a commit, released by an abort.

A claimed message is dispatched to no other consumer and cannot be acknowledged in another transaction. Source:
PendingAckHandleImpl of Pulsar 4.2. Unlike Pulsar, repeating an acknowledgement in the same transaction succeeds:
clients repeat it if they lost the response.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from pulsarbox.broker.dispatch.dispatcher import Dispatcher
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.read_limits import RETRY_SECONDS
from pulsarbox.broker.services import HasCommits, HasSettings, HasTimers
from pulsarbox.broker.subscription.consumer import Consumer, HeldEntry
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.broker.transactions.transaction import OpenTransaction
from pulsarbox.broker.transactions.transaction_table import TransactionTable
from pulsarbox.clock import Now
from pulsarbox.errors import (
    EntryDamaged,
    InvalidTxnStatus,
    NotAllowed,
    PersistenceError,
    PulsarBoxError,
    TransactionConflict,
)
from pulsarbox.names import TopicName
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.transaction_acks import Claimed, EntryClaim, TransactionAcks
from pulsarbox.storage.transactions import TxnId

log = logging.getLogger(__name__)

Done = Callable[[Now], None]
Refused = Callable[[PulsarBoxError], None]
SIDE_BY_SIDE = frozenset({CommandSubscribe.Shared, CommandSubscribe.Key_Shared})


class RequestedAck(NamedTuple):
    """One entry that an ACK names, with a bit for each message that it acknowledges."""

    at: Position
    entry: Claimed
    bits: int


class AckServices(HasSettings, HasCommits, HasTimers, Protocol):
    """The services of the broker that pending acknowledgements use."""

    @property
    def transactions(self) -> TransactionTable:
        """The transactions of the box."""


class ClaimingSubscription(Protocol):
    """A subscription whose messages are claimed."""

    type: CommandSubscribe.SubType
    consumers: list[Consumer]
    dispatcher: Dispatcher

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer of an Exclusive or Failover subscription."""

    @property
    def life(self) -> object:
        """An object that is replaced whenever the dispatcher rewinds to mark-delete."""

    def acknowledged_in_transaction(self, positions: list[Position], now: Now) -> None:
        """Handle positions acknowledged by a committed transaction."""

    def send_again(self, entries: list[Entry], now: Now) -> None:
        """Redeliver entries."""


class PendingAcks:
    """The pending acknowledgements of one subscription, which must be durable to have any."""

    def __init__(
        self,
        services: AckServices,
        subscription: ClaimingSubscription,
        topic: TopicName,
        cursor: ManagedCursor,
        source: EntrySource,
        reader: LedgerReader,
    ) -> None:
        self._services = services
        self._commits = services.commits
        self._subscription = subscription
        self._topic = topic
        self._cursor = cursor
        self._source = source
        self._reader = reader
        self._ledger = cursor.ledger
        self._key = (cursor.ledger.topic_id, cursor.cursor_id)
        self.claims = TransactionAcks(self._cursor.batch_acks.get)

    # Acknowledge

    def acknowledge(
        self, consumer: Consumer, ack: CommandAck, txn: OpenTransaction, done: Done, refused: Refused, now: Now
    ) -> None:
        """Acknowledge all messages that the command names, or none.

        ``done`` is called once that is durable, ``refused`` with TransactionConflict, InvalidTxnStatus or
        PersistenceError. Raises NotAllowed.
        """
        subscription = self._subscription
        if not self._cursor.durable:
            raise NotAllowed("A non-durable subscription cannot acknowledge in a transaction")
        if self._source.compacted is not None:
            raise NotAllowed("A consumer of the compacted view cannot acknowledge in a transaction")
        cumulative = ack.ack_type == CommandAck.Cumulative
        if cumulative and subscription.type in SIDE_BY_SIDE:
            self._commits.after_commit(done)  # as in Pulsar: without effect on these types
            return
        wanted: dict[Position, int] = {}
        for each in ack.message_id:
            left = bits_of(each.ack_set)
            if left and not self._services.settings.acknowledgmentAtBatchIndexLevelEnabled:
                continue  # only whole entries are acknowledged
            at = Position(each.ledgerId, each.entryId)
            wanted[at] = wanted.get(at, -1) & left  # messages still unacknowledged after all of these
        self._look_up(consumer, wanted, partial(self._claim, consumer, txn, cumulative, done, refused), refused, now)

    def _look_up(
        self,
        consumer: Consumer,
        wanted: dict[Position, int],
        found_all: Callable[[list[RequestedAck], Now], None],
        refused: Refused,
        now: Now,
    ) -> None:
        """Look up the wanted entries, reading those that no consumer holds."""
        known: list[RequestedAck] = []
        left, is_refused = len(wanted), False

        def found(at: Position, held: HeldEntry | None, when: Now) -> None:
            nonlocal left, is_refused
            left -= 1
            if is_refused:
                return
            if held is None:
                is_refused = True
                refused(
                    TransactionConflict(
                        f"Entry {at.ledger_id}:{at.entry_id} is already acknowledged, or does not exist"
                    )
                )
                return
            entry = Claimed(held.size, held.total_messages, held.total_bytes, held.batch_size)
            known.append(RequestedAck(at, entry, ((1 << held.batch_size) - 1) & ~wanted[at]))
            if not left:
                found_all(sorted(known), when)

        def unread(error: Exception, when: Now) -> None:
            nonlocal is_refused
            if not is_refused:
                is_refused = True
                refused(PersistenceError(f"Not acknowledged: {error}"))

        if not wanted:
            found_all([], now)
        for at in wanted:
            holder = self._holder(consumer, at)
            if holder is not None:
                found(at, holder.held[at], now)
            else:
                self._reader.look_up(at, partial(found, at), unread, now)

    def _holder(self, consumer: Consumer, at: tuple[int, int]) -> Consumer | None:
        return next((each for each in (consumer, *self._subscription.consumers) if at in each.held), None)

    def _claim(
        self,
        consumer: Consumer,
        txn: OpenTransaction,
        cumulative: bool,
        done: Done,
        refused: Refused,
        wanted: list[RequestedAck],
        now: Now,
    ) -> None:
        subscription = self._subscription
        if txn.ending is not None:
            refused(InvalidTxnStatus(f"Transaction {txn.id} is {txn.state}: nothing can be added to it"))
            return
        try:
            if cumulative:
                self._check_through(txn.id, wanted[-1].at if wanted else Position(-1, -1))
            else:
                for each in wanted:
                    self._check(txn.id, each)
        except TransactionConflict as error:
            refused(error)
            return
        row = self._row(wanted, cumulative)
        holders = self._put(txn.id, row)
        self._services.transactions.acknowledged(txn, self._topic, self._cursor.name, self._key, row)
        self._commits.after_commit(done)
        consumer.last_acked = now.wall
        for holder in dict.fromkeys((consumer, *holders)):
            subscription.dispatcher.acknowledged(holder, now)

    def _check(self, txn: TxnId, wanted: RequestedAck) -> None:
        at, claims = wanted.at, self.claims
        partly = self._cursor.batch_acks.get(at)
        unacked = (1 << wanted.entry.batch_size) - 1 if partly is None else partly[1]
        if self._cursor.is_acked(*at) or (wanted.bits and not wanted.bits & unacked):
            raise TransactionConflict(
                f"Transaction {txn} cannot acknowledge {at.ledger_id}:{at.entry_id}: it is already acknowledged"
            )
        claim = claims.entries.get(at)
        others = 0 if claim is None else claim.bits & ~claim.by.get(txn, 0)
        through = claims.through
        if others & wanted.bits or (through is not None and through[0] != txn and at <= through[1]):
            raise TransactionConflict(
                f"Transaction {txn} cannot acknowledge {at.ledger_id}:{at.entry_id}: another open transaction has"
                " acknowledged it"
            )

    def _check_through(self, txn: TxnId, at: Position) -> None:
        through, mark = self.claims.through, self._cursor.mark_delete
        if at <= mark:
            raise TransactionConflict(
                f"Transaction {txn} cannot acknowledge up to {at.ledger_id}:{at.entry_id}: it is already acknowledged"
            )
        of_others = any(set(claim.by) - {txn} for claim in self.claims.entries.values())
        if of_others or (through is not None and through[0] != txn):
            raise TransactionConflict(
                f"Transaction {txn} cannot acknowledge up to {at.ledger_id}:{at.entry_id}: another open transaction has"
                " acknowledged messages of the subscription"
            )

    @staticmethod
    def _row(wanted: list[RequestedAck], cumulative: bool) -> Row:
        """Return the row to store; for a cumulative one with "through", the last whole entry and its totals."""
        if not cumulative:
            return {"acks": [[*each.at, *each.entry, f"{each.bits:x}"] for each in wanted]}
        at, entry, bits = wanted[-1]
        if bits == (1 << entry.batch_size) - 1:
            return {"acks": [], "through": [*at, entry.total_messages, entry.total_bytes]}
        before = [
            at.ledger_id,
            at.entry_id - 1,
            entry.total_messages - entry.batch_size,
            entry.total_bytes - entry.size,
        ]
        return {"acks": [[*at, *entry, f"{bits:x}"]] if bits else [], "through": before}

    def _put(self, txn: TxnId, row: Row) -> list[Consumer]:
        """Claim the messages of a row; return the consumers that held them."""
        claims = self._cursor.claims = self.claims
        holders = []
        for ledger_id, entry_id, size, messages, total, batch_size, bits in row["acks"]:
            at = (ledger_id, entry_id)
            claim = claims.entries.get(at)
            if claim is None:
                claim = claims.entries[at] = EntryClaim(Claimed(size, messages, total, batch_size))
            claim.add(txn, int(bits, 16))
            holder = self._hold_less(at, claim)
            if holder is not None:
                holders.append(holder)
        if "through" in row:
            at = Position(*row["through"][:2])
            claims.through = (txn, max(at, claims.through[1]) if claims.through is not None else at)
        return holders

    def _hold_less(self, at: tuple[int, int], claim: EntryClaim) -> Consumer | None:
        """Release a claimed entry from its holder, or reduce it to the unclaimed messages of its batch."""
        left = self.claims.left(at, claim.entry.batch_size)
        holder = next((each for each in self._subscription.consumers if at in each.held), None)
        if holder is None:
            if not left:
                self._subscription.dispatcher.acknowledged_unheld(at)
        elif not left:
            holder.release(at)
            claim.passed = True
        else:
            held = holder.held[at]
            holder.unacked -= held.messages - left.bit_count()
            holder.held[at] = held._replace(messages=left.bit_count())
        return holder

    def restore(self, txn: OpenTransaction, rows: list[Row]) -> None:
        """Claim what an open transaction acknowledged before the topic was loaded."""
        for row in rows:
            self._put(txn.id, row)

    # End

    def commit(self, txn: OpenTransaction, now: Now) -> None:
        """Acknowledge the transaction's claims with the open batch."""
        rows = txn.acks.get(self._key)
        if not rows:
            return
        cursor, done = self._cursor, []
        for at, claim in [each for each in self.claims.entries.items() if txn.id in each[1].by]:
            self._acknowledge(at, claim, claim.drop(txn.id))
            done.append(Position(*at))
        through = [row["through"] for row in rows if "through" in row]
        if through:
            ledger_id, entry_id, messages, size = max(through)
            cursor.acknowledge_through(Position(ledger_id, entry_id), messages, size)
            done.append(Position(ledger_id, entry_id))
            for consumer in self._subscription.consumers:
                for at in [each for each in consumer.held if each <= (ledger_id, entry_id)]:
                    consumer.release(at)
        self._forget(txn.id)
        self._subscription.acknowledged_in_transaction(done, now)

    def _acknowledge(self, at: tuple[int, int], claim: EntryClaim, bits: int) -> None:
        cursor, entry = self._cursor, claim.entry
        if cursor.is_acked(*at):
            return
        partly = cursor.batch_acks.get(at)
        unacked = (1 << entry.batch_size) - 1 if partly is None else partly[1]
        if cursor.acknowledge_batch(Position(*at), entry.batch_size, unacked & ~bits):
            cursor.acknowledge(*at, entry.batch_size, entry.size, entry.total_messages, entry.total_bytes)

    def _forget(self, txn: TxnId) -> None:
        claims = self.claims
        for at in [at for at, claim in claims.entries.items() if not claim.by]:
            del claims.entries[at]
        if claims.through is not None and claims.through[0] == txn:
            claims.through = None
        if not claims:
            self._cursor.claims = None

    def abort(self, txn: OpenTransaction, now: Now) -> None:
        """Release the transaction's claims and redeliver those that the dispatcher has already passed."""
        again: list[Position] = []
        claims, subscription = self.claims, self._subscription
        through = claims.through is not None and claims.through[0] == txn.id
        for at, claim in [each for each in claims.entries.items() if txn.id in each[1].by]:
            claim.drop(txn.id)
            holder = next((each for each in subscription.consumers if at in each.held), None)
            if holder is not None:
                holder.release(at)
                subscription.dispatcher.acknowledged(holder, now)
            if (holder is not None or claim.passed) and not self._cursor.is_acked(*at):
                claim.passed = False
                again.append(Position(*at))
        self._forget(txn.id)
        if not again and not through:
            return
        for each in again:
            self._cursor.redelivered(each)
        self._commits.cursor_changed(self._cursor, now)
        active = subscription.active_consumer
        if subscription.type not in SIDE_BY_SIDE:
            if active is not None:
                subscription.dispatcher.redeliver(active, None, now)
            return
        for each in sorted(again):
            self._send_again(each, subscription.dispatcher, subscription.life, now)

    def _send_again(self, at: Position, dispatcher: Dispatcher, life: object, now: Now) -> None:
        subscription = self._subscription

        def found(entry: Entry, when: Now) -> None:
            if subscription.dispatcher is dispatcher and subscription.life is life:  # else it is reached anyway
                subscription.send_again([entry], when)

        def unread(error: Exception, when: Now) -> None:
            if isinstance(error, EntryDamaged):
                self._source.set_aside(error, when)
            elif at.ledger_id in self._ledger.ledgers:  # else trimmed, so acknowledged
                log.error("subscription %s cannot read entry %s: %s", self._cursor.name, at, error)
                again = partial(self._send_again, at, dispatcher, life)
                self._services.timers.at(when.monotonic + RETRY_SECONDS, again)

        if subscription.dispatcher is dispatcher and subscription.life is life:
            self._reader.read_entry(at, found, unread, now)
