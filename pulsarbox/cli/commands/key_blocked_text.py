"""Consumers of a Key_Shared subscription whose keys hold back its messages, in words."""

from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.common.progress import messages
from pulsarbox.names import PERSISTENT, TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

KEY_BLOCKED: Final = "key-blocked"
"""The reason in the statistics of a subscription."""
_SHOWN_MAX: Final = 3


def naming_consumers(admin: "Admin", topic: TopicName, name: str, stats: dict[str, Any]) -> dict[str, Any]:
    """Return statistics whose cause, if keys are blocked, names the consumers that the messages wait for.

    Only a box reports them, and not for partitioned topics.
    """
    why = stats.get("why") or {}
    if why.get("reason") != KEY_BLOCKED or topic.domain != PERSISTENT:
        return stats
    from pulsarbox.client.admin import AdminRefused, quoted, subscription_segment

    path = f"/maps/keys/{quoted(topic.tenant, topic.namespace_local, topic.local)}"
    try:
        found = admin.own(f"{path}/{subscription_segment(name)}")
    except AdminRefused:  # a partitioned topic, another type by now, or not authorized to consume
        return stats
    text, since = blocked_words(found)
    return stats | {"why": why | {"text": text, "since": since or why.get("since")}} if text else stats


def blocked_words(key_map: dict[str, Any]) -> tuple[str, int]:
    """Return the messages that wait for each consumer, the most first, and since when (ms since 1970; 0: unknown).

    The text is empty if no message waits for a consumer.
    """
    waiting: dict[str, int] = {}
    for key in key_map["stuck"]:
        name = key.get("holder") or key.get("owner")
        if name:
            waiting[name] = waiting.get(name, 0) + key["waiting"]
    least = "at least " if key_map["stuckTotal"] > len(key_map["stuck"]) else ""
    largest = sorted(waiting, key=lambda name: -waiting[name])
    parts = [
        f"{least}{messages(waiting[name])} wait{'s' if waiting[name] == 1 else ''} for {_consumer(name, key_map)}"
        for name in largest[:_SHOWN_MAX]
    ]
    if len(largest) > _SHOWN_MAX:
        parts.append(f"others for {len(largest) - _SHOWN_MAX} more consumers")
    return "; ".join(parts), min((key["since"] for key in key_map["stuck"] if key.get("since")), default=0)


def _consumer(name: str, key_map: dict[str, Any]) -> str:
    """Return the name of a consumer with the state that explains why it receives no more."""
    found = [each for each in key_map["consumers"] if each["name"] == name]
    unacked = sum(each["unacked"] for each in found)
    facts = [f"has {unacked:,} unacknowledged"] if unacked else []
    if found and all(each["permits"] <= 0 for each in found):
        facts.append("requests no more")
    return f"{name}, which {' and '.join(facts)}" if facts else name
