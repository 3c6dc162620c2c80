"""Compact formats for narrow columns: counts, rates, sizes, times, bars and trends."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

DOTS_LEFT: Final = (0x00, 0x40, 0x44, 0x46, 0x47)
DOTS_RIGHT: Final = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
"""Bits of a braille cell (U+2800 and above) whose left or right column has so many dots, filled from below."""
_TREND_MAX: Final = 3
"""Dots of the highest value of a trend. The upper line of dots stays blank, so that the trends of rows stay apart."""
_FLAT: Final = 0.7
NOTHING: Final = "-"
LOADING: Final = "loading …"
"""Text in place of what has not been received yet."""
MOVING: Final = 0.05
"""Rates below are zero, in messages per second."""
_PARTS: Final = 4
"""Parts of a trend that are compared."""
_GROWTH: Final = 0.02
"""Minimum growth from one part of a trend to the next, as a share of the last part."""


def count(value: float | None) -> str:
    """Format a count: ``999``, ``12,345``, ``1.23M``; exact up to a million."""
    if value is None:
        return NOTHING
    if abs(value) < 1_000_000:
        return f"{round(value):,}"
    return _scaled(value, 1000, "kMGTP")


def counted(value: float | None, thing: str, things: str = "") -> str:
    """Format a count with its noun, in singular or plural; ``things`` is the plural if it has no plain ``s``."""
    return f"{count(value)} {thing if value == 1 else things or f'{thing}s'}"


def rate(value: float | None) -> str:
    """Format a rate per second: ``0``, ``0.4``, ``87``, ``12.3k``."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size < 0.05:
        return "0"
    if size < 9.95:
        return f"{value:.1f}"
    return f"{value:.0f}" if size < 999.5 else _scaled(value, 1000, "kMGTP")


def change(value: float | None) -> str:
    """Format a rate of change with a sign and an arrow."""
    if value is None:
        return NOTHING
    if abs(value) < MOVING:
        return "="
    return f"▲ +{rate(value)}" if value > 0 else f"▼ -{rate(-value)}"


def change_in_words(value: float | None) -> str:
    """Format a rate of change for a sentence: ``growing by 12/s``; empty if it is unknown."""
    if value is None:
        return ""
    if abs(value) < MOVING:
        return "steady"
    return f"{'growing' if value > 0 else 'falling'} by {rate(abs(value))}/s"


def size(value: float | None) -> str:
    """Format a size in bytes: ``12 B``, ``3.4 KiB``, ``2.10 GiB``."""
    if value is None:
        return NOTHING
    if abs(value) < 1024:
        return f"{value:.0f} B"
    return _scaled(value, 1024, "KMGTP", " ") + "iB"


def _scaled(value: float, base: int, units: str, space: str = "") -> str:
    for unit in units:
        value /= base
        if abs(value) < 999.5 or unit == units[-1]:
            break
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}{space}{unit}"


def seconds(value: float | None) -> str:
    """Format a duration: ``0.3s``, ``42s``, ``3m20s``, ``5h02m``, ``12d``."""
    if value is None:
        return NOTHING
    if value < 10:
        return f"{value:.1f}s" if value >= 0.05 else "0s"
    whole = round(value)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    days, rest = divmod(whole, 86400)
    return f"{days}d{rest // 3600:02}h" if days < 10 else f"{days:,}d"


_SPANS: Final = ((86_400, "day", "days"), (3600, "h", "h"), (60, "min", "min"), (1, "s", "s"))


def span(value: float | None) -> str:
    """Format a duration for a sentence, in one unit: ``40 s``, ``12 min``, ``2 h``, ``3 days``."""
    if value is None:
        return NOTHING
    for seconds_each, one, many in _SPANS:
        if value >= 1.5 * seconds_each or seconds_each == 1:
            number = round(value / seconds_each)
            return f"{number:,} {one if number == 1 else many}"
    raise AssertionError


def in_unit(value: float | None, unit: str) -> str:
    """Format the usage or the value of a limit in its unit; a count for any other unit."""
    if value is None:
        return NOTHING
    if unit == "ms":
        return seconds(value / 1000)
    if unit in ("s", "seconds"):
        return seconds(value)
    if unit in ("bytes", "bytes/s"):
        return size(value) + unit.removeprefix("bytes")
    return f"{rate(value)}/s" if unit in ("messages/s", "entries/s") else count(value)


def milliseconds(value: float | None) -> str:
    """Format a latency: ``0.42 ms``, ``8.1 ms``, ``1.20 s``, ``12.3 s``, ``1m31s``."""
    if value is None:
        return NOTHING
    if value >= 59_950:
        return seconds(value / 1000)
    if value >= 1000:
        return f"{value / 1000:.{2 if value < 9995 else 1}f} s"
    return f"{value:.2f} ms" if value < 1 else f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def nanoseconds(value: float | None) -> str:
    """Format the duration of a call: ``240 ns``, ``1.3 µs``, ``2.0 ms``."""
    if value is None:
        return NOTHING
    if value < 1000:
        return f"{value:.0f} ns"
    return f"{value / 1000:.1f} µs" if value < 1_000_000 else milliseconds(value / 1_000_000)


def moment(value: float | None) -> str:
    """Format a time (ms since 1970): the time of day, with the date if not today."""
    if not value:
        return NOTHING
    try:
        when = datetime.fromtimestamp(value / 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return "no time"
    today = datetime.now().astimezone().date()
    return when.strftime("%H:%M:%S" if when.date() == today else "%m-%d %H:%M")


def moment_before(age: float) -> str:
    """Format the time so many seconds ago, as ``moment`` does."""
    return moment((datetime.now().astimezone().timestamp() - age) * 1000)


def instant(value: float | None) -> str:
    """Format a time (ms since 1970) in full, to the millisecond."""
    if not value:
        return NOTHING
    try:
        return datetime.fromtimestamp(value / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{value:.0f} (no time)"


def bar(share: float | None, width: int) -> str:
    """Draw a share, 0 to 1, as a bar of ``width`` cells."""
    if share is None:
        return NOTHING.ljust(width)
    halves = round(min(max(share, 0.0), 1.0) * width * 2)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width, "·")


def percent(share: float | None) -> str:
    """Format a share: ``61%``, ``>999%``."""
    if share is None:
        return NOTHING
    return f"{share * 100:.0f}%" if share < 9.995 else ">999%"


def trend(values: Sequence[float | None] | None, width: int) -> str:
    """Draw the last values as dots, two in a cell; a flat line at the bottom if they are constant."""
    if not values:
        return " " * width
    shown = [value or 0.0 for value in values[-2 * width :]]
    high = max(shown)
    low = min(*shown, _FLAT * high)  # do not exaggerate small changes
    step = (_TREND_MAX - 1) / (high - low) if high > min(shown) else 0.0
    dots = [0] * (len(shown) % 2) + [1 + round((value - low) * step) for value in shown]
    cells = zip(dots[::2], dots[1::2], strict=True)
    return "".join(chr(0x2800 + DOTS_LEFT[left] + DOTS_RIGHT[right]) for left, right in cells).rjust(width)


def keeps_up(row: dict[str, Any]) -> bool:
    """Return whether a backlog is at most two seconds of deliveries and does not keep growing: it is just in flight."""
    backlog = row.get("backlog") or 0
    return 0 < backlog <= 2 * (row.get("outRate") or 0) and not keeps_growing(row)


def keeps_growing(row: dict[str, Any]) -> bool:
    """Return whether a backlog grows now and has grown in all parts of its trend, unlike one that only fluctuates.

    Without a trend, the backlog must grow by half of the deliveries: most messages are then not acknowledged.
    """
    change, trend = row.get("change") or 0.0, row.get("trend") or ()
    if change < MOVING:
        return False
    if len(trend) < _PARTS:
        return bool(change >= (row.get("outRate") or 0.0) / 2)
    ends = [len(trend) * part // _PARTS for part in range(_PARTS + 1)]
    means = [sum(trend[begin:end]) / (end - begin) for begin, end in pairwise(ends)]
    return all(after - before > _GROWTH * means[-1] for before, after in pairwise(means))


def drain_in_words(row: dict[str, Any]) -> str:
    """Format the time to drain a backlog as the end of a sentence; empty without a backlog."""
    told = drain(row)
    words = {NOTHING: "", "never": ", never drained", "now": ", in flight", "when due": ", drained when due"}
    return words.get(told, f", drained in {told}")


def drain(row: dict[str, Any]) -> str:
    """Format the time to drain a backlog: ``never`` while it grows, ``-`` without a backlog.

    The box estimates the time from another period than the change, so that they may differ.
    """
    if not row.get("backlog"):
        return NOTHING
    if keeps_up(row):
        return "now"
    value = row.get("drain") if (row.get("change") or 0.0) < MOVING else None
    if value is None and (row.get("delayed") or 0) >= row["backlog"]:
        return "when due"
    return "never" if value is None else f"~{seconds(value)}"
