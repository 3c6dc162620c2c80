"""Where messages are, where reading begins, and the numbers that commands show as defaults. Light to import."""

from typing import Final, NamedTuple

TIMEOUT_SECONDS: Final = 30.0
"""For any answer, and for coming back after a lost connection."""
QUEUE: Final = 1000
"""Messages that a consumer asks for ahead."""
INCOMPLETE_MAX: Final = 100
"""Messages in chunks that a consumer puts together at once, as with Go clients."""
SUBSCRIPTION_TYPES: Final = ("exclusive", "shared", "failover", "key_shared")


class MessageId(NamedTuple):
    """Where a message is. Ordered within a topic, or within one partition."""

    ledger: int
    entry: int
    batch_index: int = -1
    """In its batch; -1 where it is in none."""
    partition: int = -1

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}:{self.partition}:{self.batch_index}"


EARLIEST = MessageId(-1, -1)
LATEST = MessageId(2**63 - 1, 2**63 - 1)


class Start(NamedTuple):
    """Where reading begins."""

    id: MessageId = EARLIEST
    """With this message, which is EARLIEST, LATEST or one of the topic's."""
    time: int = 0
    """With the first message published then or later, milliseconds since 1970; 0: as ``id`` says."""
    inclusive: bool = True
    """Whether the message of ``id`` itself is wanted."""


FROM_THE_START: Final = Start()
