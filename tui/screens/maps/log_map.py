"""The log of a topic as a map of cells, the position of a cursor in it, its ledgers, and ranges of acknowledgements."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from pulsarbox.tui.screens.maps.key_bar import legend
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.panel import LabeledFact, fact
from pulsarbox.tui.widgets.styles import ink_of
from pulsarbox.tui.widgets.wrapping import rows_with_command

Bucket = Mapping[str, Any]
"""Entries of a part of the log by state, with the first and the last position."""

STATES: Final = (
    ("acknowledged", "█", "acknowledged", "text-success"),
    ("mixed", "▒", "partially acknowledged", "text-success"),
    ("inFlight", "»", "in flight", "text-warning"),
    ("delayed", "·", "delayed, not due yet", "text-secondary"),
    ("waiting", "░", "waiting", "text-muted"),
)
"""States of a cell in the order of the legend: name, sign, meaning, colour."""
_LEDGER: Final = (("LEDGER", ">"), ("ENTRIES", ">"), ("SIZE", ">"), ("STATE", "<"))
"""Titles of the columns of the ledgers, with their alignments."""
_COUNTED: Final = ("entries", "acknowledged", "inFlight", "delayed")
_GAP: Final = 3


def state_of(bucket: Bucket) -> str:
    """Return the state of a bucket. In flight and delayed take precedence over waiting."""
    entries = bucket.get("entries") or 0
    acknowledged = bucket.get("acknowledged") or 0
    if bucket.get("inFlight"):
        return "inFlight"
    if entries and acknowledged >= entries:
        return "acknowledged"
    if (bucket.get("delayed") or 0) + acknowledged >= entries > 0 and bucket.get("delayed"):
        return "delayed"
    return "mixed" if acknowledged else "waiting"


class Grid(NamedTuple):
    """Layout of a map: how many cells a line has, and the size of each in characters."""

    across: int
    wide: int = 1
    high: int = 1


def grid_of(count: int, width: int, lines: int, high: int) -> Grid:
    """Return the largest cells, up to ``high`` lines each, of which ``count`` fit on lines of a width.

    Lines of more than 5 cells have a multiple of 10, so that those of few entries begin at round positions.
    """
    grids = [Grid(width)]
    for across in (1, 2, 5, *range(10, width + 1, 10)):
        rows = max(-(-count // across), 1)
        if across <= width and rows <= lines:
            grids.append(Grid(across, width // across, min(lines // rows, high)))
    return max(grids, key=lambda grid: (grid.wide * grid.high, grid.across))


def room_of(buckets: Sequence[Bucket], width: int) -> int:
    """Return the characters of a line behind the positions of all buckets."""
    return cells_per_line(width, cell_len(_longest(buckets)))


def cells_per_line(width: int, position: int) -> int:
    """Return the characters of a line behind a position of at most this length."""
    return max(width - position - 1, 1)


def joined(buckets: Sequence[Bucket], most: int) -> Sequence[Bucket]:
    """Return at most ``most`` buckets, each of as many adjacent ones as necessary."""
    size = -(-len(buckets) // most)
    if size <= 1:
        return buckets
    parts = [buckets[at : at + size] for at in range(0, len(buckets), size)]
    return [
        {"first": part[0].get("first")} | {name: sum(each.get(name) or 0 for each in part) for name in _COUNTED}
        for part in parts
    ]


def _longest(buckets: Iterable[Bucket]) -> str:
    return max((str(each.get("first") or "") for each in buckets), key=cell_len, default="")


def drawn(buckets: Sequence[Bucket], grid: Grid, colors: Mapping[str, str]) -> Text:
    """Return the map. Each row of cells begins with the position of its first entry.

    ``colors`` are the variables of the theme.
    """
    text = Text(no_wrap=True, overflow="crop")
    looks = {name: (sign, ink_of(colors, color)) for name, sign, _, color in STATES}
    broad = cell_len(_longest(buckets))
    for at in range(0, len(buckets), grid.across):
        states = groupby(map(state_of, buckets[at : at + grid.across]))
        runs = [(looks[state], sum(1 for _ in cells) * grid.wide) for state, cells in states]
        for line in range(grid.high):
            position = buckets[at].get("first") or "" if line == 0 else ""
            text.append(f"{position:>{broad}} ", style=ink_of(colors, "text-muted"))
            for (sign, style), length in runs:
                text.append(sign * length, style=style)
            text.append("\n")
    text.rstrip()
    return text


def empty_log(advice: str, width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return what an empty log has instead of a map: that it is empty, and the command that ``advice`` ends with."""
    text = Text(no_wrap=True, overflow="crop")
    for row, is_command in rows_with_command(advice, width, lines):
        text.append(f"{row}\n", style=ink_of(colors, "text-accent") + Style(bold=True) if is_command else "")
    text.rstrip()
    return text


def legend_of(buckets: Sequence[Bucket], width: int, colors: Mapping[str, str]) -> Text:
    """Return the legend of a map in lines that fit; empty for an empty log."""
    text = Text(no_wrap=True, overflow="crop")
    legend(text, _legend_entries(buckets) if buckets else (), width, colors)
    text.rstrip()
    return text


def counts_of(buckets: Iterable[Bucket]) -> dict[str, int]:
    """Return the entries of the log by state. Their sum is the number of entries: each one is counted once."""
    told = ("acknowledged", "inFlight", "delayed")  # in this order: an acknowledged entry may still be in flight
    counts = dict.fromkeys((*told, "waiting"), 0)
    for bucket in buckets:
        rest = bucket.get("entries") or 0
        for name in told:
            count = min(bucket.get(name) or 0, rest)
            counts[name] += count
            rest -= count
        counts["waiting"] += rest
    return counts


def _legend_entries(buckets: Sequence[Bucket]) -> list[tuple[str, str, str]]:
    """Return the signs with their meanings, the number of entries, and their share of the log."""
    counts = counts_of(buckets)
    whole = sum(counts.values()) or 1
    mixed = sum(state_of(bucket) == "mixed" for bucket in buckets)
    entries = []
    for name, sign, meaning, color in STATES:
        if name in counts:
            told = f"{meaning} {numbers.count(counts[name])} ({numbers.percent(counts[name] / whole)})"
            entries.append((sign, told, color))
        elif mixed:
            entries.append((sign, f"{meaning}: {numbers.counted(mixed, 'cell')}", color))
    return entries


def cursor_facts(told: Mapping[str, Any]) -> list[LabeledFact]:
    """Return the position and the backlog of a cursor."""
    return [
        fact("mark-delete", str(told.get("markDelete") or numbers.NOTHING)),
        fact("last", str(told.get("lastConfirmed") or numbers.NOTHING)),
        fact("backlog", numbers.count(told.get("backlog"))),
        fact(
            "entries", f"{numbers.count(told.get('entries'))} in {numbers.counted(told.get('ledgersTotal'), 'ledger')}"
        ),
    ]


def scale_of(buckets: Sequence[Bucket], grid: Grid) -> str:
    """Return how many entries a cell stands for, and its size if that is not one character; empty for an empty log."""
    each = max((bucket.get("entries") or 0 for bucket in buckets), default=0)
    size = "" if (grid.wide, grid.high) == (1, 1) else f" of {grid.wide}x{grid.high} characters"
    return f"{numbers.counted(each, 'entry', 'entries')} per cell{size}" if each else ""


def ranges_of(told: Mapping[str, Any], width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return the ranges of entries that are acknowledged beyond mark-delete."""
    ranges = [
        f"{ledger}:{first}" + (f"-{last}" if last > first else "") for ledger, first, last in told.get("ranges") or ()
    ]
    if not ranges:
        return Text("Every entry behind mark-delete is unacknowledged.", style=ink_of(colors, "text-muted"))
    return in_columns(ranges, told.get("rangesTotal") or len(ranges), width, lines, colors)


def ledgers_of(told: Mapping[str, Any], width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return the ledgers with their entries, sizes and states, as far as these fit."""
    ledgers = told.get("ledgers") or ()
    if not ledgers:
        return Text("No ledger holds entries.", style=ink_of(colors, "text-muted"))
    rows = [tuple(title for title, _ in _LEDGER), *map(_ledger, ledgers)]
    widths = [max(map(cell_len, values)) for values in zip(*rows, strict=True)]
    fitting = [at for at in range(len(widths)) if sum(widths[: at + 1]) + 2 * at <= width] or [0]
    heading, *shown = ("  ".join(f"{row[at]:{_LEDGER[at][1]}{widths[at]}}" for at in fitting).rstrip() for row in rows)
    return in_columns(shown, told.get("ledgersTotal") or len(shown), width, lines, colors, heading)


def _ledger(told: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(told.get("ledger")),
        numbers.count((told.get("last") or 0) - (told.get("first") or 0) + 1),
        numbers.size(told.get("size")),
        "open" if told.get("open") else "closed",
    )


def in_columns(
    items: Sequence[str], total: int, width: int, lines: int, colors: Mapping[str, str], heading: str = ""
) -> Text:
    """Return texts in as many columns as fit, from top to bottom, each below the heading if there is one.

    The last line has the number of those left out.
    """
    broad = max(map(cell_len, (heading, *items)))
    columns = max((width + _GAP) // (broad + _GAP), 1)
    lines -= bool(heading)
    room = max(lines if len(items) == total <= columns * lines else lines - 1, 1)
    shown = items[: columns * room]
    height = min(-(-len(shown) // columns), room)
    text = Text(no_wrap=True, overflow="crop")
    if heading:
        text.append(_joined([heading] * -(-len(shown) // height), broad), style=ink_of(colors, "text-muted"))
    for row in range(height):
        text.append(_joined(shown[row::height], broad))
    if len(shown) < total:
        text.append(f"{numbers.count(total - len(shown))} more", style=ink_of(colors, "text-muted"))
    text.rstrip()
    return text


def _joined(texts: Iterable[str], broad: int) -> str:
    return (" " * _GAP).join(f"{each:<{broad}}" for each in texts).rstrip() + "\n"
