"""Metadata of a message as lines, for the screen of one message and for the preview of the browser."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.cleaning import clean
from pulsarbox.tui.widgets import numbers, payload_view

_VALUE_LEAST: Final = 20
"""Characters shown of the value of a property with a long name."""
_STATES: Final = {"inFlight": "in flight"}
"""States of the Admin API that are no words."""


def facts(row: Mapping[str, Any], most: int, shown: int | None = None) -> list[str]:
    """Return the metadata of a message as lines, with at most ``most`` characters of each value.

    ``shown`` is the number of properties to show; all of them by default.
    """
    by = f"by {payload_view.cut(row.get('producer') or '-', most)} #{row.get('sequenceId')}"
    lines = [f"published    {numbers.instant(row.get('publishTime'))}   {by}"]
    for name, title, form in _FACTS:
        if _is_told(row, name):
            lines.append(f"{title:<12} {payload_view.cut(form(row[name]), most)}")
    return lines + _properties(row, most, shown)


def fitted_facts(row: Mapping[str, Any], most: int, room: int) -> list[str]:
    """Return the metadata in ``room`` lines, without the last properties if there are too many of them."""
    lines, count = facts(row, most), properties_of(row)
    shown = max(count - (len(lines) - room) - 1, 1)  # a further line has their number
    return lines if len(lines) <= room or shown >= count - 1 else facts(row, most, shown)


def properties_of(row: Mapping[str, Any]) -> int:
    """Return the number of properties of a message."""
    found = row.get("properties")
    return len(found) if isinstance(found, Mapping) else 0


def state_of(row: Mapping[str, Any]) -> str | None:
    """Return the state of a message on the subscription in words, None without one."""
    state = row.get("state")
    return None if state is None else _STATES.get(str(state), str(state))


def _properties(row: Mapping[str, Any], most: int, shown: int | None) -> list[str]:
    found = row.get("properties")
    if not isinstance(found, Mapping):
        return []
    lines = []
    for name, value in list(found.items())[:shown]:
        title = payload_view.cut(name, most)
        lines.append(f"{title} = {payload_view.cut(value, max(most - len(title), _VALUE_LEAST))}")
    if len(lines) < len(found):
        lines.insert(0, f"{len(found):,}, {len(lines):,} shown")
    return [f"{'' if at else 'properties':<12} {line}" for at, line in enumerate(lines)]


def _is_told(row: Mapping[str, Any], name: str) -> bool:
    """Return whether a value says something. The number 0 does, except for times, which it leaves unset."""
    value = row.get(name)
    if value is None or value is False or value in ("", {}, -1):
        return False
    if name == "redeliveries":
        return bool(value) or bool(row.get("state"))
    return value != 0 or name in ("schemaVersion", "partition")


def _ordering_key(value: Any) -> str:
    """Return an ordering key as text, or as base64 if it is not text."""
    try:
        return clean(b64decode(str(value), validate=True).decode())
    except ValueError:
        return f"{value} (base64)"


_FACTS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("key", "key", str),
    ("orderingKey", "ordering key", _ordering_key),
    ("eventTime", "event time", numbers.instant),
    ("deliverAt", "due", numbers.instant),
    ("schemaVersion", "schema", str),
    ("codec", "compressed", str),
    ("encrypted", "encrypted", lambda value: "yes"),
    ("partition", "partition", str),
    ("batchSize", "batch size", str),
    ("chunk", "chunk", lambda chunk: f"{payload_view.number_of_chunk(chunk)} of message {chunk.get('uuid')}"),
    ("tombstone", "tombstone", lambda value: "yes"),
    ("marker", "marker", lambda value: "yes: written by a transaction or the broker"),
    ("state", "state", lambda state: _STATES.get(str(state), str(state))),
    ("consumer", "consumer", str),
    ("redeliveries", "redeliveries", str),
    ("closed", "undecodable", str),
    ("damaged", "damaged", str),
)
