"""Preview of `sub seek` and `sub skip`: how many messages come back, and how many are skipped."""

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from pulsarbox.cli.common.backlog_units import MESSAGES
from pulsarbox.cli.common.position_arguments import PositionParam, parse_place
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import counted
from pulsarbox.names import PERSISTENT, TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_VERBS: Final = {"redelivered": "delivered again", "skipped": "skipped"}


def preview(admin: "Admin", topic: TopicName, subscription: str, place: PositionParam) -> dict[str, Any] | None:
    """Return the messages ``before`` and ``after`` a seek, ``redelivered`` and ``skipped``; None from other brokers.

    The topic and the subscription must exist.
    """
    from pulsarbox.client.admin import AdminRefused, quoted, subscription_segment

    target = place.of(topic)
    if target.domain != PERSISTENT:
        return None
    path = f"/seek-preview/{quoted(target.tenant, target.namespace_local, target.local)}"
    try:
        found: dict[str, Any] = admin.own(f"{path}/{subscription_segment(subscription)}?{urlencode(query(place))}")
    except AdminRefused as error:
        if error.status in (404, 405):
            return None
        raise
    return found


def query(place: PositionParam) -> dict[str, int]:
    """Return a position as parameters of the request."""
    return {"timestamp": place.time} if place.time is not None else place.body


def expiring(found: dict[str, Any]) -> int:
    """Return how many messages an expiry up to the position removes; none if the subscription is beyond it."""
    return 0 if found["redelivered"] else int(found["skipped"])


def skipped_by(found: dict[str, Any] | None, place: PositionParam) -> int | None:
    """Return how many messages a seek skips; None if the broker has no preview and the seek may skip all."""
    if found is not None:
        return int(found["skipped"])
    return None if place.word == "latest" else 0


def messages_in(admin: "Admin", topic: TopicName, subscription: str, entries: int) -> int | None:
    """Return how many messages the next ``entries`` entries of a subscription contain; None from other brokers.

    The topic, which is not partitioned, and the subscription must exist.
    """
    end = admin.unacknowledged_entry(topic, subscription, entries + 1)
    found = preview(admin, topic, subscription, parse_place(end or "latest"))
    return None if found is None else int(found["skipped"])


def amount_words(entries: int, messages_in_them: int | None) -> str:
    """Return a number of entries in words, with their messages if these are more, or if they are all that counts."""
    if messages_in_them is None:
        return counted(entries, "entry", "entries")
    if messages_in_them == entries:
        return counted(entries, "message")
    return f"{counted(messages_in_them, 'message')} in {counted(entries, 'entry', 'entries')}"


def preview_words(found: dict[str, Any] | None, place: PositionParam) -> str:
    """Return what a seek would do to a backlog, in words."""
    if found is None:
        return "the broker has no preview of a seek"
    parts = [f"{found[name]:,} {verb}" for name, verb in _VERBS.items() if found[name]]
    effect = ", ".join(parts) or "no change"
    return f"a seek to {place} changes the backlog from {found['before']:,} to {messages(found['after'])}: {effect}"


def contradiction(
    expected: dict[str, Any] | None, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> str | None:
    """Return why a seek has failed although the broker reported success; None if it has not.

    A backlog below the preview is explained by consumers only as far as messages were delivered since.
    """
    if expected is None or before is None or after is None or after["backlog_unit"] != MESSAGES:
        return None
    missing = expected["after"] - after["backlog"] - max(0, after["delivered"] - before["delivered"])
    if missing <= 0:
        return None
    return (
        f"is not at the new position: {missing:,} of {expected['after']:,} messages were acknowledged or have expired "
        "without delivery. Stop the consumers that acknowledge earlier messages, and repeat the seek"
    )
