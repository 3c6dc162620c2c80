"""Wrapping at words: where to break a line, and texts whose rows continue below the last column of a line."""

import re
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual.geometry import Size
from textual.widgets import Static

_COLUMN: Final = re.compile(r".*\s{2,}(?=\S)")
_AFTER: Final = (" ", ",", "/")
"""Characters after which a row may end, preferred first."""


def breaks(text: str, first: int, others: int) -> list[int]:
    """Return the offsets at which the rows of a text begin, except the first.

    The widths of the first and the other rows are in cells. A row ends behind a blank, a comma or a slash, unless the
    word there is longer than a row.
    """
    found, start, room = list[int](), 0, first
    while (end := start + len(_head(text[start : start + max(room, 0)], room))) < len(text):
        if end == start and room >= others:
            end += 1  # a character wider than the row
        start = _word(text, start, end, others) if end > start else end
        found.append(start)
        room = others
    return found if not found or found[-1] < len(text) else found[:-1]


def _head(text: str, room: int) -> str:
    """Return the beginning of a text that fits into so many cells."""
    if text.isascii() or cell_len(text) <= room:
        return text
    return chop_cells(text, room)[0] if room > 1 else ""


def _word(text: str, start: int, end: int, others: int) -> int:
    """Return where the word at ``end`` begins, or ``end`` if no row has room for the whole word."""
    for last in _AFTER:
        begin = text.rfind(last, start, end) + 1
        if begin > start and text[start:begin].strip() and cell_len(_until(last, text, begin, others)) <= others:
            return begin
    return end


def _until(last: str, text: str, begin: int, room: int) -> str:
    """Return the word from ``begin`` on; only its beginning if it is longer than ``room``."""
    return text[begin : begin + room + 2].partition(last)[0]


def hanging(text: Text, width: int) -> Text:
    """Wrap lines of columns, two blanks apart, at a width in cells. Further rows begin below the last column."""
    lines = text.split("\n", allow_blank=True)
    return Text("\n").join(row for line in lines for row in _rows(line, width))


def _rows(line: Text, width: int) -> Iterator[Text]:
    column = _COLUMN.match(line.plain)
    begin = min(cell_len(column.group()) if column else 0, width // 2)
    first, *others = line.divide(breaks(line.plain, width, width - begin))
    yield first
    for row in others:
        yield Text(" " * begin).append_text(row)


class HangingText(Static):
    """A text wrapped by :func:`hanging` at the width of the widget."""

    def __init__(self, text: Text) -> None:
        super().__init__(text, markup=False)
        self._text = text

    def render(self) -> Text:
        """See textual.widget.Widget."""
        return hanging(self._text, max(self.content_size.width, 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See textual.widget.Widget."""
        return hanging(self._text, max(width, 1)).plain.count("\n") + 1
