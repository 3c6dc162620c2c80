"""Unsubscribed retention as text: messages kept without a subscription, the rule, and the expiry."""

from datetime import UTC, datetime
from typing import Any, Final

from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import megabytes
from pulsarbox.clock import WALL_MAX, in_words

SETTINGS: Final = "unsubscribedRetentionTimeInMinutes, unsubscribedRetentionSize"


def kept_words(kept: dict[str, Any]) -> str:
    """Describe the member ``unsubscribed`` of a topic's statistics."""
    text = f"{messages(kept['messages'])}, {megabytes(kept['bytes'])}, that no subscription has covered"
    return f"{text}; kept {_until(kept['until'])}"


def _until(wall: int) -> str:
    if not 0 < wall <= WALL_MAX:
        return "without a time limit"
    at = datetime.fromtimestamp(wall / 1000, UTC)
    return f"until {at:%Y-%m-%d %H:%M:%S} UTC, or until the limit for all topics is reached"


def rule_words(rule: dict[str, Any] | None) -> str:
    """Describe the unsubscribed retention that applies to a topic."""
    if rule is None:
        return "Messages that no subscription has covered are not retained beyond that, as in Pulsar."
    minutes, limit = rule["timeInMinutes"], rule["limit"]
    time = "without a time limit" if minutes < 0 else f"for {in_words(minutes * 60_000)}"
    size = ""
    if limit >= 0:
        share = f"{rule['size']}, " if rule["size"].endswith("%") else ""
        size = f", at most {share}{megabytes(limit)} for all topics together ({megabytes(rule['used'])} used)"
    return f"Until a topic has a subscription, its messages are kept {time}{size} ({SETTINGS})."
