"""Fixtures for deduplication: a deduplicating box, its producers, and their responses."""

from typing import Any

from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk
from pulsarbox.storage.record import SequenceId, unpack_batch
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.policies.kept import set_policy

NOWHERE = (2**64 - 1, 2**64 - 1)


def dedup_box(disk: MemoryDisk | None = None, **settings: Any) -> Box:
    return Box(disk, brokerDeduplicationEnabled=True, **settings)


def opened(box: Box, name: str = "p") -> tuple[Client, int]:
    """Return a client with a producer of this name, and the last sequence ID in its PRODUCER_SUCCESS."""
    client = box.client()
    reply = client.producer(1, producer_name=name, user_provided_producer_name=True)
    return client, reply.last_sequence_id


def outcomes(client: Client) -> list[tuple[int, str]]:
    """Consume all received frames, which must be receipts. Return their sequence IDs and results."""
    found = []
    while client.inbox:
        receipt = client.take("send_receipt")
        where = (receipt.message_id.ledgerId, receipt.message_id.entryId)
        found.append((receipt.sequence_id, "duplicate" if where == NOWHERE else "stored"))
    return found


def stored(box: Box) -> list[bytes]:
    """Return the last byte of each entry of the topic, as received by a reader."""
    client = box.client()
    client.subscribe("reader", durable=False)
    client.flow(1000)
    return [payload[-1:] for _, payload in client.inbox]


def take(box: Box) -> Batch:
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    return batch


def sequences_in(batch: Batch) -> list[SequenceId]:
    return [record for _, record in unpack_batch(batch.value()) if isinstance(record, SequenceId)]


def said(client: Client) -> list[str]:
    """Consume all received frames, which must be receipts. Return their results."""
    return [what for _, what in outcomes(client)]


def switch(box: Box, on: bool | None) -> None:
    """Set the deduplication policy of the namespace, or remove it with None."""
    set_policy(box, deduplicationEnabled=on)
