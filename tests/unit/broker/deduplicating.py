"""A box that deduplicates, its producers, and what they are told."""

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
    """A client with a producer of this name, and the last sequence id it was told."""
    client = box.client()
    reply = client.producer(1, producer_name=name, user_provided_producer_name=True)
    return client, reply.last_sequence_id


def outcomes(client: Client) -> list[tuple[int, str]]:
    """Take all frames, which must be receipts: sequence id, and what was said."""
    found = []
    while client.inbox:
        receipt = client.take("send_receipt")
        where = (receipt.message_id.ledgerId, receipt.message_id.entryId)
        found.append((receipt.sequence_id, "duplicate" if where == NOWHERE else "stored"))
    return found


def stored(box: Box) -> list[bytes]:
    """The last byte of each entry of the topic, as a reader gets them."""
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
    """Take all frames, which must be receipts: what was said."""
    return [what for _, what in outcomes(client)]


def switch(box: Box, on: bool | None) -> None:
    """Set the policy of the namespace; None: none."""
    set_policy(box, deduplicationEnabled=on)
