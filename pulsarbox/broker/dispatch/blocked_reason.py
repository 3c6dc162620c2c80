"""Why a subscription is not sending: the one reason there is at a time, and since when.

A dispatcher stops at some point of its loop, and each of these points has its reason, so that keeping it costs a
comparison. ``Dispatcher.why`` looks closer, when somebody asks.
"""

from typing import Final

from pulsarbox.clock import Now


class Reason:
    """What a dispatcher is waiting for. Plain strings: they are compared on the hot path and shown to people."""

    NO_CONSUMER: Final = "no-consumer"
    """Nobody is connected."""
    NO_PERMITS: Final = "no-permits"
    """Every consumer has got what it asked for (FLOW) and asks for no more."""
    SLOW_CONNECTION: Final = "slow-connection"
    """There are permits, but the clients do not read what was sent to them."""
    UNACKED_LIMIT: Final = "unacked-limit"
    """Too many messages are unacknowledged: of each consumer that has permits, of the subscription or of the broker."""
    KEY_BLOCKED: Final = "key-blocked"
    """What is left has keys of consumers that take nothing now, or of nobody; others could take something else."""
    DRAINING: Final = "draining"
    """What is left has keys that moved to other consumers; those that have it unacknowledged are waited for."""
    CHUNKS: Final = "chunks"
    """What is left are chunks of messages of which a consumer without permits has the first."""
    DEAD_LETTERS: Final = "dead-letters"
    """Many messages have become dead letters: the disk is waited for."""
    DELAYED: Final = "delayed"
    """What is left is not due yet."""
    THROTTLED: Final = "throttled"
    """A dispatch rate is used up."""
    TAKING_OVER: Final = "taking-over"
    """Another consumer of a Failover subscription has become the active one, a moment ago."""
    RESETTING: Final = "resetting"
    """The cursor is being moved: consumers are told to come back."""
    OPEN_TRANSACTION: Final = "open-transaction"
    """What is left is of a transaction that is open, or behind one of its messages."""
    READING: Final = "reading"
    """Entries are on their way from the disk."""
    END_OF_LOG: Final = "end-of-log"
    """Everything is sent."""


class Standstill:
    """The reason why nothing is being sent, and since when."""

    __slots__ = ("reason", "since")

    def __init__(self) -> None:
        self.reason: str = Reason.NO_CONSUMER
        self.since = 0
        """Milliseconds since 1970 on the wall clock; 0 for since the subscription came into memory."""

    def stopped(self, reason: str, now: Now, *, sent: bool = False) -> None:
        """Nothing more can be sent; ``sent``: something was, right before."""
        if sent or reason != self.reason:
            self.reason = reason
            self.since = now.wall
