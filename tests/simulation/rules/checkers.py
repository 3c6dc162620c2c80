"""Registry of the rules, and the rules of publishing, acknowledgement, backlog and connections."""

from __future__ import annotations

from typing import Any, cast

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.pending_opening import Key
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.storage.record import Position
from tests.simulation.actors.ending import Ended
from tests.simulation.actors.undertaker import Buried
from tests.simulation.box import OUTBOX_LIMIT, READ_BYTES, BoxEnd
from tests.simulation.model.model import Model
from tests.simulation.model.pledges import ABORTED, claimed_bits, is_claimed
from tests.simulation.model.views import (
    NOWHERE,
    ConnView,
    ConsumerView,
    MessageKey,
    Pending,
    ProducerView,
    Request,
    SubView,
)
from tests.simulation.rules.checker import Checker
from tests.simulation.rules.delayed_checkers import DelaysKept, NotBefore
from tests.simulation.rules.dispatch_checkers import ChunksTogether, OneActive, Turns, UnackedLimits
from tests.simulation.rules.flow_checkers import Liveness, Tally, Why
from tests.simulation.rules.key_shared_checkers import KeyHolder, KeyOrder, KeyOwner
from tests.simulation.rules.once_checker import Once
from tests.simulation.rules.policy_checkers import POLICY_CHECKERS
from tests.simulation.rules.rate_checkers import Rates
from tests.simulation.rules.storage_checkers import GivenBack, Orphans, Recovered, Reloaded, Trimmed, Unloaded
from tests.simulation.rules.transaction_checkers import TRANSACTION_CHECKERS
from tests.simulation.rules.unsubscribed_checker import Unsubscribed

CLOSES = {"CLOSE_PRODUCER": "PRODUCER", "CLOSE_CONSUMER": "SUBSCRIBE"}
"""Requests that each close command abandons."""
REPLY_SECONDS = 20.0
"""Virtual seconds within which a request must be answered, repeated commit failures and reads included."""


class NothingLost(Checker):
    """Every receipted entry that is not trimmed is read back once, at its position, and no unsent message is read."""

    rule = "nothing-lost"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.receipts: dict[str, dict[Position, list[MessageKey]]] = {}

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        if position is not None and position != NOWHERE:
            self.receipts.setdefault(producer.topic.name, {})[position] = pending.keys

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """See Checker."""
        trimmed = self.model.topic(topic).trimmed
        for position, keys in self.receipts.get(topic, {}).items():
            if position.ledger_id in trimmed or self._was_aborted(topic, position):
                continue  # trimming is judged by the rule "trimmed"
            self.check(position in entries, "an entry with a receipt cannot be read back:", topic, position)
            self.check(entries[position] == keys, "an entry reads as another one:", topic, position)
        copies: set[MessageKey] = set()
        for position, keys in entries.items():
            self.check(not copies & set(keys), "one copy of a message is there twice:", topic, position, keys[0])
            copies.update(keys)

    def _was_aborted(self, topic: str, position: Position) -> bool:
        return self.model.pledges.state(self.model.topic(topic).entries[position]) == ABORTED


class Order(Checker):
    """The log has each producer's messages in publish order; a single active consumer receives the log in order."""

    rule = "order"

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """See Checker."""
        last: dict[str, tuple[int, int]] = {}
        for position, keys in entries.items():
            for key in keys:
                before = last.get(key.producer, (-1, -1))
                self.check(before < (key.session, key.sequence), "messages changed places:", position, key, before)
                last[key.producer] = (key.session, key.sequence)

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        self.check(in_order or position is None, "a receipt overtakes another:", pending.sequence_id)
        self.check(not producer.sent_away, "an answer to who was told to come back before:", pending.sequence_id)

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or consumer.sub.side_by_side or consumer.sub.seeks:
            return
        topic, last = consumer.sub.topic, consumer.last
        entry = topic.entries.get(position)
        if entry is None:
            return
        fresh = last is None or consumer.may_rewind or (consumer.may_go_back and position <= last)
        self.check(fresh or (last is not None and last < position), "delivered backwards:", last, position)
        start = 0 if fresh or last is None else topic.entries[last].index + 1
        for index in range(start, entry.index):
            skipped = topic.order[index]
            sub = consumer.sub
            known = skipped in sub.left and skipped not in sub.unsure and not is_claimed(sub, skipped)
            known = known and not self.model.pledges.unsettled
            self.check(not known, "an entry is left out:", skipped, "before", position, sub.name)


class Permits(Checker):
    """A consumer never receives more than its permits; only a batch may exceed them, by one entry."""

    rule = "permits"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        self.check(consumer is not None, "delivered to a consumer that is not open:", body.consumer_id)
        if consumer is not None:
            self.check(consumer.permits > 0, "delivered without a permit:", position, consumer.permits)


class OneHolder(Checker):
    """On Shared and Key_Shared subscriptions, an entry is pending at one consumer until it leaves or returns it."""

    rule = "one-holder"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is not None and consumer.sub.side_by_side and not consumer.sub.seeks:
            owner = consumer.sub.owner.get(position)
            self.check(owner is None, "delivered while it is pending:", position, consumer.sub.name)


class AckedStays(Checker):
    """An acknowledged entry is never redelivered after the response; before the response, only after a crash."""

    rule = "acked-stays"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or consumer.sub.seeks or position not in consumer.sub.topic.entries:
            return
        sub = consumer.sub
        entry = sub.topic.entries[position]
        bits = bits_of(body.ack_set) or entry.all_bits
        self.check(not bits & sub.sure.get(position, 0), "delivered after the answer to its ack:", position, sub.name)
        if position not in sub.unsure:
            left = sub.left.get(position, 0)
            right = bits == left & ~claimed_bits(sub, position) or (self.model.pledges.unsettled and not bits & ~left)
            self.check(right, "delivered after its ack:", position, sub.name, bin(bits))

    def recovered(self, sub: SubView) -> None:
        """See Checker."""
        if sub.seeks:
            return
        for position, bits in sub.sure.items():
            entry = sub.topic.entries[position]
            partly = sub.cursor.batch_acks.get(position)
            left = 0 if sub.cursor.is_acked(*position) else partly[1] if partly is not None else entry.all_bits
            self.check(not left & bits, "an answered ack is forgotten by a crash:", position, sub.name)
        for position, bits in sub.left.items():
            partly = sub.cursor.batch_acks.get(position)
            left = 0 if sub.cursor.is_acked(*position) else partly[1] if partly is not None else bits
            kept = position in sub.unsure or not bits & ~left
            self.check(kept, "a crash acknowledges what nobody has:", position, sub.name)

    def lost_subscription(self, sub: SubView) -> None:
        """See Checker."""
        self.check(not sub.durable or not sub.answered, "a subscription is lost:", sub.topic.name, sub.name)

    def revived_subscription(self, sub: SubView) -> None:
        """See Checker."""
        self.check(False, "a deleted subscription is back:", sub.topic.name, sub.name)


class Visibility(Checker):
    """No entry, receipt or message ID is visible to a client before its commit has returned."""

    rule = "visibility"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is not None:
            self.check(position in consumer.sub.topic.entries, "delivered before it is durable:", position)

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        if position is not None and position != NOWHERE:
            entry = producer.topic.entries.get(position)
            self.check(entry is not None, "a receipt before it is durable:", position)
            self.check(entry is not None and entry.keys == pending.keys, "a receipt for another entry:", position)

    def last_message_id(self, position: Position) -> None:
        """See Checker."""
        known = any(position in topic.entries for topic in self.model.topics.values())
        self.check(known or position.entry_id < 0, "a last message id before it is durable:", position)


class Backlog(Checker):
    """Backlog = published - acknowledged, in messages, entries and bytes, after a recovery as well."""

    rule = "backlog"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def turn(self) -> None:
        """See Checker."""
        self._turns += 1
        if self._turns % 3 == 0:
            self._check_all()

    def _check_all(self) -> None:
        for view in self.model.subs():
            sub = self.model.subscription(view)
            if sub is None or view.seeks or view.unsure or self.model.pledges.unsettled:
                continue
            cursor = sub.cursor
            found = (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes)
            right = (view.messages, len(view.left), view.bytes)
            self.check(found == right, "backlog", view.topic.name, view.name, found, "should be", right)

    def recovered(self, sub: SubView) -> None:
        """See Checker: compare the totals of the recovered cursor with its own acknowledgements."""
        left = SubView(sub.topic, sub.name, sub.cursor)
        left.adopt()
        found = (sub.cursor.backlog_messages, sub.cursor.backlog_entries, sub.cursor.backlog_bytes)
        right = (left.messages, len(left.left), left.bytes)
        self.check(found == right, "backlog after a recovery", sub.topic.name, sub.name, found, "should be", right)

    def finished(self) -> None:
        """See Checker."""
        self._check_all()


class RedeliveryCounts(Checker):
    """The redelivery count of a delivery is the number of redelivery requests and lost holders of the entry."""

    rule = "redelivery-counts"

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None:
            return
        right = consumer.sub.counts.get(position, 0) if consumer.sub.side_by_side else 0
        found = body.redelivery_count
        self.check(found <= right, "redelivery count", position, found, "should be", right)
        if consumer.sub.exact_counts:
            self.check(found == right, "redelivery count", position, found, "should be", right)

    def recovered(self, sub: SubView) -> None:
        """See Checker."""
        if sub.seeks or not sub.exact_counts:
            return
        for position, count in sub.cursor.redeliveries.items():
            most = sub.asked.get(Position(*position), 0)
            self.check(count <= most, "a crash makes redeliveries:", position, count, most)
        for position, least in sub.sure_counts.items():
            kept = sub.cursor.is_acked(*position) or sub.cursor.redelivery_count(position) >= least
            self.check(kept, "a crash forgets redeliveries:", position, least, sub.cursor.redelivery_count(position))


class OneReply(Checker):
    """Every request gets one reply in time, or its connection closes; a producer that has to wait is exempt."""

    rule = "one-reply"

    def turn(self) -> None:
        """See Checker."""
        late = self.model.world.monotonic - REPLY_SECONDS
        for conn in self.model.conns.values():
            for request in conn.requests.values():
                held = request.held and not request.given_up
                self.check(held or request.at > late, "no reply for", REPLY_SECONDS, "s to", request.kind, request.name)

    def replied(self, conn: ConnView, request_id: int, request: Request | None, name: str) -> None:
        """See Checker."""
        known = request is not None or conn.aborted
        self.check(known, "a reply to no request, or a second one:", name, request_id)
        if request is not None:
            self.check(not request.given_up or name != "SUCCESS", "opened after it was closed:", request.kind)
            if request.kind in CLOSES:
                kind, object_id = CLOSES[request.kind], request.object_id
                late = [each for each in conn.requests.values() if each.given_up and each.object_id == object_id]
                self.check(kind not in [each.kind for each in late], "closed before it is answered:", kind, object_id)

    def settled_nothing(self, conn: ConnView, sequence_id: int) -> None:
        """See Checker."""
        self.check(conn.aborted, "a receipt for no message:", sequence_id)

    def finished(self) -> None:
        """See Checker."""
        for conn in self.model.conns.values():
            waiting = list(conn.requests.values())
            self.check(not waiting, "requests without a reply:", [request.kind for request in waiting])
            for producer in conn.producers.values():
                self.check(not producer.pending, "messages without a receipt:", producer.name, len(producer.pending))


class Attached(Checker):
    """Every producer or consumer of a topic is open on its connection, or is being opened there."""

    rule = "attached"

    def turn(self) -> None:
        """See Checker."""
        pending: set[tuple[ServerCnx, Key]] = set()
        for topic in self.model.box.broker.topics:
            for producer in topic.producers:
                if producer.cnx.producers.get(producer.producer_id) is not producer:
                    self._look(cast(ServerCnx, producer.cnx), ("producer", producer.producer_id), pending)
            for subscription in topic.all_subscriptions():
                for consumer in subscription.consumers:
                    cnx = cast(ServerCnx, consumer.cnx)
                    if cnx.consumers.get(consumer.consumer_id) is not consumer:
                        self._look(cnx, ("consumer", consumer.consumer_id), pending)

    def _look(self, cnx: ServerCnx, key: Key, pending: set[tuple[ServerCnx, Key]]) -> None:
        self.check(key in cnx.opening, "on a topic, and on no connection:", *key, cnx.number)
        self.check((cnx, key) not in pending, "on a topic twice:", *key, cnx.number)
        pending.add((cnx, key))


class Names(Checker):
    """Each generated producer name is assigned only once, across crashes too."""

    rule = "names"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._given: set[str] = set()

    def named(self, request: Request, name: str) -> None:
        """See Checker."""
        if not request.name:
            self.check(name not in self._given, "a name is given twice:", name)
            self._given.add(name)


class KeepAlive(Checker):
    """An unresponsive connection is closed."""

    rule = "keep-alive"

    def turn(self) -> None:
        """See Checker."""
        world, box = self.model.world, self.model.box
        limit = world.monotonic - 3 * box.settings.keepAliveIntervalSeconds
        for conn in self.model.conns.values():
            self.check(conn.heard > limit, "a silent connection stays:", conn.end.link.number, conn.heard)


class Memory(Checker):
    """The memory that the broker uses for its clients is bounded."""

    rule = "memory"

    def outbox_taken(self, end: BoxEnd) -> None:
        """See Checker."""
        size = end.outbox.size
        self.check(size <= OUTBOX_LIMIT + READ_BYTES + 6_000, "an outbox of", size, "bytes")

    def turn(self) -> None:
        """See Checker."""
        broker = self.model.box.broker
        commits = broker.commits
        self.check(commits.open.batch.size <= commits._max_batch + 60_000, "a batch of", commits.open.batch.size)
        tail, limit = commits.tail_cache.size, commits.tail_cache.limit
        self.check(tail <= limit or len(commits.tail_cache._spans) == 1, "a tail cache of", tail)
        for end in self.model.box.ends.values():
            self.check(end.decoder.allocated <= 256 * 1024, "a decoder of", end.decoder.allocated)


class MarkDelete(Checker):
    """The mark-delete position only moves forward, except by a seek."""

    rule = "mark-delete"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._last: dict[SubView, Position] = {}

    def turn(self) -> None:
        """See Checker."""
        for sub in self.model.subs():
            mark = sub.cursor.mark_delete
            last = self._last.get(sub)
            if last is not None and not sub.rewound and not sub.seeks:
                self.check(mark >= last, "mark-delete went back:", sub.name, last, mark)
            self._last[sub] = mark
            sub.rewound = sub.rewound and bool(sub.seeks)

    def sought(self, sub: SubView, start: Position | None) -> None:
        """See Checker."""
        sub.rewound = True
        if start is not None and (not sub.topic.order or start <= sub.topic.order[-1]):
            wrong = [position for position in sub.left if position < start]
            self.check(not wrong, "a seek leaves unacknowledged what lies before it:", start, wrong[:3])


CHECKERS: tuple[type[Checker], ...] = (
    Visibility,
    NothingLost,
    Order,
    Once,
    Permits,
    OneHolder,
    OneActive,
    Turns,
    ChunksTogether,
    KeyOwner,
    KeyHolder,
    KeyOrder,
    NotBefore,
    DelaysKept,
    AckedStays,
    UnackedLimits,
    Rates,
    Tally,
    RedeliveryCounts,
    OneReply,
    Attached,
    Names,
    KeepAlive,
    Memory,
    MarkDelete,
    Backlog,
    Recovered,
    Trimmed,
    Reloaded,
    Orphans,
    GivenBack,
    Unloaded,
    Ended,
    Unsubscribed,
    *POLICY_CHECKERS,
    *TRANSACTION_CHECKERS,
    Buried,
    Liveness,
    Why,
)
