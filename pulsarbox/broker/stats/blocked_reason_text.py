"""Texts for the reason why a subscription does not dispatch or a client waits."""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from pulsarbox.broker.backlog.refused_producers import RefusedProducer
from pulsarbox.broker.connection.served_connection import ServedConnection
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.clock import WALL_MAX

UNREAD: Final = "unread"
SUSPENDED: Final = "suspended"
HELD: Final = "throttled"
"""Reasons why a client waits: connection not read, producer suspended, receipts held back by a publish rate."""
QUOTA: Final = "quota"
"""The reason why a producer waits that a backlog quota has not admitted."""

TEXTS: Final[dict[str, str]] = {
    Reason.NO_CONSUMER: "no consumer is connected",
    Reason.NO_PERMITS: "no consumer is requesting messages: their receiver queues are full",
    Reason.SLOW_CONNECTION: "the clients are not reading the data sent to them",
    Reason.UNACKED_LIMIT: "too many messages are unacknowledged: dispatch resumes at half of the limit",
    Reason.KEY_BLOCKED: "the remaining messages have keys of no consumer, or of one that cannot receive",
    Reason.DRAINING: "keys have moved to other consumers; the previous ones must acknowledge first",
    Reason.CHUNKS: "the remaining messages are chunks for a consumer that requests no messages",
    Reason.DEAD_LETTERS: "many messages have become dead letters and are being committed",
    Reason.DELAYED: "the remaining messages are not due yet",
    Reason.THROTTLED: "the dispatch rate is reached",
    Reason.TAKING_OVER: "another consumer is about to take over",
    Reason.RESETTING: "the cursor is being reset",
    Reason.OPEN_TRANSACTION: "the remaining messages wait for an open transaction",
    Reason.READING: "entries are being read from disk",
    Reason.END_OF_LOG: "all messages have been sent",
}
"""Texts by reason, short enough for the status line of a terminal with 80 columns."""


class BlockedReasonText(NamedTuple):
    """The reason why nothing is being sent."""

    reason: str
    """One of Reason."""
    since: int
    """Since when (ms since 1970); 0: since the subscription was loaded."""
    text: str
    """Human-readable text of the reason."""
    until: int = 0
    """When dispatch continues (ms since 1970), if known: when the next delayed message is due."""


def reason_with_text(reason: str, since: int, until: int = 0) -> BlockedReasonText:
    """Return a reason with its text."""
    text = TEXTS[reason]
    if 0 < until <= WALL_MAX:
        at = datetime.fromtimestamp(until / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
        text = f"{text}; the next is due at {at[:-6]} UTC"
    return BlockedReasonText(reason, since, text, until)


def unread_reason(cnx: ServedConnection) -> BlockedReasonText | None:
    """Return why a connection is not read; None if it is."""
    unread = cnx.unread
    return (
        None
        if unread is None
        else BlockedReasonText(UNREAD, unread.since, f"the connection is not read: {unread.text}")
    )


def quota_reason(refused: RefusedProducer) -> BlockedReasonText:
    """Return why a producer waits that a backlog quota has refused."""
    return BlockedReasonText(QUOTA, refused.since, refused.cause)


def held_reason(producer: AttachedProducer) -> BlockedReasonText | None:
    """Return why a producer waits for its receipts or its connection is not read; None if neither."""
    hold = producer.held
    limiter = hold.limiter if hold is not None else None
    if hold is None or limiter is None:
        return unread_reason(producer.cnx)
    receipts = "1 receipt" if hold.held == 1 else f"{hold.held:,} receipts"
    wait = "waits" if hold.held == 1 else "wait"
    text = f"{receipts} ({hold.held_bytes:,} bytes) {wait} for the publish rate: {limiter.in_words}"
    if producer.suspended:
        text = f"suspended until its receipts are sent, then its client resends the rest; {text}"
        return BlockedReasonText(SUSPENDED, producer.suspended, text)
    return unread_reason(producer.cnx) or BlockedReasonText(HELD, hold.since, text)
