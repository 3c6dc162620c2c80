"""The base class of rules: a rule observes all events and raises a Violation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsarbox.storage.record import Meta, Position
from tests.simulation.model.history import Violation
from tests.simulation.model.views import (
    ConnView,
    ConsumerView,
    EntryView,
    MessageKey,
    Pending,
    ProducerView,
    Request,
    SubView,
    TopicView,
)

if TYPE_CHECKING:
    from tests.simulation.box import BoxEnd
    from tests.simulation.model.letters import Letter
    from tests.simulation.model.model import Model
    from tests.simulation.model.pledges import TxnView


class Checker:
    """Base class of rules. Every hook does nothing; a rule overrides the hooks it needs."""

    rule = ""

    def __init__(self, model: Model) -> None:
        self.model = model

    def check(self, holds: bool, text: str, *details: object) -> None:
        """Raise a Violation if ``holds`` is false."""
        if not holds:
            raise Violation(self.rule, " ".join([text, *map(str, details)]))

    def turn(self) -> None:
        """Called when the broker is idle."""

    def started(self) -> None:
        """Called after a start, before the first request; ``box.found`` holds the recovered state."""

    def let_go(self, sub: SubView, positions: list[Position]) -> None:
        """Called when the broker itself has acknowledged these entries, by expiry or eviction."""

    def expired_subscription(self, sub: SubView) -> None:
        """Called when the broker has deleted an expired subscription."""

    def made(self, sub: SubView) -> None:
        """Called when a client has created a subscription."""

    def refused(self, request: Request, error: int, text: str) -> None:
        """Called when a request was answered with an error."""

    def recovered(self, sub: SubView) -> None:
        """Called when a subscription was recovered; the view still holds the state before the crash."""

    def lost_subscription(self, sub: SubView) -> None:
        """Called when a subscription was not recovered."""

    def revived_subscription(self, sub: SubView) -> None:
        """Called when a subscription exists again although its deletion was confirmed to a client."""

    def outbox_taken(self, end: BoxEnd) -> None:
        """Called before the shell drains an outbox."""

    def subscribed(self, conn: ConnView, request: Request, sub: SubView | None) -> None:
        """Called when a consumer was opened."""

    def named(self, request: Request, name: str) -> None:
        """Called when a producer was opened under a name."""

    def sought(self, sub: SubView, start: Position | None) -> None:
        """Called when a seek was answered; ``start`` is set for a seek to a message ID."""

    def replied(self, conn: ConnView, request_id: int, request: Request | None, name: str) -> None:
        """Called when a request was answered; ``request`` is None if no request has this ID."""

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """Called when an entry is dispatched to a consumer."""

    def came(self, topic: TopicView, entry: EntryView) -> None:
        """Called when an entry has become durable."""

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """Called when these entries were dispatched to a consumer in one batch, after ``delivered`` for each."""

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """Called when a SEND was answered; a ``position`` of None is an error, ``NOWHERE`` a duplicate."""

    def settled_nothing(self, conn: ConnView, sequence_id: int) -> None:
        """Called for a receipt that matches no pending SEND."""

    def last_message_id(self, position: Position) -> None:
        """Called when the last message ID of a topic was returned to a client."""

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """Called at the end with the entries that a new consumer has read from a topic, in order."""

    def stored(self, topic: TopicView, position: Position) -> None:
        """Called before an entry becomes durable."""

    def written(self, row: Meta) -> None:
        """Called when a metadata row is durable and all entries before it are known."""

    def moved(self, sub: SubView | None, letter: Letter) -> None:
        """Called when a moved dead letter is durable; ``sub`` is None if its subscription was deleted."""

    def ended(self, topic: TopicView, position: Position) -> None:
        """Called when a client was notified that the topic is terminated at this position."""

    def trimmed(self, topic: TopicView, ledger_id: int, positions: list[Position]) -> None:
        """Called when a ledger of a topic was deleted."""

    def reloaded(self, sub: SubView) -> None:
        """Called when the topic of a durable subscription was loaded again."""

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """Called when a topic was recovered with these ledgers; the view still holds the state before the crash."""

    def begun(self, txn: TxnView) -> None:
        """Called when the start of a transaction was confirmed to a client."""

    def ended_txn(self, conn: ConnView, request: Request, error: int | None) -> None:
        """Called when an END_TXN was answered."""

    def abandoned(self) -> None:
        """Called at the very end, some time after all clients have disconnected."""

    def finished(self) -> None:
        """Called at the end, after a period without faults in which everything was consumed."""
