"""Several data directories on the storage screen: their states, and a map of the ledgers in each."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from pulsarbox.cleaning import clean
from pulsarbox.tui.feed import Feed, FeedError, ShownRow
from pulsarbox.tui.screens.maps.key_bar import legend
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.box_facts import MARKS
from pulsarbox.tui.widgets.styles import ink_of

ENSEMBLE: Final = "/pulsarbox/v1/ensemble"
MAP_SECONDS: Final = 5.0
"""Age of a map. The box reads an index per directory for each."""
SINGLE_SECONDS: Final = 30.0
"""How often a box with one directory is asked for others, which it can only get by a restart."""
CELLS_MAX: Final = 2000

LINES_MAX: Final = 1000
_PLAIN: Final = Style()
_GOOD: Final = frozenset({"active", "removed"})
"""States that need no attention."""

CELLS: Final = (
    ("K", "█", "complete", "text-success"),
    ("W", "▶", "being written", "text-primary"),
    ("C", "+", "being copied", "text-warning"),
    ("L", "!", "copy missing here", "text-warning"),
    ("D", "✕", "no intact copy", "text-error"),
    (".", "·", "elsewhere only", "text-muted"),
)
"""Cells of the map, by the letters of the box: sign, meaning, colour."""
_WRITTEN: Final = "▸"
_RECEIVES: Final = ("", _WRITTEN, "receives new entries", "text")
"""The sign behind the state of a directory, as a cell."""
STATES: Final = {
    "active": ("●", "text-success"),
    "joining": ("◐", "text-secondary"),
    "leaving": ("◑", "text-secondary"),
    "full": ("■", "text-warning"),
    "late": ("!", "text-warning"),
    "fenced": ("!", "text-warning"),
    "lost": ("✕", "text-error"),
    "removed": ("·", "text-muted"),
}
"""Sign and colour of a state."""


class Copies(NamedTuple):
    """The data directories of a box, if it has several."""

    status: Mapping[str, Any]
    map: Mapping[str, Any]
    """``rows``: a letter per cell, by directory; ``firsts``: the first ledger of each cell; ``ledgers``: their number.
    Empty if unknown.
    """


class CopiesQuery:
    """Asks a box for its directories. ``ask`` is called by one thread at a time."""

    def __init__(self, feed: Feed, now: Callable[[], float] = time.monotonic) -> None:
        self._feed = feed
        self._now = now
        self._map: Mapping[str, Any] = {}
        self._cells = 0
        self._map_at = self._single_at = float("-inf")
        self._lock = threading.Lock()

    def ask(self, width: int) -> Copies | None:
        """Return the directories, with a map for a screen of a width. None if the box has one, or does not tell."""
        with self._lock:
            if self._now() - self._single_at < SINGLE_SECONDS:
                return None
            status = self._answer(ENSEMBLE)
            if not status.get("several"):
                self._single_at = self._now()
                return None
            cells = min(_map_width(width, _names(list(status.get("members") or ()))), CELLS_MAX)
            if cells != self._cells or self._now() - self._map_at >= MAP_SECONDS:
                self._map = self._answer(f"{ENSEMBLE}/map?cells={cells}")
                self._cells, self._map_at = cells, self._now()
            return Copies(status, self._map)

    def _answer(self, target: str) -> Mapping[str, Any]:
        """Return a document; empty if the box refuses, as for a role that is no superuser, or is stopped."""
        try:
            told = self._feed.ask("GET", target)
        except FeedError as trouble:
            if trouble.is_gone:
                raise
            return {}
        return told if isinstance(told, Mapping) else {}


class _Fact(NamedTuple):
    """A column beside the map."""

    title: str
    width: int
    needs: int
    """Width of the screen from which it is shown."""
    text: Callable[[Mapping[str, Any], int], str]
    """Of a member, at a time in ms since 1970."""


def _space(name: str) -> Callable[[Mapping[str, Any], int], str]:
    """Return the function of a size, which is unknown for a directory that is out of use."""
    return lambda member, now: numbers.NOTHING if member.get("why") else numbers.size(member.get(name))


def _scrub(member: Mapping[str, Any], now: int) -> str:
    scrub = member.get("scrub") or {}
    if scrub.get("totalBytes"):
        return f"scrub {numbers.percent(scrub['doneBytes'] / scrub['totalBytes'])}"
    if scrub.get("finished"):
        return f"{numbers.seconds(max(now - scrub['finished'], 0) / 1000)} ago"
    return numbers.NOTHING


def _device(member: Mapping[str, Any], now: int) -> str:
    device = member.get("device") or 0
    shared = "=" if member.get("sharesDeviceWith") else ""
    return f"{device >> 8 & 0xFFF}:{device & 0xFF}{shared}" if device else numbers.NOTHING


_FACTS: Final = (
    _Fact("USED", 8, 60, _space("bytesUsed")),
    _Fact("FREE", 8, 100, _space("bytesFree")),
    _Fact("DEVICE", 7, 100, _device),
    _Fact("SCRUBBED", 10, 100, _scrub),
    _Fact("ENTRIES", 11, 160, lambda member, now: numbers.count(member.get("entries"))),
    _Fact("ERRORS", 6, 160, lambda member, now: str(member.get("commitErrors", 0) + member.get("readErrors", 0))),
)
_STATE: Final = 11
"""Width of a state with its sign, and that of a directory that receives new entries."""
_NAME_MAX: Final = 30
_MAP_LEAST: Final = 8
_GAP: Final = "  "
"""Between columns."""


def _map_width(width: int, names: Sequence[str]) -> int:
    """Return the columns of the map, of a line that begins and ends with a blank."""
    facts = sum(len(_GAP) + each.width for each in _FACTS if width >= each.needs)
    return max(width - 2 - _name_width(width, names) - _STATE - facts - 2 * len(_GAP), _MAP_LEAST)


def _names(members: Sequence[Mapping[str, Any]]) -> list[str]:
    return [clean(each) for each in short_names([str(each.get("name")) for each in members])]


def _name_width(width: int, names: Sequence[str]) -> int:
    return min(max(map(cell_len, (*names, "DIRECTORY"))), _NAME_MAX, max(width // 5, 9))


def short_names(names: Sequence[str]) -> list[str]:
    """Return paths without the folders that all have in common, such as ``disk1/box`` and ``disk2/box``."""
    parts = [PurePath(name).parts for name in names]
    shared = 0
    while all(len(each) > shared + 1 for each in parts) and len({each[shared] for each in parts}) == 1:
        shared += 1
    same_end = (
        len(names) > 1 and len({each[-1] for each in parts}) == 1 and all(len(each) > shared + 1 for each in parts)
    )
    return [str(PurePath(*(each[shared:-1] if same_end else each[shared:]))) for each in parts]


def with_short_names(copies: Copies, rows: Sequence[ShownRow]) -> list[ShownRow]:
    """Return volumes with short names of their directories."""
    members = list(copies.status.get("members") or ())
    known = [(f"{each.get('name')}/", name) for each, name in zip(members, _names(members), strict=True)]
    return [_shortened(row, known) for row in rows]


def _shortened(row: ShownRow, known: Sequence[tuple[str, str]]) -> ShownRow:
    name = str(row.get("name"))
    short = next((f"{short} {name[len(long) :]}" for long, short in known if name.startswith(long)), name)
    return ShownRow({**row, "name": short})


def drawn(
    copies: Copies, width: int, colors: Mapping[str, str], heading: Style = _PLAIN, lines: int = LINES_MAX
) -> Text:
    """Return what lacks copies, the directories, one per line with its part of the map, and the legend.

    ``colors`` are the variables of the theme, ``heading`` is the style of headings. If ``lines`` do not suffice, the
    legend is left out, then directories, those without a problem first.
    """
    members = list(copies.status.get("members") or ())
    names, facts = _names(members), [each for each in _FACTS if width >= each.needs]
    name_width, map_width = _name_width(width, names), _map_width(width, names)
    now, rows = int(copies.status.get("now") or 0), copies.map.get("rows") or {}
    text = Text(no_wrap=True, overflow="crop")
    _copies_lines(text, copies.status, members, colors)
    titles = "".join(f"{_GAP}{each.title:>{each.width}}" for each in facts)
    title = f" {'DIRECTORY':<{name_width}}{_GAP}{'STATE':<{_STATE}}{titles}{_GAP}{_ledgers(copies.map)}"
    text.append(f"{title[:width]:<{width}}\n", style=heading)
    written = set((copies.status.get("segment") or {}).get("members") or ())
    shown = _shown(members, lines - text.plain.count("\n"))
    for member, name in zip(members, names, strict=True):
        if member not in shown:
            continue
        sign, color = STATES.get(str(member.get("state")), ("?", "text-warning"))
        mark = f" {_WRITTEN}" if member.get("name") in written else ""
        text.append(f" {_fitted(name, name_width)}{_GAP}")
        text.append(_fitted(f"{sign} {member.get('state')}{mark}", _STATE), style=ink_of(colors, color))
        text.append("".join(f"{_GAP}{fact.text(member, now):>{fact.width}}" for fact in facts) + _GAP)
        _cells(text, str(rows.get(member.get("name")) or ""), map_width, colors)
        text.append("\n")
    _left_out(text, [each for each in members if each not in shown], colors)
    text.append(" ")
    legend(text, (each[1:] for each in (*CELLS, _RECEIVES)), width, colors, " ")
    if text.plain.rstrip().count("\n") >= lines:
        text.right_crop(len(text) - len("\n".join(text.plain.split("\n")[:lines])))
    return text


def _shown(members: Sequence[Mapping[str, Any]], lines: int) -> list[Mapping[str, Any]]:
    """Return the directories that are shown in so many lines, in order; one line names the others."""
    if len(members) <= lines:
        return list(members)
    by_need = sorted(members, key=lambda each: each.get("state") in _GOOD)
    return by_need[: max(lines - 1, 0)]


def _left_out(text: Text, members: Sequence[Mapping[str, Any]], colors: Mapping[str, str]) -> None:
    """Append the states of directories without a line."""
    states = Counter(str(each.get("state")) for each in members)
    if states:
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        more = numbers.counted(len(members), "more directory", "more directories")
        text.append(f" {more}: {told}\n", style=ink_of(colors, "text-muted"))


def _ledgers(told: Mapping[str, Any]) -> str:
    """Return the heading of the map."""
    firsts: list[int] = list(told.get("firsts") or ())
    count = told.get("ledgers") or len(firsts)
    if not firsts:
        return "NO LEDGERS"
    if count > len(firsts):
        return f"{count:,} LEDGERS FROM {firsts[0]}, {count / len(firsts):.1f} PER CELL"
    return f"{count:,} LEDGERS: {firsts[0]} TO {firsts[-1]}" if count > 1 else f"LEDGER {firsts[0]}"


def _cells(text: Text, letters: str, width: int, colors: Mapping[str, str]) -> None:
    """Append cells, of which all have the same width."""
    known = {letter: (sign, color) for letter, sign, _, color in CELLS}
    wide = max(width // max(len(letters), 1), 1)
    for letter in letters:
        sign, color = known.get(letter, ("?", "text-warning"))
        text.append(sign * wide, style=ink_of(colors, color))


def _copies_lines(
    text: Text, status: Mapping[str, Any], members: Sequence[Mapping[str, Any]], colors: Mapping[str, str]
) -> None:
    """Append what lacks copies, and why directories are out of use."""
    found, repair = status.get("underReplicated") or {}, status.get("repair") or {}
    if found.get("fragments"):
        gone = f", {found['withoutCopy']:,} have none left" if found.get("withoutCopy") else ""
        look, color = ("bad", "text-error") if gone else ("warn", "text-warning")
        lack = numbers.counted(found["entries"], "entry lacks", "entries lack")
        text.append(f" {MARKS[look]} {lack} a copy{gone}", style=ink_of(colors, color))
        text.append(f"; repair {found.get('restoredPercent', 0)}%, {numbers.size(repair.get('bytesDone'))} copied")
    elif status.get("audited"):
        ago = numbers.seconds(max(status["now"] - status["audited"], 0) / 1000)
        text.append(f" all copies are complete; checked {ago} ago")
    else:
        text.append(" the copies have not been compared yet")
    if repair.get("lastError"):
        text.append(f"; {clean(repair['lastError'])}", style=ink_of(colors, "text-error"))
    for member in members:
        if member.get("why"):
            name, why = str(member["name"]), str(member["why"])
            text.append(f"\n ✕ {clean(why if name in why else f'{name}: {why}')}", style=ink_of(colors, "text-error"))
    text.append("\n")


def _fitted(text: str, width: int) -> str:
    """Return a text in a width, without its beginning if it is longer: the end of a path tells more."""
    if cell_len(text) > width:
        text = f"…{text[len(text) - width + 1 :]}"
    return set_cell_size(text, width)
