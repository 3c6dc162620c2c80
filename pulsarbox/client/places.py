"""Message IDs, start positions and default values of options. Cheap to import."""

from typing import Final, NamedTuple

TIMEOUT_SECONDS: Final = 30.0
"""Timeout of requests and of reconnections."""
QUEUE: Final = 1000
"""Receiver queue size of a consumer, in messages."""
INCOMPLETE_MAX: Final = 100
"""Maximum number of incomplete chunked messages of a consumer, as in Go clients."""
SUBSCRIPTION_TYPES: Final = ("exclusive", "shared", "failover", "key_shared")


class MessageId(NamedTuple):
    """A message ID. Ordered within a topic that is not partitioned, or within one partition."""

    ledger: int
    entry: int
    batch_index: int = -1
    """Batch index; -1 for a message outside a batch."""
    partition: int = -1

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}:{self.partition}:{self.batch_index}"


EARLIEST = MessageId(-1, -1)
LATEST = MessageId(2**63 - 1, 2**63 - 1)


class Start(NamedTuple):
    """A start position."""

    id: MessageId = EARLIEST
    """A message ID, EARLIEST or LATEST."""
    time: int = 0
    """Start at the first message published at or after this time, in ms since 1970; 0: start at ``id``."""
    inclusive: bool = True
    """Whether the message ``id`` itself is included."""


FROM_THE_START: Final = Start()
