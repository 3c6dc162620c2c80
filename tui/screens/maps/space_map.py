"""The space of the volumes as a bar: live data, compressed, offloaded or neither, dead data, and what is being
written."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text

from pulsarbox.tui.feed import Feed, FeedError, RowQuery
from pulsarbox.tui.screens.maps.key_bar import legend
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.styles import ink_of

COMPRESSION: Final = "/pulsarbox/v1/compression"
SECONDS: Final = 30.0
"""Age of the sum of compressed entries. The box counts them when it reclaims space, which is rarer."""

KINDS: Final = (
    ("live", "█", "live", "text-success"),
    ("compressed", "▓", "live, compressed", "text-primary"),
    ("offloaded", "▒", "live, offloaded (estimate)", "text-accent"),
    ("dead", "░", "dead, reclaimable", "text-muted"),
    ("written", "»", "being written", "text-warning"),
)
"""Kinds of space in the order of the bar: name, sign, meaning, color."""


class SpaceUse(NamedTuple):
    """Bytes on disk by kind."""

    live: int = 0
    """Neither compressed nor offloaded."""
    compressed: int = 0
    """Not offloaded."""
    offloaded: int = 0
    """Compressed or not."""
    dead: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """Bytes of all volumes."""
        return sum(self)


def space_of(
    rows: Sequence[Mapping[str, Any]], totals: Mapping[str, Any], compressed: int, offloaded: float = 0.0
) -> SpaceUse | None:
    """Return the use of space by the volumes; None if the box does not report it.

    ``compressed`` is the number of stored bytes of compressed entries. ``offloaded`` is the share (0 to 1) of the data
    of topics that offloads have copied; it is assumed to be as compressible as the rest. Volumes without a live share
    are being written.
    """
    whole, live = totals.get("volumeBytes"), totals.get("liveBytes")
    if not whole or live is None:
        return None
    written = min(sum(row.get("diskUsed") or 0 for row in rows if row.get("liveShare") is None), whole)
    live = min(live, whole - written)
    copied = int(live * offloaded)
    packed = int(min(compressed, live) * (1 - offloaded))
    return SpaceUse(live - copied - packed, packed, copied, whole - written - live, written)


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


def drawn(space: SpaceUse, width: int, colors: Mapping[str, str], height: int = 1) -> Text:
    """Return the bar, ``height`` lines high, and the legend of the kinds in it. ``colors``: variables of the theme."""
    text = Text(no_wrap=True, overflow="crop")
    for _ in range(height):
        for cells, (_, sign, _, color) in zip(shares(space, max(width, 1)), KINDS, strict=True):
            text.append(sign * cells, style=ink_of(colors, color))
        text.append("\n")
    entries = [
        (sign, f"{meaning} {numbers.size(size)} ({numbers.percent(size / space.total)})", color)
        for size, (_, sign, meaning, color) in zip(space, KINDS, strict=True)
        if size
    ]
    legend(text, entries, width, colors)
    text.rstrip()
    return text


class PeriodicQuery:
    """Asks a box for a number every SECONDS."""

    target: ClassVar[str]

    def __init__(self, feed: Feed, now: Callable[[], float] = time.monotonic) -> None:
        self._feed = feed
        self._now = now
        self._at = float("-inf")
        self._value = 0.0
        self._lock = threading.Lock()

    def ask(self) -> float:
        """Return the number; 0 if the box refuses, as for a role that is no superuser. Raises FeedError otherwise."""
        with self._lock:
            if self._now() - self._at >= SECONDS:
                self._at, self._value = self._now(), self._answer()
            return self._value

    def _answer(self) -> float:
        try:
            return self.number_in(self._feed.ask("GET", self.target))
        except FeedError as trouble:
            if trouble.is_gone:
                raise
            return 0

    def number_in(self, told: Any) -> float:
        """Return the number of a response."""
        raise NotImplementedError


class CompressedQuery(PeriodicQuery):
    """Asks for the stored bytes of compressed entries."""

    target: ClassVar[str] = COMPRESSION

    def number_in(self, told: Any) -> float:
        """Return the bytes of all codecs."""
        rows = told if isinstance(told, list) else []
        return sum(row.get("stored") or 0 for row in rows if row.get("codec") != "none")


class OffloadedQuery(PeriodicQuery):
    """Asks for the share of the topics' data that offloads have copied, from 0 to 1."""

    target: ClassVar[str] = RowQuery("overview", limit=1, columns=("size", "offloadedSize")).target

    def number_in(self, told: Any) -> float:
        """Return the share; 0 without data, and of a box that does not report it."""
        totals = told.get("totals") if isinstance(told, dict) else None
        size, offloaded = ((totals or {}).get(name) or 0 for name in ("size", "offloadedSize"))
        return min(offloaded / size, 1.0) if size else 0.0
