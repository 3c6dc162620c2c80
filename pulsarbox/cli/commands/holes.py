"""Holes of a subscription: unacknowledged entries before acknowledged ones, from the broker's statistics."""

import re
from typing import Any, Final

from pulsarbox.cli.common.terminal_text import notify

_RANGE: Final = re.compile(r"\((\d+):(-?\d+)\.\.(\d+):(-?\d+)\]")


def holes_of(stats: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the holes of a subscription from the internal statistics of its topic: first, last, entries.

    A reported range excludes its start and includes its end.
    """
    cursor = stats["cursors"][name]
    entries = {each["ledgerId"]: each["entries"] for each in stats["ledgers"]}
    if stats["ledgers"] and not stats["ledgers"][-1]["entries"]:
        entries[stats["ledgers"][-1]["ledgerId"]] = stats["currentLedgerEntries"]
    ranges = [tuple(map(int, found)) for found in _RANGE.findall(cursor["individuallyDeletedMessages"])]
    total = cursor["totalNonContiguousDeletedMessagesRange"]
    if total > len(ranges):
        notify(f"{name} has {total:,} acknowledged ranges, and the broker reports only {len(ranges):,}")
    ledger, _, entry = cursor["markDeletePosition"].partition(":")
    through = int(ledger), int(entry)
    holes = []
    for before_ledger, before_entry, ledger_id, last in ranges:
        first = (through[0], through[1] + 1)
        if first[1] >= entries.get(first[0], 0) and first[0] != before_ledger:  # the end of a full ledger
            later = [each for each in entries if each > first[0] and entries[each]]
            first = (min(later, default=before_ledger), 0)
        count = _between(entries, first, (before_ledger, before_entry))
        if count > 0:
            end = (before_ledger, before_entry)
            if before_entry < 0:
                end = max((each, entries[each] - 1) for each in entries if each < before_ledger and entries[each])
            holes.append({"first": f"{first[0]}:{first[1]}", "last": f"{end[0]}:{end[1]}", "entries": count})
        through = ledger_id, last
    return holes


def _between(entries: dict[int, int], first: tuple[int, int], last: tuple[int, int]) -> int:
    """Return the number of entries from ``first`` to ``last``, inclusive, across ledgers."""
    if first[0] == last[0]:
        return last[1] - first[1] + 1
    inner = sum(count for ledger, count in entries.items() if first[0] < ledger < last[0])
    return max(entries.get(first[0], 0) - first[1], 0) + inner + last[1] + 1
