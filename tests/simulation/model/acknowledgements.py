"""Effect of acknowledgements on the model: fewer messages remain on a subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck
from pulsarbox.storage.record import Position
from tests.simulation.model.views import ConnView, Request, SubView, position_of

if TYPE_CHECKING:
    from tests.simulation.model.model import Model


def received(model: Model, conn: ConnView, body: CommandAck, payload: bytes) -> None:
    """Apply an ACK before the core processes it."""
    consumer = conn.consumers.get(body.consumer_id)
    if consumer is None:
        return
    sub = consumer.sub
    request = conn.requests.get(body.request_id) if body.HasField("request_id") else None
    if request is not None:
        request.sub = sub
    if body.HasField("txnid_least_bits"):
        assert request is not None
        model.pledges.acknowledged(sub, body, request)
        return
    if body.ack_type == CommandAck.Cumulative and sub.side_by_side:
        return
    holders = consumer.subscription.consumers if sub.side_by_side else [consumer.core]
    for message_id in body.message_id:
        position = position_of(message_id)
        alone = body.ack_type == CommandAck.Individual
        done = sub.cursor.is_acked(*position) if alone else position <= sub.cursor.mark_delete
        held = any(position in each.held for each in holders) or done
        named = [(position, bits_of(message_id.ack_set))]
        if position not in sub.topic.entries:
            continue
        if body.ack_type == CommandAck.Cumulative:
            named += [(p, 0) for p in sub.left if p < position]
            named += [(p, 0) for p in sub.sure if p < position and p not in sub.left]
        for each, unacked in named:
            _acked(sub, each, unacked, held, request)


def _acked(sub: SubView, position: Position, unacked: int, held: bool, request: Request | None) -> None:
    entry = sub.topic.entries[position]
    if request is not None and not sub.seeks:  # a seek in progress may reset it
        request.acks.append((position, entry.all_bits & ~unacked))
    sub.set(entry, sub.left.get(position, 0) & unacked)
    if not held:
        sub.unsure.add(position)
    elif position not in sub.left and position not in sub.unsure and not sub.seeks:
        sub.acked(position)


def answered(sub: SubView, request: Request) -> None:
    """Record the answered messages as permanently acknowledged."""
    for position, bits in request.acks:
        sub.sure[position] = sub.sure.get(position, 0) | bits
        if bits == sub.topic.entries[position].all_bits:
            sub.unsure.discard(position)
            sub.acked(position)
