"""The model's interpretation of ambiguous frames."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, CommandSendError, CommandSendReceipt, MessageIdData
from pulsarbox.storage.record import Position
from tests.simulation.model import receipts
from tests.simulation.model.model import Model
from tests.simulation.model.views import ConnView, Pending, ProducerView
from tests.simulation.rules.checker import Checker
from tests.simulation.world import World


class Answers(Checker):
    """Records the copy of a message to which each response belongs."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.seen: list[tuple[str, Position | None]] = []

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        self.seen.append((producer.name, position))


def test_a_message_refused_at_once_is_not_the_copy_that_is_still_on_its_way_to_the_disk() -> None:
    model = Model(World(0))
    answers = Answers(model)
    model.checkers = [answers]
    conn = ConnView(cast(Any, None))
    topic = model.topic("persistent://public/default/one")
    conn.closing.append(ProducerView(conn, 1, "closed", topic, deque([Pending(7, [])])))
    conn.producers[1] = ProducerView(conn, 1, "open", topic)
    model._send(conn, CommandSend(producer_id=1, sequence_id=7), b"")
    receipts.failed(model, conn, CommandSendError(producer_id=1, sequence_id=7))
    receipts.receipted(
        model, conn, CommandSendReceipt(producer_id=1, sequence_id=7, message_id=MessageIdData(ledgerId=3, entryId=4))
    )
    assert answers.seen == [("open", None), ("closed", Position(3, 4))]
