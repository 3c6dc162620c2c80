"""Chunked messages on Shared subscriptions: all chunks of a message go to the consumer of the first."""

from collections import OrderedDict
from typing import Final

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.record import Entry

MAX_MESSAGES: Final = 10_000
"""Chunked messages tracked at a time; remaining chunks of older ones go to the consumer whose turn it is."""


class ChunkOwners:
    """The consumers of partly dispatched chunked messages."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, Consumer] = OrderedDict()

    def owner(self, entry: Entry, turn: Consumer) -> Consumer:
        """Return the consumer that has the message's other chunks, or ``turn``, whose turn it is."""
        metadata = parse_entry(entry.body).metadata
        if metadata.chunk_id == 0:
            self._owners.pop(metadata.uuid, None)  # redelivered: it may go to another consumer
        owner = self._owners.get(metadata.uuid, turn)
        if metadata.chunk_id + 1 >= metadata.num_chunks_from_msg:
            self._owners.pop(metadata.uuid, None)
        else:
            self._owners[metadata.uuid] = owner
            if len(self._owners) > MAX_MESSAGES:
                self._owners.popitem(last=False)
        return owner

    def forget(self, consumer: Consumer) -> None:
        """Forget a removed consumer."""
        for uuid in [uuid for uuid, owner in self._owners.items() if owner is consumer]:
            del self._owners[uuid]

    def clear(self) -> None:
        """Forget all consumers."""
        self._owners.clear()
