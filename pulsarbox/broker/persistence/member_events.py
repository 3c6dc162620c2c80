"""Events about the data directories of an ensemble."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pulsarbox.broker.events import Events
from pulsarbox.clock import Now
from pulsarbox.storage.ensemble.status import MemberEvent

EVENT_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "member-lost": "directory-lost",
        "member-full": "directory-full",
        "member-late": "directory-late",
        "member-fenced": "directory-fenced",
        "member-joined": "directory-joined",
        "member-left": "directory-left",
        "fragments-repaired": "fragments-repaired",
        "entries-damaged": "copies-damaged",
        "shared-device": "shared-device",
    }
)
"""The kind of event for each kind of change; a new segment is none."""


def report_member(change: MemberEvent, events: Events, now: Now) -> None:
    """Report a change of a data directory."""
    kind = EVENT_OF.get(change.kind)
    if kind is not None:
        events.report(kind, change.member, change.text, now)
