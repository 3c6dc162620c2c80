"""Redelivery limit of a subscription: messages redelivered too often are moved to the dead letter topic.

When a dispatcher reaches an entry whose redelivery count exceeds the policy's, it adds the entry to the open batch as
an entry of the dead letter topic, together with its acknowledgement (``GroupCommit.move``). So after a crash it is in
exactly one of the two topics. Until the batch is durable, the entry is neither acknowledged nor held by a consumer: it
is *moving*. If the commit fails, the entry is redelivered and moved then. If the dead letter topic rejects it, it is
dispatched like any other entry, and moved at a later redelivery.

Only Shared and Key_Shared subscriptions count redeliveries. Exclusive and Failover do not, as in Pulsar: they redeliver
in order, and a moved message would be a gap in that order.
"""

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.dead_letter.message import IndexAcks, Origin
from pulsarbox.broker.policies.kinds.dead_letter import ROW, DeadLetterPolicy
from pulsarbox.broker.services import HasCatalog, HasCommits, HasEvents
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, short_topic
from pulsarbox.storage.catalog import Row, cursor_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, pack_moved

log = logging.getLogger(__name__)

MOVING_MAX: Final = 200
"""Approximate limit of moving entries; above it, further ones wait for the commit."""
MOVING_BYTES: Final = 8 << 20


class DeadLetterMove:
    """One entry that is being moved."""

    __slots__ = ("entry", "life", "messages")

    def __init__(self, entry: Entry, messages: int, life: object) -> None:
        self.entry = entry
        self.messages = messages
        """Its unacknowledged messages."""
        self.life = life
        """``Subscription.life`` when the dispatcher last reached the entry."""

    def acked(self, cursor_id: int) -> bytes:
        """See group_commit.Move."""
        return pack_moved(cursor_id, self.entry)


class LetterServices(HasCatalog, HasCommits, HasEvents, Protocol):
    """The services of the broker that move dead letters."""

    @property
    def dead_letters(self) -> Callbacks[Entry, int | None, TopicName, Origin, DeadLetterPolicy, Now]:
        """The callbacks that publish dead letters."""


class MovingDispatcher(Protocol):
    """A dispatcher that reaches entries to be moved."""

    @property
    def life(self) -> object:
        """See ``LimitedSubscription``."""


class LimitedSubscription(Protocol):
    """A subscription whose messages may be moved to a dead letter topic."""

    @property
    def index_acks(self) -> IndexAcks:
        """Batch index acknowledgements seen so far."""

    @property
    def life(self) -> object:
        """An object that is replaced whenever the dispatcher rewinds to mark-delete."""

    @property
    def is_current(self) -> bool:
        """Whether its topic is loaded and has it."""

    def dispatch(self, now: Now) -> None:
        """Dispatch the available messages."""

    def moved_on(self, entries: Iterable[Entry], now: Now) -> None:
        """Handle acknowledged entries that no consumer holds, and dispatch."""

    def send_again(self, entries: list[Entry], now: Now) -> None:
        """Redeliver entries that could not be moved."""


class RedeliveryLimit:
    """The dead letter policy and moving entries of one subscription."""

    __slots__ = (
        "_cursor", "_moving", "_moving_bytes", "_services", "_subscription", "_topic", "last", "messages", "policy",
        "refused", "refused_since",
    )  # fmt: skip

    def __init__(
        self,
        services: LetterServices,
        subscription: LimitedSubscription,
        topic: TopicName,
        cursor: ManagedCursor,
        row: Row,
    ) -> None:
        """``row`` is that of the cursor."""
        stored = row.get(ROW)
        self.policy: DeadLetterPolicy | None = None if stored is None else DeadLetterPolicy.of_row(stored)
        self.messages = 0
        """Messages moved since the subscription was loaded."""
        self.last = 0
        """When the last message was moved (ms since 1970)."""
        self.refused = ""
        """Why the dead letter topic rejected the last message; empty if it accepted it."""
        self.refused_since = 0
        """Milliseconds since 1970."""
        self._services = services
        self._subscription = subscription
        self._topic = topic
        self._cursor = cursor
        self._moving: dict[tuple[int, int], DeadLetterMove] = {}
        self._moving_bytes = 0

    def set_policy(self, policy: DeadLetterPolicy | None, now: Now) -> None:
        """Set the policy, None for none; durable with the next commit."""
        commits, catalog, cursor = self._services.commits, self._services.catalog, self._cursor
        self.policy = policy
        self.refused, self.refused_since = "", 0
        key = cursor_key(cursor.ledger.topic_id, cursor.cursor_id)
        row = dict(catalog.get(key) or {})
        row.pop(ROW, None)
        commits.put_row(key, row if policy is None else row | {ROW: policy.as_json()})
        self._subscription.dispatch(now)

    @property
    def moving(self) -> bool:
        """Whether entries are being moved to the dead letter topic."""
        return bool(self._moving)

    @property
    def full(self) -> bool:
        """Whether so many entries are moving that further ones must wait."""
        return len(self._moving) >= MOVING_MAX or self._moving_bytes >= MOVING_BYTES

    def move_exceeding(self, entries: list[Entry], dispatcher: MovingDispatcher, now: Now) -> list[Entry]:
        """Start moving those of the entries that exceed the limit; return the others, which are to be dispatched."""
        policy, count_of = self.policy, self._cursor.redelivery_count
        claims = self._cursor.claims
        living = []
        for entry in entries:
            at = entry.ledger_id, entry.entry_id
            move = self._moving.get(at)
            if move is not None:
                move.life = dispatcher.life
                continue
            count = count_of(at)
            if claims is not None and at in claims:
                living.append(entry)  # an open transaction has acknowledged some of its messages
            elif (
                policy is None or count <= policy.max_redeliveries or not self._move(entry, count, dispatcher.life, now)
            ):
                living.append(entry)
        return living

    def _move(self, entry: Entry, count: int, life: object, now: Now) -> bool:
        """Add an entry to the dead letter topic; return whether that accepted it."""
        policy, topic, cursor = self.policy, self._topic, self._cursor
        assert policy is not None
        at = entry.ledger_id, entry.entry_id
        message_id = f"{at[0]}:{at[1]}:{topic.partition_index}"
        partly = cursor.batch_acks.get(at)
        unacked = None if partly is None else partly[1]
        origin = Origin(
            str(topic),
            cursor.name,
            message_id,
            count,
            policy.max_redeliveries,
            entry.num_messages,
            0 if unacked is None else entry.num_messages - unacked.bit_count(),
            self._subscription.index_acks,
        )
        try:
            self._services.dead_letters(entry, unacked, topic, origin, policy, now)
        except PulsarBoxError as error:
            self._refuse(str(error), now)
            return False
        self.refused, self.refused_since = "", 0
        move = DeadLetterMove(entry, entry.num_messages if unacked is None else unacked.bit_count(), life)
        self._moving[at] = move
        self._moving_bytes += len(entry.body)
        self._services.commits.move(cursor, self, move)
        return True

    def _refuse(self, reason: str, now: Now) -> None:
        if reason != self.refused:
            self.refused, self.refused_since = reason, now.wall
            assert self.policy is not None
            text = f"{short_topic(self.policy.topic)} rejected a dead letter: {reason}"
            self._services.events.report("dead-letters-refused", self._subject, text, now)
            log.warning(
                "%s redelivers a message instead of moving it to %s, which rejected it: %s",
                self._subscription,
                self.policy.topic,
                reason,
            )

    def forget(self) -> None:
        """Forget moving entries after the cursor was reset, so that they are dispatched again."""
        self._moving.clear()
        self._moving_bytes = 0

    # Outcome of the commit

    def moved(self, moves: list[DeadLetterMove], now: Now) -> None:
        """Acknowledge durable moves, unless the cursor was reset or the subscription deleted meanwhile."""
        arrived = [move for move in moves if self._arrived(move)]
        if not arrived or not self._subscription.is_current:
            return
        cursor = self._cursor
        for move in arrived:
            entry = move.entry
            cursor.acknowledge(
                entry.ledger_id,
                entry.entry_id,
                entry.num_messages,
                len(entry.body),
                entry.total_messages,
                entry.total_bytes,
            )
            self.messages += move.messages
        self.last = now.wall
        self._report(sum(move.messages for move in arrived), now)
        self._subscription.moved_on([move.entry for move in arrived], now)

    @property
    def _subject(self) -> str:
        return f"{self._topic} {self._cursor.name}"

    def _report(self, messages: int, now: Now) -> None:
        to = "" if self.policy is None else str(self.policy.topic)
        text = f"{messages:,} message{'s' * (messages > 1)} moved to {short_topic(to) or 'the dead letter topic'}"
        self._services.events.report("dead-letters", self._subject, text, now, count=messages, to=to)

    def not_moved(self, moves: list[DeadLetterMove], now: Now) -> None:
        """Redeliver entries whose move could not be stored, unless the dispatcher has rewound since."""
        lost = [move for move in moves if self._arrived(move)]
        if lost and self._subscription.is_current:
            self._subscription.send_again([move.entry for move in lost if move.life is self._subscription.life], now)

    def _arrived(self, move: DeadLetterMove) -> bool:
        at = move.entry.ledger_id, move.entry.entry_id
        if self._moving.get(at) is not move:
            return False
        del self._moving[at]
        self._moving_bytes -= len(move.entry.body)
        return True
