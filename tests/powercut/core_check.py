"""Opens an image with the whole core: receipted messages exist, and acknowledged ones are not redelivered."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from tests.powercut import marks
from tests.powercut.check import DATA, Violation
from tests.powercut.core_box import SUBSCRIPTIONS, TOPICS, CoreBox, body_of, key_of, number_of
from tests.powercut.core_workload import messages_of

Place = tuple[int, int]
"""Ledger and entry."""
_NEW: Final = 10**15
_CONSUMER: Final = 7
_READER: Final = 8
_EARLIEST: Final = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)


@dataclass
class CoreStory:
    """Requests of clients, and the responses they had received, at the moment of a cut."""

    options: dict[str, Any] = field(default_factory=dict)
    sent: dict[int, set[int]] = field(default_factory=dict)
    """Messages by topic."""
    receipted: dict[int, dict[Place, int]] = field(default_factory=dict)
    """Messages by topic and position."""
    acking: dict[tuple[int, int], set[Place]] = field(default_factory=dict)
    """Positions by topic and subscription, including those already acknowledged."""
    acked: dict[tuple[int, int], set[Place]] = field(default_factory=dict)

    def take(self, data: bytes) -> None:
        """Apply the next mark."""
        kind, facts, _ = marks.read_mark(data)
        if kind == marks.OPTIONS:
            self.options = facts
        elif kind == marks.SENT:
            self.sent.setdefault(facts["topic"], set()).update(facts["numbers"])
        elif kind == marks.RECEIPTED:
            numbers = {(ledger, entry): number for ledger, entry, number in facts["positions"]}
            self.receipted.setdefault(facts["topic"], {}).update(numbers)
        elif kind in (marks.ACKING, marks.ACKED):
            table = self.acking if kind == marks.ACKING else self.acked
            places = {(ledger, entry) for ledger, entry in facts["positions"]}
            table.setdefault((facts["topic"], facts["subscription"]), set()).update(places)

    def live_ledgers(self) -> list[tuple[int, int]]:
        """Return nothing: the workload of the core opens its topics by name."""
        return []


class CoreChecked:
    """One opened image."""

    def __init__(self, folder: Path, story: CoreStory, dice: random.Random) -> None:
        self._path = folder / DATA
        self._story = story
        self._dice = dice

    def check(self) -> None:
        """Recover, consume everything, publish and acknowledge, and recover again. Raises Violation."""
        new: dict[int, Place] = {}
        for round_number in range(2):
            box = CoreBox(self._path, self._story.options)
            try:
                for topic in range(len(TOPICS)):
                    for subscription in range(len(SUBSCRIPTIONS)):
                        self._consume(box, topic, subscription, new)
                    self._read_compacted(box, topic)
                    if round_number:
                        self._compact(box, topic)
                        self._read_compacted(box, topic)
                    if not round_number:
                        new[topic] = self._publish(box, topic)
                box.broker.commits.ask_checkpoint()
                box.turn()
                box.advance(5)
            finally:
                box.lmdb.close()

    def _consume(self, box: CoreBox, topic: int, subscription: int, new: dict[int, Place]) -> None:
        client = box.client()
        reply = client.subscribe(SUBSCRIPTIONS[subscription], _CONSUMER, TOPICS[topic])
        if reply is None or reply.DESCRIPTOR.name != "CommandSuccess":
            raise Violation(f"{TOPICS[topic]} cannot be consumed: {reply}")
        client.flow(100_000, _CONSUMER)
        got: dict[Place, int] = {}
        last = (-1, -1)
        for _, place, payload in messages_of(client):
            number = number_of(payload)
            if number != _NEW and number not in self._story.sent.get(topic, set()):
                raise Violation(f"{TOPICS[topic]} has at {place} what was never sent: {payload[:80]!r}")
            if place <= last:
                raise Violation(f"{TOPICS[topic]}, {SUBSCRIPTIONS[subscription]}: {place} comes after {last}")
            got[place] = number
            last = place
        client.request("close_consumer", consumer_id=_CONSUMER)
        self._compare(topic, subscription, got, new)

    def _compare(self, topic: int, subscription: int, got: dict[Place, int], new: dict[int, Place]) -> None:
        name = f"{TOPICS[topic]}, {SUBSCRIPTIONS[subscription]}"
        acking = self._story.acking.get((topic, subscription), set())
        for place, number in self._story.receipted.get(topic, {}).items():
            if place not in got and place not in acking:
                raise Violation(f"{name}: message {number} at {place} was receipted and is gone")
            if got.get(place, number) != number:
                raise Violation(f"{name}: at {place} is message {got[place]}, the receipt was for {number}")
        again = sorted(self._story.acked.get((topic, subscription), set()) & got.keys())
        if again:
            raise Violation(f"{name}: {again} were acknowledged with a receipt and come again")
        if topic in new and got.get(new[topic]) != _NEW:
            raise Violation(f"{name}: the message published after the cut is not at {new[topic]}")

    def _compact(self, box: CoreBox, topic: int) -> None:
        """Compact the topic up to its current end."""
        box.compact(TOPICS[topic])
        box.turn()
        box.advance(5)
        if box.compaction(TOPICS[topic]).run is not None:
            raise Violation(f"the compaction of {TOPICS[topic]} does not end")

    def _read_compacted(self, box: CoreBox, topic: int) -> None:
        """Check that a compacted reader receives the latest message of every key, and no message that was not sent."""
        client = box.client()
        client.subscribe(
            "table", _READER, TOPICS[topic], durable=False, read_compacted=True, start_message_id=_EARLIEST
        )
        client.flow(100_000, _READER)
        view = box.compaction(TOPICS[topic]).view
        known: dict[str, Place] = {}
        for _, place, payload in messages_of(client):
            number = number_of(payload)
            if number == _NEW:
                continue
            if number not in self._story.sent.get(topic, set()):
                raise Violation(f"the view of {TOPICS[topic]} has at {place} what was never sent: {payload[:80]!r}")
            if view is not None and place <= view.horizon and key_of(number) in known:
                raise Violation(
                    f"the view of {TOPICS[topic]} has {key_of(number)} twice: {known[key_of(number)]}, {place}"
                )
            if place <= max(known.values(), default=(-1, -1)):
                raise Violation(f"the view of {TOPICS[topic]}: {place} comes after {max(known.values())}")
            known[key_of(number)] = place
        client.request("close_consumer", consumer_id=_READER)
        for place, number in self._story.receipted.get(topic, {}).items():
            if known.get(key_of(number), (-1, -1)) < place:
                what = f"the latest of {key_of(number)} at {place}, which has a receipt"
                raise Violation(f"a reader of the view of {TOPICS[topic]} does not know {what}: {known}")

    def _publish(self, box: CoreBox, topic: int) -> Place:
        client = box.client()
        client.producer(1, TOPICS[topic])
        client.send(1, body_of(_NEW, 50), 1)
        receipt = client.take("send_receipt").message_id
        return receipt.ledgerId, receipt.entryId
