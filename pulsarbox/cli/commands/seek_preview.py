"""Preview of `sub seek`: how many messages come back, and how many are skipped."""

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from pulsarbox.cli.common.backlog_units import MESSAGES
from pulsarbox.cli.common.position_arguments import PositionParam
from pulsarbox.cli.common.progress import messages
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
