"""Which consumer of a Shared subscription gets the chunks of a large message: all go where the first went."""

from collections import OrderedDict
from typing import Final

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.record import Entry

MAX_MESSAGES: Final = 10_000
"""Messages whose chunks are followed; of older ones the rest goes to whose turn it is."""


class ChunkOwners:
    """The consumers of messages of which some chunks were sent and some were not."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, Consumer] = OrderedDict()

    def owner(self, entry: Entry, turn: Consumer) -> Consumer:
        """Who gets this chunk: who has the others, else the one whose turn it is."""
        metadata = parse_entry(entry[11]).metadata
        if metadata.chunk_id == 0:
            self._owners.pop(metadata.uuid, None)  # it is sent again, and may go to somebody else
        owner = self._owners.get(metadata.uuid, turn)
        if metadata.chunk_id + 1 >= metadata.num_chunks_from_msg:
            self._owners.pop(metadata.uuid, None)
        else:
            self._owners[metadata.uuid] = owner
            if len(self._owners) > MAX_MESSAGES:
                self._owners.popitem(last=False)
        return owner

    def forget(self, consumer: Consumer) -> None:
        """The consumer has gone."""
        for uuid in [uuid for uuid, owner in self._owners.items() if owner is consumer]:
            del self._owners[uuid]

    def clear(self) -> None:
        """Nobody has anything."""
        self._owners.clear()
