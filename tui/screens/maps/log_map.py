"""The log of a topic as a map of cells, the position of a cursor in it, its ledgers, and ranges of acknowledgements."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from pulsarbox.tui.screens.maps.key_bar import legend
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.panel import LabeledFact, fact
from pulsarbox.tui.widgets.styles import ink_of

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


def drawn(buckets: Sequence[Bucket], width: int, colors: Mapping[str, str], height: int = 1) -> Text:
    """Return the map and its legend. ``colors`` are the variables of the theme.

    A log that fits on one line fills it, ``height`` lines high, with the first and the last position below. Otherwise,
    each line begins with the position of its first entry.
    """
    text = Text(no_wrap=True, overflow="crop")
    if not buckets:
        text.append("The log is empty. Publish a message: pulsarbox produce hello 'Hello, world'")
        return text
    if len(buckets) <= width:
        _bar(text, buckets, width, colors, height)
    else:
        _lines(text, buckets, width, colors)
    legend(text, _legend_entries(buckets), width, colors)
    text.rstrip()
    return text


def cells_per_line(width: int, position: str) -> int:
    """Return the cells of a line behind a position of at most this length."""
    return max(width - cell_len(position) - 1, 1)


def _cells(text: Text, buckets: Iterable[Bucket], colors: Mapping[str, str]) -> None:
    looks = {name: (sign, ink_of(colors, color)) for name, sign, _, color in STATES}
    for bucket in buckets:
        sign, style = looks[state_of(bucket)]
        text.append(sign, style=style)
    text.append("\n")


def _bar(text: Text, buckets: Sequence[Bucket], width: int, colors: Mapping[str, str], height: int) -> None:
    stretched = [buckets[at * len(buckets) // width] for at in range(width)]
    for _ in range(height):
        _cells(text, stretched, colors)
    first, last = str(buckets[0].get("first") or ""), str(buckets[-1].get("last") or "")
    ends = f"{first}{last:>{max(width - len(first), len(last) + 1)}}\n"
    text.append(ends, style=ink_of(colors, "text-muted"))


def _lines(text: Text, buckets: Sequence[Bucket], width: int, colors: Mapping[str, str]) -> None:
    label = max((str(each.get("first") or "") for each in buckets), key=cell_len)
    cells = cells_per_line(width, label)
    for at in range(0, len(buckets), cells):
        text.append(f"{buckets[at].get('first') or '':>{cell_len(label)}} ", style=ink_of(colors, "text-muted"))
        _cells(text, buckets[at : at + cells], colors)


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


def scale_of(told: Mapping[str, Any]) -> str:
    """Return how many entries a cell stands for."""
    each = told.get("bucketEntries") or max(
        (bucket.get("entries") or 0 for bucket in told.get("buckets") or ()), default=0
    )
    return f"{numbers.counted(each, 'entry', 'entries')} per cell" if each else ""


def ranges_of(told: Mapping[str, Any], width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return the ranges of entries that are acknowledged beyond mark-delete."""
    ranges = [
        f"{ledger}:{first}" + (f"-{last}" if last > first else "") for ledger, first, last in told.get("ranges") or ()
    ]
    if not ranges:
        return Text("Every entry behind mark-delete is unacknowledged.", style=ink_of(colors, "text-muted"))
    return in_columns(ranges, told.get("rangesTotal") or len(ranges), width, lines, colors)


def ledgers_of(told: Mapping[str, Any], width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return the ledgers with their entries and sizes."""
    rows = [
        (
            str(each.get("ledger")),
            numbers.counted((each.get("last") or 0) - (each.get("first") or 0) + 1, "entry", "entries"),
            numbers.size(each.get("size")),
            "open" if each.get("open") else "closed",
        )
        for each in told.get("ledgers") or ()
    ]
    if not rows:
        return Text("No ledger holds entries.", style=ink_of(colors, "text-muted"))
    widths = [max(cell_len(row[at]) for row in rows) for at in range(4)]
    shown = ["  ".join(f"{value:>{wide}}" for value, wide in zip(row, widths, strict=True)) for row in rows]
    return in_columns(shown, told.get("ledgersTotal") or len(shown), width, lines, colors)


def in_columns(items: Sequence[str], total: int, width: int, lines: int, colors: Mapping[str, str]) -> Text:
    """Return texts in as many columns as fit, from top to bottom; the last line has the number of those left out."""
    broad = max(map(cell_len, items))
    columns = max((width + _GAP) // (broad + _GAP), 1)
    room = max(lines if len(items) == total <= columns * lines else lines - 1, 1)
    shown = items[: columns * room]
    height = min(-(-len(shown) // columns), room)
    text = Text(no_wrap=True, overflow="crop")
    for row in range(height):
        text.append((" " * _GAP).join(f"{item:<{broad}}" for item in shown[row::height]).rstrip() + "\n")
    if len(shown) < total:
        text.append(f"{numbers.count(total - len(shown))} more", style=ink_of(colors, "text-muted"))
    text.rstrip()
    return text
