"""The reason why a subscription is not dispatching, and since when.

A dispatcher stops at a certain point of its loop, and each such point has one reason, so recording it costs one
comparison. ``Dispatcher.blocked_reason`` refines it on request.
"""

from typing import Final

from pulsarbox.clock import Now


class Reason:
    """Reasons for a stopped dispatcher. Plain strings: compared on the hot path and shown to users."""

    NO_CONSUMER: Final = "no-consumer"
    """No consumer is connected."""
    NO_PERMITS: Final = "no-permits"
    """No consumer has permits (FLOW) left."""
    SLOW_CONNECTION: Final = "slow-connection"
    """Consumers have permits, but their clients are not reading from the connection."""
    UNACKED_LIMIT: Final = "unacked-limit"
    """Too many unacknowledged messages: of every consumer with permits, of the subscription, or of the broker."""
    KEY_BLOCKED: Final = "key-blocked"
    """The remaining keys belong to consumers that cannot receive now, or to no consumer."""
    DRAINING: Final = "draining"
    """The remaining keys have moved to other consumers while their previous ones still hold unacknowledged entries."""
    CHUNKS: Final = "chunks"
    """The remaining entries are chunks of messages whose first chunks went to consumers without permits."""
    DEAD_LETTERS: Final = "dead-letters"
    """Many messages have become dead letters and wait for the disk."""
    DELAYED: Final = "delayed"
    """The remaining messages are delayed and not due yet."""
    THROTTLED: Final = "throttled"
    """A dispatch rate is used up."""
    TAKING_OVER: Final = "taking-over"
    """The new active consumer of a Failover subscription is waiting for the failover delay."""
    RESETTING: Final = "resetting"
    """The cursor is being reset and consumers are being disconnected."""
    OPEN_TRANSACTION: Final = "open-transaction"
    """The remaining messages belong to an open transaction or follow one that does."""
    READING: Final = "reading"
    """Entries are being read from disk."""
    END_OF_LOG: Final = "end-of-log"
    """Everything has been dispatched."""


class BlockedSince:
    """The current reason for not dispatching, and since when."""

    __slots__ = ("reason", "since")

    def __init__(self) -> None:
        self.reason: str = Reason.NO_CONSUMER
        self.since = 0
        """Milliseconds since 1970 on the wall clock; 0 means since the subscription was loaded."""

    def stopped(self, reason: str, now: Now, *, sent: bool = False) -> None:
        """Record why dispatching stopped; ``sent``: something was dispatched immediately before."""
        if sent or reason != self.reason:
            self.reason = reason
            self.since = now.wall
