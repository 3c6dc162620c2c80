"""The model beside the box: observes every frame and every batch, and notifies the checkers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pulsarbox.broker.policies.policy import Policy as Ruled
from pulsarbox.broker.subscription.subscription import TYPE_NAMES, Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.frames import Frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSubscribe, KeySharedMode
from pulsarbox.protocol.violations import ProtocolError
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry, Meta, Position, unpack_batch
from tests.simulation.box import BoxEnd, SimulatedBox
from tests.simulation.model import acknowledgements, pledges, receipts, unasked
from tests.simulation.model.history import brief
from tests.simulation.model.letters import Letter, Letters, grave_of
from tests.simulation.model.tables import Tables, is_seen
from tests.simulation.model.views import (
    ConnView,
    ConsumerView,
    EntryView,
    Pending,
    Policy,
    Request,
    SubView,
    TopicView,
    message_keys,
    position_of,
)
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.model.rulebook import Rulebook
    from tests.simulation.rules.checker import Checker

T = TypeVar("T")
NO_REQUEST = 2**64 - 1


class Model:
    """The expected state of the box, derived from frames and batches."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.box: SimulatedBox
        self.checkers: list[Checker] = []
        self.topics: dict[str, TopicView] = {}
        self.conns: dict[BoxEnd, ConnView] = {}
        self.confirmed_through = 0
        """Position of the last batch whose commit has returned, or that a recovery has replayed."""
        self.deliveries: Counter[str] = Counter()
        """Number of deliveries by subscription type."""
        self.unloads = 0
        self.trims = 0
        self.holes = 0
        """Number of trims that skipped an earlier ledger."""
        self.duplicates = 0
        self.latest_wall = 0
        """The latest wall clock time so far (ms since 1970); the clock may be set back."""
        self.spares = False
        """Whether the box may acknowledge undelayed messages between delayed ones by itself."""
        self.delayed_deliveries = 0
        """Number of deliveries of delayed entries."""
        self.book: Rulebook | None = None
        """Policies set by operators; None without operators."""
        self.let_go = self.expired_subscriptions = self.held = self.refusals = 0
        """Number of messages and subscriptions removed by the box itself, of suspended producers, and of rejections."""
        self.started_at, self.started_wall = 0.0, 0
        """Time of the last start, on the monotonic and the wall clock."""
        self.letters, self.tables = Letters(), Tables()
        self.pledges = pledges.Pledges(self)
        self._unheard: list[SubView] = []
        """Subscriptions with a seek whose response was lost with the connection."""
        self.sending: Pending | None = None
        """The message published by the frame that the core is processing."""

    def topic(self, name: str) -> TopicView:
        """Return a topic; create it on first use."""
        return self.topics.setdefault(name, TopicView(name))

    def subscription(self, view: SubView) -> Subscription | None:
        """Return the core's subscription if it is loaded."""
        topic = self.box.topic(view.topic.name)
        found = topic.subscriptions.get(view.name) if topic is not None else None
        return found if found is not None and found.cursor is view.cursor else None

    def ruled(self, topic: str, policy: Ruled[T]) -> T:
        """Return the value of a policy that applies to a topic."""
        value: T = policy.broker(self.box.settings) if self.book is None else self.book.get(topic, policy)
        return value

    def subs(self) -> list[SubView]:
        """Return all subscriptions."""
        return [sub for topic in self.topics.values() for sub in topic.subs.values()]

    # Life cycle of the box

    def started(self) -> None:
        """Compare the recovered state with the model."""
        self.started_at, self.started_wall = self.world.monotonic, self.world.now.wall
        for checker in self.checkers:
            checker.started()
        end = self.box.found.next_position
        for position in range(self.confirmed_through + 1, end):
            self._confirm(self.box.disk.value(position))
        self.confirmed_through = end - 1
        for topic in self.topics.values():
            self._recover(topic)

    def _recover(self, topic: TopicView) -> None:
        stored = self.box.found.topic(topic.name)
        found = {} if stored is None else {each.name: each for each in stored.cursors.values() if is_seen(each)}
        topic.core, topic.seen = None, (0, 0, 0)
        left = set() if stored is None else set(stored.ledger.ledgers)
        for checker in self.checkers:
            checker.recovered_topic(topic, left)
        for ledger_id in topic.trimmed & left:  # the trim was not durable
            topic.trimmed.discard(ledger_id)
            topic.ledgers[ledger_id] = [p for p in topic.order if p.ledger_id == ledger_id]
        for view in [*topic.subs.values()]:
            if not view.durable or view.name not in found:
                for checker in self.checkers:
                    checker.lost_subscription(view)
                del topic.subs[view.name]
        for name, cursor in found.items():
            known = topic.subs.get(name)
            if known is None or known.cursor.cursor_id != cursor.cursor_id:
                known = self._revived(topic, cursor)
            known.cursor = cursor
            for checker in self.checkers:
                checker.recovered(known)
            known.adopt()
            known.owner.clear()
            known.forget_deliveries()
            known.seeks, known.rewound, known.exact_counts = 0, True, True
        topic.removed.clear()

    def _revived(self, topic: TopicView, cursor: ManagedCursor) -> SubView:
        """Restore a subscription whose deletion or creation was cut off by a crash."""
        known = topic.removed.get(cursor.name)
        if known is None or known.cursor.cursor_id != cursor.cursor_id:
            known = SubView(topic, cursor.name, cursor)
        topic.subs[cursor.name] = known
        if known.removal_answered:
            for checker in self.checkers:
                checker.revived_subscription(known)
        known.seeks = 1
        return known

    def crashed(self) -> None:
        """Drop all connections after a power failure."""
        for conn in self.conns.values():
            for consumer in conn.consumers.values():
                consumer.open = False
        self.conns.clear()
        self._unheard.clear()

    def committed(self, batch: Batch) -> None:
        """Apply a batch before its commit is reported to the core."""
        self.confirmed_through = batch.position
        self._confirm(batch.value())

    def _confirm(self, value: bytes) -> None:
        for offset, record in unpack_batch(value):
            if self.tables.takes(record):
                continue
            if self.letters.rises(record):
                continue
            self.letters.put_back(record, value[offset + 1], self.subs)
            letter = self.letters.read(record, value[offset + 1])
            if letter is not None:
                self._moved(letter)
            elif isinstance(record, Entry):
                name = message_keys(record.body)[0].topic
                topic = self.topic(name if self.letters.pending is None else grave_of(name))
                self.tables.stored(topic.name, record)
                entry = EntryView.of(record, topic)
                for checker in self.checkers:
                    checker.stored(topic, entry.position)
                topic.append(entry)
                self.pledges.came(topic, entry)
                for checker in self.checkers:
                    checker.came(topic, entry)
            elif isinstance(record, Meta):
                self.pledges.written(record)
                for checker in self.checkers:
                    checker.written(record)
                if record.key.startswith(b"ledger/") and record.value is None:
                    self._gone(int(record.key.rpartition(b"/")[2], 16))

    def _moved(self, letter: Letter) -> None:
        """Apply the durable move of a dead letter and the acknowledgement of its original."""
        sub = next((each for each in self.subs() if each.cursor.cursor_id == letter.cursor_id), None)
        for checker in self.checkers:
            checker.moved(sub, letter)
        if sub is not None and not sub.seeks:
            entry = sub.topic.entries[letter.origin]
            sub.set(entry, 0)
            sub.acked(letter.origin)
            sub.sure[letter.origin] = entry.all_bits

    def _gone(self, ledger_id: int) -> None:
        """Apply the durable deletion of a ledger's row."""
        for topic in self.topics.values():
            if ledger_id in topic.ledgers:  # its topic is not loaded
                self._trimmed(topic, ledger_id)
            if ledger_id in topic.trimmed:
                topic.gone.add(ledger_id)

    # Loading and unloading of topics, trimming of ledgers

    def refresh(self, *, quiet: bool = True) -> None:
        """Update the loaded topics; once the box is ``quiet``, also their ledgers."""
        for topic in self.topics.values():
            core = self.box.topic(topic.name)
            if core is not topic.core:
                self.unloads += core is None
                topic.core, topic.seen = core, (0, 0, 0)
                if core is not None:
                    self._reloaded(topic, core)
            if self.book is not None:
                unasked.look(self, topic)
            if core is None or not quiet:
                continue
            ledgers = core.ledger.ledgers
            seen = len(ledgers), next(iter(ledgers)), core.ledger.current.ledger_id
            if seen != topic.seen:
                topic.seen = seen
                for ledger_id in [each for each in topic.ledgers if each not in ledgers]:
                    self._trimmed(topic, ledger_id)

    def _reloaded(self, topic: TopicView, core: PersistentTopic) -> None:
        topic.rewound_at = self.world.monotonic
        for view in topic.subs.values():
            subscription = core.subscriptions.get(view.name)
            if view.durable and subscription is not None and subscription.cursor.cursor_id == view.cursor.cursor_id:
                view.cursor, view.marked = subscription.cursor, None
                if self.book is not None:
                    unasked.look_at(self, view)  # loaded in order to expire something
                for checker in self.checkers:
                    checker.reloaded(view)

    def _trimmed(self, topic: TopicView, ledger_id: int) -> None:
        self.trims += 1
        self.holes += ledger_id > min(topic.ledgers)
        self.world.note("trimmed", topic.name, ledger_id)
        positions = topic.ledgers.pop(ledger_id)
        topic.trimmed.add(ledger_id)
        for checker in self.checkers:
            checker.trimmed(topic, ledger_id, positions)
        for sub in topic.subs.values():
            if not sub.durable:
                for position in positions:
                    sub.set(topic.entries[position], 0)
                    sub.acked(position)

    def turn(self) -> None:
        """Update the model and run the checkers when the box is idle."""
        self.refresh()
        if self.box.disk.reads_under_way == 0:
            for sub in self._unheard:
                sub.seeks -= 1
                sub.rewound = True
                sub.adopt()
                sub.doubt_deliveries()
            self._unheard.clear()
            for sub in self.subs():
                if sub.unsure:
                    sub.adopt()
        self._settle_counts()
        self.pledges.let_go_of_claimed()
        for checker in self.checkers:
            checker.turn()

    def _settle_counts(self) -> None:
        commits = self.box.broker.commits
        if commits.in_flight is None and not commits.open.batch:
            for sub in self.subs():
                if sub.fresh_counts and not commits.waits_for(sub.cursor):
                    counts = {position: sub.counts.get(position, 0) for position in sub.fresh_counts}
                    sub.sure_counts.update(counts)
                    sub.fresh_counts.clear()

    # Connections

    def connected(self, end: BoxEnd) -> None:
        """Add a connection."""
        self.conns[end] = ConnView(end, heard=self.world.monotonic)

    def disconnected(self, end: BoxEnd) -> None:
        """Remove a closed connection, at the same time as the core."""
        conn = self.conns.pop(end)
        self._unheard += [each.sub for each in conn.requests.values() if each.kind == "SEEK" and each.sub is not None]
        for consumer in list(conn.consumers.values()):
            self._close(consumer, lost=True)

    def aborted(self, end: BoxEnd) -> None:
        """Mark a connection that violated the protocol."""
        self.conns[end].aborted = True

    def outbox_taken(self, end: BoxEnd) -> None:
        """Notify the checkers before the shell drains an outbox."""
        for checker in self.checkers:
            checker.outbox_taken(end)

    def _close(self, consumer: ConsumerView, *, lost: bool = False) -> None:
        consumer.open = False
        consumer.conn.consumers.pop(consumer.consumer_id, None)
        sub = consumer.sub
        sub.idle_since = self.world.now.wall
        for position in [p for p, owner in sub.owner.items() if owner is consumer]:
            del sub.owner[position]
            if lost and self.box.settings.redeliveryCountOnConnectionLoss:
                sub.count_again(position)

    # Inbound frames

    def received(self, end: BoxEnd, frame: Frame) -> None:
        """Apply a frame before the core processes it."""
        conn = self.conns.get(end)
        if conn is None or end.outbox.close_reason is not None:
            return
        conn.heard = self.world.monotonic
        try:
            command = parse_command(frame[0])
        except ProtocolError:
            conn.aborted = True
            return
        spec = COMMANDS[command.type]
        body = getattr(command, spec.field)
        self.world.note("in", end.link.number, spec.name, *brief(spec.name, body))
        request_id = getattr(body, "request_id", None)
        if request_id is not None and (spec.name != "ACK" or body.HasField("request_id")):
            conn.requests[request_id] = Request(spec.name, self.world.monotonic)
        handler = _IN.get(spec.name)
        if handler is not None:
            handler(self, conn, body, frame[1])

    def after_received(self, end: BoxEnd, frame: Frame) -> None:
        """Apply a frame after the core has processed it."""
        self.sending = None
        conn = self.conns.get(end)
        if conn is None or end.outbox.close_reason is not None:
            return
        self.refresh(quiet=False)
        # A reader that is closed while its start position is being resolved has created no subscription.
        for request in sorted(conn.requests.values(), key=lambda each: each.given_up):
            if request.kind == "SUBSCRIBE":
                self._created(request)
            elif request.kind == "UNSUBSCRIBE" and request.sub is not None:
                self._deleted(conn, request.sub)
        self.refresh()

    def _created(self, request: Request) -> None:
        """Add the requested subscription if the core has newly created it."""
        self.refresh(quiet=False)
        topic = self.topic(request.topic)
        core = self.box.topic(request.topic)
        subscription = core.subscriptions.get(request.name) if core is not None else None
        if subscription is None:
            return
        view = topic.subs.get(request.name)
        if view is not None and view.cursor is subscription.cursor:
            return
        if view is not None and view.durable:
            topic.removed[view.name] = view
        view = topic.subs[request.name] = SubView(topic, request.name, subscription.cursor, durable=request.durable)
        for i, position in enumerate(topic.order):
            wanted = i >= request.known or (request.start is not None and position >= request.start)
            if wanted and position.ledger_id not in topic.trimmed and not self.pledges.is_aborted(topic, position):
                view.add(topic.entries[position])
        topic.rewound_at, view.idle_since = self.world.monotonic, self.world.now.wall
        for checker in self.checkers:
            checker.made(view)

    def _deleted(self, conn: ConnView, sub: SubView) -> None:
        core = self.box.topic(sub.topic.name)
        if core is not None and sub.name in core.subscriptions:
            return
        if sub.topic.subs.get(sub.name) is sub:
            del sub.topic.subs[sub.name]
            sub.topic.removed[sub.name] = sub
            for other in list(self.conns.values()):
                for consumer in list(other.consumers.values()):
                    if consumer.sub is sub:
                        self._close(consumer)

    def _producer(self, conn: ConnView, body: Any, payload: bytes) -> None:
        request = conn.requests[body.request_id]
        request.topic, request.name, request.object_id = body.topic, body.producer_name, body.producer_id

    def _send(self, conn: ConnView, body: Any, payload: bytes) -> None:
        producer = conn.producers.get(body.producer_id)
        if producer is not None:
            try:
                keys = message_keys(payload)
            except (ProtocolError, ValueError):
                keys = []
            self.sending = Pending(body.sequence_id, keys, self.world.monotonic)
            producer.pending.append(self.sending)

    def _subscribe(self, conn: ConnView, body: Any, payload: bytes) -> None:
        request = conn.requests[body.request_id]
        request.topic, request.name, request.object_id = body.topic, body.subscription, body.consumer_id
        request.type, request.durable = body.subType, body.durable
        meta = body.keySharedMeta
        if body.subType == CommandSubscribe.Key_Shared:
            request.policy = Policy(meta.keySharedMode == KeySharedMode.STICKY, meta.allowOutOfOrderDelivery)
        if body.consumer_id not in conn.consumers and ("consumer", body.consumer_id) not in conn.end.cnx.opening:
            conn.notices.pop(body.consumer_id, None)
        request.known = len(self.topic(body.topic).order)
        if body.HasField("start_message_id"):
            request.start = position_of(body.start_message_id)
        elif body.initialPosition == CommandSubscribe.Earliest:
            request.start = Position(-1, -1)

    def _close_consumer(self, conn: ConnView, body: Any, payload: bytes) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is not None:
            self._close(consumer)
        conn.requests[body.request_id].object_id = body.consumer_id
        self.give_up(conn, "SUBSCRIBE", body.consumer_id)

    def give_up(self, conn: ConnView, kind: str, object_id: int) -> None:
        for request in conn.requests.values():
            if request.kind == kind and request.object_id == object_id:
                request.given_up = True

    def _flow(self, conn: ConnView, body: Any, payload: bytes) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is not None:
            consumer.permits += body.messagePermits

    def _redeliver(self, conn: ConnView, body: Any, payload: bytes) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is None:
            return
        sub = consumer.sub
        if not sub.side_by_side:
            consumer.may_rewind = True
            return
        named = {position_of(each) for each in body.message_ids}
        for position in [p for p, owner in sub.owner.items() if owner is consumer and (not named or p in named)]:
            del sub.owner[position]
            sub.count_again(position)

    def _seek(self, conn: ConnView, body: Any, payload: bytes) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is not None:
            request = conn.requests[body.request_id]
            consumer.sub.seeks += 1
            consumer.sub.topic.rewound_at = self.world.monotonic
            consumer.sub.rewound = True
            consumer.sub.exact_counts = False
            consumer.sub.sure.clear()
            for each in [r for c in self.conns.values() for r in c.requests.values() if r.sub is consumer.sub]:
                each.acks.clear()
                each.start = None
            request.sub = consumer.sub
            if consumer.sub.seeks == 1 and body.HasField("message_id") and not body.message_id.ack_set:
                request.start = position_of(body.message_id)

    def _unsubscribe(self, conn: ConnView, body: Any, payload: bytes) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is not None:
            conn.requests[body.request_id].sub = consumer.sub
            consumer.sub.leaving = True

    # Outbound frames

    def sent(self, end: BoxEnd, command: BaseCommand) -> None:
        """Apply a frame that the core has written to an outbox."""
        conn = self.conns.get(end)
        if conn is None:
            return
        spec = COMMANDS[command.type]
        body = getattr(command, spec.field)
        self.world.note("out", end.link.number, spec.name, *brief(spec.name, body))
        handler = _OUT.get(spec.name)
        if handler is not None:
            handler(self, conn, body)
        request_id = getattr(body, "request_id", None)
        if spec.name == "PRODUCER_SUCCESS" and not body.producer_ready and request_id in conn.requests:
            self.held += 1
            conn.requests[request_id].held = True
        elif request_id is not None and request_id != NO_REQUEST:
            request = conn.requests.pop(request_id, None)
            for checker in self.checkers:
                checker.replied(conn, request_id, request, spec.name)
            if request is not None:
                self._answered(conn, request, spec.name, body)

    def _answered(self, conn: ConnView, request: Request, name: str, body: Any) -> None:
        ok = name in ("SUCCESS", "PRODUCER_SUCCESS") or (name == "ACK_RESPONSE" and not body.HasField("error"))
        sub = request.sub
        if name == "ERROR":
            receipts.refused(self, request, body.error, body.message)
        if request.kind == "PRODUCER" and ok and request.object_id not in conn.producers:
            receipts.opened(self, conn, request, body.producer_name)
        elif request.kind == "SUBSCRIBE" and ok:
            self._created(request)
            if request.object_id not in conn.consumers:
                self._subscribed(conn, request)
        elif request.kind == "UNSUBSCRIBE" and sub is not None:
            sub.leaving = sub.removal_answered = ok
            if ok:
                self._deleted(conn, sub)
        elif request.kind == "SEEK" and sub is not None:
            self._sought(sub, request, ok=ok)
        elif request.kind == "ACK" and sub is not None and ok and not sub.seeks:
            acknowledgements.answered(sub, request)

    def _sought(self, sub: SubView, request: Request, *, ok: bool) -> None:
        sub.seeks -= 1
        sub.topic.rewound_at = self.world.monotonic
        waiting = set(sub.unsure) if self.box.disk.reads_under_way else set()
        sub.adopt()
        sub.exact_counts = not sub.seeks
        sub.unsure |= waiting
        if ok:
            for checker in self.checkers:
                checker.sought(sub, request.start)

    def _subscribed(self, conn: ConnView, request: Request) -> None:
        sub = self.topic(request.topic).subs.get(request.name)
        for checker in self.checkers:
            checker.subscribed(conn, request, sub)
        if sub is None:
            return
        sub.of_type(request.type, request.policy)
        sub.answered = True
        conn.consumers[request.object_id] = ConsumerView(conn, request.object_id, sub)

    def _message(self, conn: ConnView, body: Any) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        position = position_of(body.message_id)
        self.refresh()  # trims precede the dispatch
        for checker in self.checkers:
            checker.delivered(conn, consumer, position, body)
        if consumer is None:
            return
        self.deliveries[TYPE_NAMES[consumer.sub.type]] += 1
        entry = consumer.sub.topic.entries[position]
        bits = bits_of(body.ack_set) or entry.all_bits
        consumer.permits -= bits.bit_count()
        consumer.last, consumer.may_rewind, consumer.may_go_back = position, False, False
        consumer.sub.delivered(entry, consumer)

    def parcel(self, end: BoxEnd, messages: list[BaseCommand]) -> None:
        """Check the entries that the core has dispatched to one consumer in one call."""
        conn = self.conns.get(end)
        consumer = conn.consumers.get(messages[0].message.consumer_id) if conn is not None else None
        if consumer is not None:
            positions = [position_of(each.message.message_id) for each in messages]
            for checker in self.checkers:
                checker.parcel(consumer, positions)

    def _consumer_closed(self, conn: ConnView, body: Any) -> None:
        consumer = conn.consumers.get(body.consumer_id)
        if consumer is not None:
            self._close(consumer)
            consumer.sub.forget_deliveries()  # a seek closes consumers, and dispatch restarts

    def _last_message_id(self, conn: ConnView, body: Any) -> None:
        for checker in self.checkers:
            checker.last_message_id(position_of(body.last_message_id))


_IN: dict[str, Callable[[Model, ConnView, Any, bytes], None]] = {
    "PRODUCER": Model._producer,
    "SEND": Model._send,
    "SUBSCRIBE": Model._subscribe,
    "CLOSE_PRODUCER": receipts.producer_closed,
    "CLOSE_CONSUMER": Model._close_consumer,
    "FLOW": Model._flow,
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": Model._redeliver,
    "SEEK": Model._seek,
    "UNSUBSCRIBE": Model._unsubscribe,
    "ACK": acknowledgements.received,
    "END_TXN": pledges.asked,
}
_OUT: dict[str, Callable[[Model, ConnView, Any], None]] = {
    "MESSAGE": Model._message,
    "SEND_RECEIPT": receipts.receipted,
    "SEND_ERROR": receipts.failed,
    "CLOSE_PRODUCER": receipts.sent_away,
    "CLOSE_CONSUMER": Model._consumer_closed,
    "ACTIVE_CONSUMER_CHANGE": unasked.active_changed,
    "GET_LAST_MESSAGE_ID_RESPONSE": Model._last_message_id,
    "ACK_RESPONSE": pledges.ack_answered,
    "NEW_TXN_RESPONSE": pledges.begun,
    "END_TXN_RESPONSE": pledges.ended,
}
