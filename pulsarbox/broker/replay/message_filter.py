"""Filters of stored messages for jobs and requests."""

from collections.abc import Callable

from pulsarbox.broker.replay.entry_messages import InspectedMessage
from pulsarbox.errors import Unprocessable
from pulsarbox.protocol.dead_letters.message_filter import message_language

Wanted = Callable[[InspectedMessage], bool]


def parse_filter(text: str, now: int) -> Wanted | None:
    """Return the predicate for a filter, None for an empty one, which matches all messages.

    ``now`` (ms since 1970) is the base of relative times such as time("-1h"). Raises Unprocessable.
    """
    if not text.strip():
        return None
    try:
        return message_language().parse(text, now)
    except ValueError as error:
        raise Unprocessable(f"filter: {error}") from None
