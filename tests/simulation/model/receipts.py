"""Effect of responses to producers on the model: open producers, and stored messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.storage.record import Position
from tests.simulation.model.views import NOWHERE, ConnView, ProducerView, Request, position_of

if TYPE_CHECKING:
    from tests.simulation.model.model import Model


REFUSALS: Final = (ServerError.ProducerBlockedQuotaExceededError, ServerError.ProducerBlockedQuotaExceededException)


def opened(model: Model, conn: ConnView, request: Request, name: str) -> None:
    """Add an open producer after a successful response to PRODUCER."""
    topic = model.topic(request.topic)
    for checker in model.checkers:
        checker.named(request, name)
    conn.producers[request.object_id] = ProducerView(conn, request.object_id, name, topic)


def refused(model: Model, request: Request, error: int, text: str) -> None:
    """Notify the checkers of an error response."""
    model.refusals += error in REFUSALS
    for checker in model.checkers:
        checker.refused(request, error, text)


def settle(model: Model, conn: ConnView, body: Any, position: Position | None) -> None:
    """Match the response to a SEND with its message; ``position`` is None for an error."""
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
    # A SEND behind a CLOSE_PRODUCER has no response: the client resends the message.
    waiting = [each for each in waiting if not each[0].sent_away] or waiting
    # An earlier producer with this ID may have copies that are not yet durable: their responses arrive oldest first. An
    # immediate response belongs to the message just received. A message is never answered if its producer was blocked
    # by a quota, but a receipt identifies its entry. Nor is a message answered if the broker had closed its producer:
    # the client resends it, perhaps with the same producer ID.
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
    """Apply a SEND_RECEIPT."""
    position = position_of(body.message_id)
    model.duplicates += position == NOWHERE
    settle(model, conn, body, position)


def failed(model: Model, conn: ConnView, body: Any) -> None:
    """Apply a SEND_ERROR."""
    settle(model, conn, body, None)


def producer_closed(model: Model, conn: ConnView, body: Any, payload: bytes = b"") -> None:
    """Remove a producer closed by the client or by the box."""
    producer = conn.producers.pop(body.producer_id, None)
    if producer is not None:
        conn.closing.append(producer)
    request = conn.requests.get(body.request_id)  # None if the box closes it
    if request is not None:
        request.object_id = body.producer_id
    model.give_up(conn, "PRODUCER", body.producer_id)


def sent_away(model: Model, conn: ConnView, body: Any) -> None:
    """Apply a CLOSE_PRODUCER from the box."""
    producer = conn.producers.get(body.producer_id)
    if producer is not None:
        producer.sent_away = True
    producer_closed(model, conn, body)
