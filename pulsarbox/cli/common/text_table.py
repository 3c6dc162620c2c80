"""Tables as text, and their fit to a terminal."""

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.cli.common.terminal_text import clean

_NO_TITLES: Final[Mapping[str, str]] = {}
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class FittedTable(NamedTuple):
    """Lines of a table, and the columns that did not fit."""

    lines: list[str]
    hidden: list[str]


def terminal_width() -> int | None:
    """Return the columns of the terminal that is stdout; None if it is none, where a table may have any width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    cut: Mapping[str, int],
    width: int | None,
) -> FittedTable:
    """Return a table of at most ``width`` characters, if that is possible.

    Shortens the texts that may be cut, then hides columns: those without any value first, then from the right. The
    first column always stays.
    """
    lines = table(columns, rows, titles)
    if width is None or _widest(lines) <= width:
        return FittedTable(lines, [])
    rows = [{**row, **{name: shortened(row.get(name), most) for name, most in cut.items()}} for row in rows]
    left = list(columns)
    lines = table(left, rows, titles)
    hidden = []
    while _widest(lines) > width and len(left) > 1:
        hidden.append(left.pop(_least(left, rows)))
        lines = table(left, rows, titles)
    return FittedTable(lines, [name for name in columns if name in hidden])


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines))


def _least(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> int:
    for at in reversed(range(1, len(columns))):
        if all(cell(row.get(columns[at])) == "-" for row in rows):
            return at
    return len(columns) - 1


def shortened(value: Any, width: int) -> Any:
    """Return a text of at most ``width`` characters: the end of a path, or the start of other text."""
    if not isinstance(value, str) or len(value) <= width:
        return value
    return f"…{value[1 - width :]}" if value.startswith("/") else f"{value[: width - 1]}…"


def table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str] = _NO_TITLES
) -> list[str]:
    """Return the lines of a table: titled columns, numbers right-aligned."""
    heads = [titles.get(name) or title_of(name) for name in columns]
    cells = [[cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    right = [all(_is_number(row.get(name)) for row in rows) for name in columns]
    lines = []
    for line in (heads, *cells):
        padded = (
            each.rjust(width) if to_the_right and rows else each.ljust(width)
            for each, width, to_the_right in zip(line, widths, right, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def title_of(name: str) -> str:
    """Return the title of a field: its words in capitals, ``SET BY`` for ``setBy``."""
    return _WORD_START.sub(" ", name).upper()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: Any) -> str:
    """Format a value for a table cell."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list | tuple):
        return clean(", ".join(map(str, value))) or "-"
    if isinstance(value, dict):
        return clean(", ".join(f"{name}={each}" for name, each in value.items())) or "-"
    return f"{value:,}" if isinstance(value, int) else clean(str(value))
