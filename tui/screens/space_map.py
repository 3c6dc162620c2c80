"""The space of the volumes as a bar: live data, compressed and not, dead data, and what is being written."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.text import Text

from pulsarbox.tui.feed import Feed, FeedError
from pulsarbox.tui.screens.key_bar import ink, legend
from pulsarbox.tui.widgets import numbers

COMPRESSION: Final = "/pulsarbox/v1/compression"
SECONDS: Final = 30.0
"""Age of the sum of compressed entries. The box counts them when it reclaims space, which is rarer."""

KINDS: Final = (
    ("live", "█", "live", "text-success"),
    ("compressed", "▓", "live, compressed", "text-primary"),
    ("dead", "░", "dead, reclaimed by packing", "text-muted"),
    ("written", "»", "being written", "text-warning"),
)
"""Kinds of space in the order of the bar: name, sign, meaning, color."""


class SpaceUse(NamedTuple):
    """Bytes on disk by kind."""

    live: int = 0
    compressed: int = 0
    dead: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """Bytes of all volumes."""
        return sum(self)


def space_of(rows: Sequence[Mapping[str, Any]], totals: Mapping[str, Any], compressed: int) -> SpaceUse | None:
    """Return the use of space by the volumes; None if the box does not report it.

    ``compressed`` is the number of stored bytes of compressed entries. Volumes without a live share are being written.
    """
    whole, live = totals.get("volumeBytes"), totals.get("liveBytes")
    if not whole or live is None:
        return None
    written = min(sum(row.get("diskUsed") or 0 for row in rows if row.get("liveShare") is None), whole)
    live = min(live, whole - written)
    packed = min(compressed, live)
    return SpaceUse(live - packed, packed, whole - written - live, written)


def shares(space: SpaceUse, width: int) -> list[int]:
    """Return the number of cells of each kind. Every kind that there is has at least one, if there is room."""
    present = [at for at, size in enumerate(space) if size]
    cells = [1 if size and len(present) <= width else 0 for size in space]
    left = width - sum(cells)
    exact = [left * size / (space.total or 1) for size in space]
    cells = [cell + int(share) for cell, share in zip(cells, exact, strict=True)]
    by_rest = sorted(present, key=lambda at: int(exact[at]) - exact[at])
    for at in by_rest[: width - sum(cells)]:
        cells[at] += 1
    return cells


def drawn(space: SpaceUse, width: int, colors: Mapping[str, str]) -> Text:
    """Return the bar and its legend. ``colors`` are the variables of the theme."""
    text = Text(" ", no_wrap=True, overflow="crop")
    for cells, (_, sign, _, color) in zip(shares(space, max(width - 2, 1)), KINDS, strict=True):
        text.append(sign * cells, style=ink(colors, color))
    text.append("\n ")
    entries = [
        (sign, f"{meaning} {numbers.size(size)} ({numbers.percent(size / space.total)})", color)
        for size, (_, sign, meaning, color) in zip(space, KINDS, strict=True)
    ]
    legend(text, entries, width, colors, indent=" ")
    return text


class CompressedQuery:
    """Asks a box for the bytes of its compressed entries. ``ask`` is called by one thread at a time."""

    def __init__(self, feed: Feed, now: Callable[[], float] = time.monotonic) -> None:
        self._feed = feed
        self._now = now
        self._at = float("-inf")
        self._bytes = 0
        self._lock = threading.Lock()

    def ask(self) -> int:
        """Return the stored bytes of compressed entries; 0 if the box refuses, as for a role that is no superuser."""
        with self._lock:
            if self._now() - self._at >= SECONDS:
                self._at, self._bytes = self._now(), self._sum()
            return self._bytes

    def _sum(self) -> int:
        try:
            rows = self._feed.ask("GET", COMPRESSION)
        except FeedError as trouble:
            if trouble.is_gone:
                raise
            return 0
        told = rows if isinstance(rows, list) else []
        return sum(row.get("stored") or 0 for row in told if row.get("codec") != "none")
