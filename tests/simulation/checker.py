"""What a rule is: it sees everything that happens, and raises a Violation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsarbox.storage.record import Meta, Position
from tests.simulation.history import Violation
from tests.simulation.views import (
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
    from tests.simulation.letters import Letter
    from tests.simulation.model import Model
    from tests.simulation.pledges import TxnView


class Checker:
    """A rule that sees everything and minds nothing: the others override what they look at."""

    rule = ""

    def __init__(self, model: Model) -> None:
        self.model = model

    def check(self, holds: bool, text: str, *details: object) -> None:
        """Raise a Violation where it does not hold."""
        if not holds:
            raise Violation(self.rule, " ".join([text, *map(str, details)]))

    def turn(self) -> None:
        """The box has come to rest."""

    def started(self) -> None:
        """The box is about to be served after a start; ``box.found`` is what that found."""

    def let_go(self, sub: SubView, positions: list[Position]) -> None:
        """The box has acknowledged these by itself."""

    def expired_subscription(self, sub: SubView) -> None:
        """The box has deleted a subscription by itself."""

    def made(self, sub: SubView) -> None:
        """A client has made a subscription."""

    def refused(self, request: Request, error: int, text: str) -> None:
        """A request was answered with an error."""

    def recovered(self, sub: SubView) -> None:
        """A subscription was recovered; the view still says what was before."""

    def lost_subscription(self, sub: SubView) -> None:
        """A subscription was not recovered."""

    def revived_subscription(self, sub: SubView) -> None:
        """A subscription is there again that a client was told is deleted."""

    def outbox_taken(self, end: BoxEnd) -> None:
        """The shell is about to take what waits in an outbox."""

    def subscribed(self, conn: ConnView, request: Request, sub: SubView | None) -> None:
        """A consumer was opened."""

    def named(self, request: Request, name: str) -> None:
        """A producer was opened under a name."""

    def sought(self, sub: SubView, start: Position | None) -> None:
        """A seek was answered; to a message id where ``start`` is given."""

    def replied(self, conn: ConnView, request_id: int, request: Request | None, name: str) -> None:
        """A request was answered; None where there was none."""

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """An entry goes to a consumer."""

    def came(self, topic: TopicView, entry: EntryView) -> None:
        """An entry is durable now."""

    def parcel(self, consumer: ConsumerView, positions: list[Position]) -> None:
        """These entries went to a consumer in one go: each of them was ``delivered``."""

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """A SEND was answered; None as the position is an error, ``NOWHERE`` a duplicate."""

    def settled_nothing(self, conn: ConnView, sequence_id: int) -> None:
        """A receipt for nothing that was sent."""

    def last_message_id(self, position: Position) -> None:
        """A client was told the last message of a topic."""

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """At the end: what a fresh consumer has read of a topic, in order."""

    def stored(self, topic: TopicView, position: Position) -> None:
        """An entry is about to be durable."""

    def written(self, row: Meta) -> None:
        """A row of the metadata is durable, and all entries before it are known."""

    def moved(self, sub: SubView | None, letter: Letter) -> None:
        """The box has moved a dead letter, durably; None where its subscription is gone."""

    def ended(self, topic: TopicView, position: Position) -> None:
        """Somebody was told that a topic has ended there."""

    def trimmed(self, topic: TopicView, ledger_id: int, positions: list[Position]) -> None:
        """A ledger of a topic is no more."""

    def reloaded(self, sub: SubView) -> None:
        """The topic of a durable subscription is in memory again."""

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """A topic was recovered with these ledgers; the view still says what was before."""

    def begun(self, txn: TxnView) -> None:
        """A client was told that a transaction is open."""

    def ended_txn(self, conn: ConnView, request: Request, error: int | None) -> None:
        """An END_TXN was answered."""

    def abandoned(self) -> None:
        """At the very end, when all clients have been gone for a while."""

    def finished(self) -> None:
        """At the end, after a while without faults in which everything was consumed."""
