"""Shared helpers for transaction tests."""

from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSend,
    MessageIdData,
    MessageMetadata,
    TxnAction,
)
from tests.unit.broker.playbook import TOPIC, Box, Client

OTHER = "persistent://public/default/other"
MINUTE = 60_000

NOT_ALLOWED, TOO_MANY, COORDINATOR_NOT_FOUND, INVALID_STATUS, CONFLICT, NOT_FOUND = 22, 14, 20, 21, 23, 24

At = tuple[int, int]


class Txn:
    """A transaction of a client."""

    def __init__(self, client: Client, timeout: int = MINUTE) -> None:
        self.client = client
        begun = client.request("newTxn", txn_ttl_seconds=timeout, tc_id=0)
        assert not begun.HasField("error"), begun
        self.bits: dict[str, Any] = {
            "txnid_most_bits": begun.txnid_most_bits,
            "txnid_least_bits": begun.txnid_least_bits,
        }

    def of(self, client: Client) -> "Txn":
        """Return the same transaction, used by another client."""
        other = Txn.__new__(Txn)
        other.client, other.bits = client, self.bits
        return other

    def post(self, sequence_id: int, producer_id: int = 1, batch: int = 0, **metadata: Any) -> None:
        """Publish an entry without waiting for the receipt."""
        if batch:
            metadata["num_messages_in_batch"] = batch
        fields: dict[str, Any] = {
            "producer_name": "p",
            "sequence_id": sequence_id,
            "publish_time": self.client.box.wall,
        } | metadata
        send = CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=batch or 1, **self.bits)
        body = b"t%d" % sequence_id
        payload = encode_entry(MessageMetadata(**fields, **self.bits), body)
        self.client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))

    def send(self, sequence_id: int, producer_id: int = 1, **more: Any) -> At:
        """Publish an entry and return its position."""
        self.post(sequence_id, producer_id, **more)
        receipt = self.client.take("send_receipt").message_id
        return receipt.ledgerId, receipt.entryId

    def ack(self, *ids: Any, consumer_id: int = 1, **fields: Any) -> Any:
        """Acknowledge individually and return the response."""
        return self.client.ack(*ids, consumer_id=consumer_id, **self.bits, **fields)

    def ack_through(self, at: Any) -> Any:
        """Acknowledge cumulatively and return the response."""
        return self.ack(at, ack_type=CommandAck.Cumulative)

    def end(self, action: int) -> Any:
        """Commit or abort, and return the response."""
        return self.client.request("endTxn", txn_action=action, **self.bits)

    def commit(self) -> None:
        """Commit and check for success."""
        done = self.end(TxnAction.COMMIT)
        assert done is not None and not done.HasField("error"), done

    def abort(self) -> None:
        """Abort and check for success."""
        done = self.end(TxnAction.ABORT)
        assert done is not None and not done.HasField("error"), done


def some_of(at: At, batch: int, *acked: int) -> MessageIdData:
    """Return the IDs of these messages of a batch."""
    left = ((1 << batch) - 1) & ~sum(1 << each for each in acked)
    return MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[left])


def topic_of(box: Box, name: str = TOPIC) -> PersistentTopic:
    """Return the topic."""
    topic = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def backlog(box: Box, name: str = TOPIC, subscription: str = "s") -> tuple[int, int]:
    """Return the unacknowledged messages and entries of a subscription."""
    cursor = topic_of(box, name).subscriptions[subscription].cursor
    return cursor.backlog_messages, cursor.backlog_entries


def reader(box: Box, name: str = "s", consumer_id: int = 1, permits: int = 1000, **fields: Any) -> Client:
    """Return a client with a consumer."""
    client = box.client(version=11)  # a protocol version without Failover notifications
    answer = client.subscribe(name, consumer_id, **fields)
    assert answer is not None and not hasattr(answer, "error"), answer
    client.flow(permits, consumer_id)
    return client
