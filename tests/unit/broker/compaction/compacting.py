"""Fixtures for compaction: a box with a compacted topic, a keyed producer, and recording consumers."""

from typing import Any

from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from tests.unit.broker.compaction.entries import opened
from tests.unit.broker.delays_playbook import topic_of
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box, Client


def box_of(*, trims: bool = False, **settings: Any) -> Box:
    """Build a box with short ledgers.

    Keep-alive checks are disabled. With ``trims``, compacted messages are not retained.
    """
    if not trims:
        settings |= {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    box = Box(keepAliveIntervalSeconds=1_000_000, **({"managedLedgerMaxEntriesPerLedger": 4} | AS_PULSAR | settings))
    client = box.client()
    client.producer(9)
    client.request("close_producer", producer_id=9)
    if trims:
        compaction_of(box).start(box.now)  # An empty compaction: from now on, uncompacted messages are retained.
        box.turn()
    return box


def compaction_of(box: Box) -> TopicCompaction:
    return topic_of(box).compaction


def settle(box: Box) -> None:
    """Complete pending work. A compaction pauses between its steps."""
    for _ in range(500):
        box.advance(0.001)
        if compaction_of(box).run is None:
            break
    box.advance(0.001)


def compact(box: Box) -> None:
    """Run a compaction of the topic to its end."""
    compaction_of(box).start(box.now)
    box.turn()
    settle(box)
    assert not box.broker.compactions.record(TOPIC).error


class Sender:
    """A producer of keyed messages."""

    def __init__(self, box: Box, pause: float = 0) -> None:
        """``pause``: seconds before each message."""
        self.box = box
        self.pause = pause
        self.client = box.client()
        self.client.producer(1)
        self.sent = 0
        self.positions: dict[str, tuple[int, int]] = {}
        """Position of the latest message of each key."""
        self.times: list[int] = []
        """Publish time of each message."""
        self.known: dict[str, bytes] = {}
        """The values that a reader of the whole topic has at the end, by key."""

    def send(self, key: str, value: bytes | None) -> tuple[int, int]:
        """Publish a message and return its position."""
        self.box.advance(self.pause)
        self.times.append(self.box.wall)
        self.sent += 1
        empty = {"null_value": True} if value is None else {}
        self.client.send(self.sent, value or b"", partition_key=key, **empty)
        receipt = self.client.take("send_receipt").message_id
        self.known.pop(key, None)
        if value is not None:
            self.known[key] = value
        self.positions[key] = receipt.ledgerId, receipt.entryId
        return self.positions[key]

    def rounds(self, count: int, keys: int = 3) -> None:
        """Publish each of a few keys in several rounds."""
        for number in range(count):
            for key in range(keys):
                self.send(f"k{key}", b"%d" % number)


class Taker:
    """A consumer that reads the compacted view and records the messages it receives."""

    def __init__(self, box: Box, name: str = "s", permits: int = 1000, **fields: Any) -> None:
        self.client: Client = box.client()
        self.got: list[tuple[int, int]] = []
        self.known: dict[str, bytes] = {}
        reply = self.client.subscribe(name, **({"read_compacted": True} | fields))
        assert not hasattr(reply, "error"), reply
        self.client.flow(permits)

    def take(self) -> list[tuple[int, int]]:
        """Record the messages received since the last call and return their positions."""
        came = []
        inbox, self.client.inbox = self.client.inbox, []
        for data, payload in inbox:
            command = parse_command(data)
            assert command.HasField("message"), command
            at = command.message.message_id
            came.append((at.ledgerId, at.entryId))
            for message in opened(payload):
                if message is not None:
                    self.known.pop(message[0], None)
                    if message[1]:
                        self.known[message[0]] = message[1]
        self.got += came
        return came

    def ack(self, *positions: tuple[int, int], cumulative: bool = False) -> None:
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in positions]
        assert not self.client.ack(*ids, ack_type=1 if cumulative else 0).error


def reader(box: Box, start: tuple[int, int] = (-1, -1), name: str = "r", **fields: Any) -> Taker:
    """Return a reader of the compacted view."""
    ledger, entry = (word & (2**64 - 1) for word in start)
    message_id = MessageIdData(ledgerId=ledger, entryId=entry)
    return Taker(box, name, durable=False, start_message_id=message_id, **fields)


def subscribe_again(taker: Taker, durable: bool) -> None:
    """Subscribe again after a seek closed the consumer: like ``Taker`` if ``durable``, else like ``reader``."""
    fields: dict[str, Any] = {} if durable else {"durable": False}
    taker.client.subscribe("s" if durable else "r", read_compacted=True, **fields)


def trimmed_box() -> tuple[Box, Sender, list[tuple[int, int]]]:
    """Build a box whose compacted view has three keys that are all trimmed from the log. Return their positions too."""
    box = box_of(trims=True)
    sender = Sender(box, pause=1)
    sender.rounds(8)
    compact(box)
    sender.send("k9", b"behind")
    everybody = reader(box, name="all")
    came = everybody.take()
    everybody.client.cnx.closed(box.now)
    assert len(came) == 4 and came[2][0] < topic_of(box).ledger.first_position().ledger_id
    return box, sender, came
