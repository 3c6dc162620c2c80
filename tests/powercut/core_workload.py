"""A recorded process: the whole core, with clients that publish, consume and acknowledge.

``python -m tests.powercut.core_workload PATH SEED STEPS LEDGERS``; LEDGERS is ignored. An operation is marked as
acknowledged only if a client can know: by a receipt, an ack response, or the answer to a request.
"""

import random
import sys
from pathlib import Path
from typing import Any

from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandAck, MessageIdData
from pulsarbox.storage.engine import Reclaimed
from tests.powercut import marks
from tests.powercut.core_box import SUBSCRIPTIONS, TOPICS, CoreBox, body_of, key_of
from tests.powercut.lives import lives
from tests.unit.broker.playbook import Client

KIB = 1 << 10
NUMBERS_OF_A_SEED = 1_000_000


class CoreWorkload:
    """Clients of a broker."""

    def __init__(self, path: Path, seed: int, mark: marks.Marker) -> None:
        self._path = path
        self._dice = random.Random(f"clients {seed}")
        self._mark = mark
        self._number = seed * NUMBERS_OF_A_SEED
        self._options: dict[str, Any] = {
            "volume_size": self._dice.choice((48 * KIB, 96 * KIB)),
            "index_flush_entries": self._dice.choice((10, 40)),
            "pack_live_percent": self._dice.choice((50, 90)),
        }
        self._held: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """Unacknowledged messages of each subscription's consumer, by topic and subscription."""
        mark(marks.OPTIONS, **self._options)

    def run(self, steps: int) -> None:
        """Run all lives."""
        for life in lives(steps, self._dice):
            self._live(life)

    def _live(self, steps: int) -> None:
        self._box = CoreBox(self._path, self._options, self._reclaimed)
        self._mark(marks.REOPENED)
        self._held = {}
        self._consumers = [self._box.client() for _ in SUBSCRIPTIONS]
        self._publisher = self._box.client()
        for topic, name in enumerate(TOPICS):
            for subscription, client in enumerate(self._consumers):
                client.subscribe(SUBSCRIPTIONS[subscription], topic, name)
                self._mark(marks.SUBSCRIBED, topic=topic, subscription=subscription)
                client.flow(10_000, topic)
            self._box.compact(name)  # from now on, the topic retains uncompacted messages
            self._publisher.producer(topic, name)
        for _ in range(steps):
            self._step()
        self._box.lmdb.close()

    def _reclaimed(self, done: Reclaimed) -> None:
        self._mark(marks.RECLAIMED, what=done.what)

    def _step(self) -> None:
        what = self._dice.random()
        if what < 0.55:
            self._publish(self._dice.randrange(len(TOPICS)))
        elif what < 0.9:
            self._acknowledge()
        elif what < 0.93:
            self._box.broker.commits.ask_checkpoint()
            self._box.turn()
        elif what < 0.95:
            self._box.advance(self._dice.choice((0.02, 3.0)))
        else:
            self._compact(self._dice.randrange(len(TOPICS)))

    def _compact(self, topic: int) -> None:
        """Compact the topic, completely or up to the next operation."""
        self._box.compact(TOPICS[topic])
        self._box.turn()
        for _ in range(self._dice.choice((2, 5, 100))):
            self._box.advance(0.001)
        self._mark(marks.COMPACTED, topic=topic, ended=self._box.compaction(TOPICS[topic]).run is None)

    def _publish(self, topic: int) -> None:
        """Publish some messages, in one turn or one by one."""
        dice, box = self._dice, self._box
        messages = []
        for _ in range(dice.randint(1, 6)):
            self._number += 1
            messages.append((self._number, dice.choice((40, 400, 4_000))))
        self._mark(marks.SENT, topic=topic, numbers=[number for number, _ in messages])
        box.auto = False
        for number, size in messages:
            self._publisher.send(number, body_of(number, size), topic, partition_key=key_of(number))
        box.auto = True
        box.turn()
        receipts = [self._publisher.take("send_receipt") for _ in messages]
        positions = {
            receipt.sequence_id: (receipt.message_id.ledgerId, receipt.message_id.entryId) for receipt in receipts
        }
        self._mark(marks.RECEIPTED, topic=topic, positions=[[*positions[number], number] for number, _ in messages])

    def _acknowledge(self) -> None:
        topic, subscription = self._dice.randrange(len(TOPICS)), self._dice.randrange(len(SUBSCRIPTIONS))
        self._collect(subscription)
        held = self._held.get((topic, subscription), [])
        if not held:
            return
        cumulative = self._dice.random() < 0.3
        if cumulative:
            upto = self._dice.randrange(len(held))
            chosen, fields = held[: upto + 1], {"ack_type": CommandAck.Cumulative}
            ids = chosen[-1:]
        else:
            chosen = self._dice.sample(held, self._dice.randint(1, min(5, len(held))))
            ids, fields = chosen, {}
        facts: dict[str, Any] = {"topic": topic, "subscription": subscription, "positions": chosen}
        self._mark(marks.ACKING, **facts)
        reply = self._consumers[subscription].ack(*ids, consumer_id=topic, **fields)
        assert reply is not None and not reply.HasField("error"), reply
        self._mark(marks.ACKED, **facts)
        self._held[topic, subscription] = [one for one in held if one not in chosen]

    def _collect(self, subscription: int) -> None:
        client = self._consumers[subscription]
        for topic, position, _ in messages_of(client):
            self._held.setdefault((topic, subscription), []).append(position)


def messages_of(client: Client) -> list[tuple[int, tuple[int, int], bytes]]:
    """Return the messages sent to a client: consumer ID, position and payload of each."""
    frames, client.inbox = client.inbox, []
    found = []
    for data, payload in frames:
        command = parse_command(data)
        if command.type == BaseCommand.MESSAGE:
            place: MessageIdData = command.message.message_id
            found.append((command.message.consumer_id, (place.ledgerId, place.entryId), payload))
    return found


if __name__ == "__main__":
    _, path, seed, steps, _ = sys.argv
    CoreWorkload(Path(path), int(seed), marks.Marker()).run(int(steps))
