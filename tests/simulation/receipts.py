"""What answers to producers make of the model: which of them are open, which of their messages are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.storage.record import Position
from tests.simulation.views import NOWHERE, ConnView, ProducerView, Request, position_of

if TYPE_CHECKING:
    from tests.simulation.model import Model


REFUSALS: Final = (ServerError.ProducerBlockedQuotaExceededError, ServerError.ProducerBlockedQuotaExceededException)


def opened(model: Model, conn: ConnView, request: Request, name: str) -> None:
    """A PRODUCER was answered: it is open."""
    topic = model.topic(request.topic)
    for checker in model.checkers:
        checker.named(request, name)
    conn.producers[request.object_id] = ProducerView(conn, request.object_id, name, topic)


def refused(model: Model, request: Request, error: int, text: str) -> None:
    """A request was answered with an error."""
    model.refusals += error in REFUSALS
    for checker in model.checkers:
        checker.refused(request, error, text)


def settle(model: Model, conn: ConnView, body: Any, position: Position | None) -> None:
    """A SEND was answered: find out which; None as the position is an error."""
    waiting = [
        (producer, pending)
        for producer in (*conn.closing, *conn.producers.values())
        if producer.producer_id == body.producer_id
        for pending in producer.pending
        if pending.sequence_id == body.sequence_id
    ]
    if not waiting:
        for checker in model.checkers:
            checker.settled_nothing(conn, body.sequence_id)
        return
    # What came behind a CLOSE_PRODUCER has no answer: the client sends it again.
    waiting = [each for each in waiting if not each[0].sent_away] or waiting
    # A copy that an earlier producer of this id has sent may still be on its way to the disk: answers to those come
    # oldest first. What is answered at once is the message that has just come.
    # What was sent while its producer was held back for a quota is never answered; but a receipt names its entry. Nor
    # is what one sent that was told to go: its client sends it again, perhaps by a producer of the same id.
    at_once = [each for each in waiting if each[1] is model.sending]
    entry = model.topics[waiting[0][0].topic.name].entries.get(position) if position is not None else None
    meant = [each for each in waiting if entry is not None and each[1].keys == entry.keys]
    best = at_once or meant or waiting
    producer, pending = next((each for each in best if not each[0].sent_away), best[0])
    in_order = pending is producer.pending[0]
    producer.pending.remove(pending)
    for checker in model.checkers:
        checker.settled(producer, pending, position, in_order)


def receipted(model: Model, conn: ConnView, body: Any) -> None:
    """SEND_RECEIPT."""
    position = position_of(body.message_id)
    model.duplicates += position == NOWHERE
    settle(model, conn, body, position)


def failed(model: Model, conn: ConnView, body: Any) -> None:
    """SEND_ERROR."""
    settle(model, conn, body, None)


def producer_closed(model: Model, conn: ConnView, body: Any, payload: bytes = b"") -> None:
    """A producer is no more, by whoever's wish."""
    producer = conn.producers.pop(body.producer_id, None)
    if producer is not None:
        conn.closing.append(producer)
    request = conn.requests.get(body.request_id)  # none if the box closes it
    if request is not None:
        request.object_id = body.producer_id
    model.give_up(conn, "PRODUCER", body.producer_id)


def sent_away(model: Model, conn: ConnView, body: Any) -> None:
    """CLOSE_PRODUCER: the box wants it to go."""
    producer = conn.producers.get(body.producer_id)
    if producer is not None:
        producer.sent_away = True
    producer_closed(model, conn, body)
