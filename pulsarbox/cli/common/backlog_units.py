"""Backlogs in messages, or in entries if the broker counts only those, as Apache Pulsar does.

An entry is one send of a producer: a single message, a batch, or one chunk of a large message.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

MESSAGES: Final = "messages"
ENTRIES: Final = "entries"


class BacklogColumns(NamedTuple):
    """Backlog columns of a table, and their titles."""

    names: Sequence[str]
    titles: Mapping[str, str]


def backlog_fields(subscriptions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``backlog``, ``backlog_entries`` and ``backlog_unit``, summed over the statistics of subscriptions."""
    each = list(subscriptions)
    entries = sum(stats["msgBacklog"] for stats in each)
    if all("backlogMessages" in stats for stats in each):
        messages = sum(stats["backlogMessages"] for stats in each)
        return {"backlog": messages, "backlog_entries": entries, "backlog_unit": MESSAGES}
    return {"backlog": entries, "backlog_entries": entries, "backlog_unit": ENTRIES}


def backlog_columns(rows: Collection[Mapping[str, Any]]) -> BacklogColumns:
    """Return the backlog columns for these rows. Entries get their own column if they differ from messages."""
    if any(row["backlog_unit"] == ENTRIES for row in rows):
        return BacklogColumns(["backlog"], {"backlog": "BACKLOG (ENTRIES)"})
    if any(row["backlog"] != row["backlog_entries"] for row in rows):
        return BacklogColumns(["backlog", "backlog_entries"], {"backlog_entries": "ENTRIES"})
    return BacklogColumns(["backlog"], {})
