"""Producers that publish without waiting for receipts."""

from typing import Any

from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.protocol.commands import COMMANDS, parse_command
from tests.unit.broker.playbook import TOPIC, Box, Client

OTHER = "persistent://public/default/other"
NON_PERSISTENT = "non-persistent://public/default/n"
TEN: dict[str, Any] = {"maxPublishRatePerTopicInMessages": 10}


def opened(box: Box, topic: str = TOPIC, producer_id: int = 1, client: Client | None = None) -> Client:
    """Return a client with a producer."""
    client = client or box.client()
    reply = client.producer(producer_id, topic)
    assert not hasattr(reply, "error"), reply
    return client


def flood(client: Client, count: int, producer_id: int = 1, first: int = 0, **fields: Any) -> None:
    """Publish without waiting for receipts."""
    for i in range(count):
        client.send(first + i, producer_id=producer_id, **fields)


def receipts(client: Client) -> list[tuple[int, int]]:
    """Return the producer ID and sequence ID of each received receipt."""
    found = []
    taken, client.inbox = client.inbox, []
    for data, _ in taken:
        command = parse_command(data)
        if COMMANDS[command.type].field == "send_receipt":
            found.append((command.send_receipt.producer_id, command.send_receipt.sequence_id))
    return found


def producer_of(client: Client, producer_id: int = 1) -> AttachedProducer:
    """Return the broker's producer object."""
    return client.cnx.producers[producer_id]
